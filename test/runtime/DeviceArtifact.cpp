// The test artifact with code for a device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/DeviceArtifact.h"

#include <dlfcn.h>

namespace ortc::test {

void DeviceCode::begin(ortc_entry_role role, uint32_t binding) {
  lists.push_back({{uint32_t(role), binding, 0, 0}, {}, {}});
}

void DeviceCode::launch(const std::string &name, uint32_t blocks,
                        std::vector<ortc_launch_argument> arguments) {
  uint32_t kernel = 0;
  while (kernel < kernels.size() && kernels[kernel].name != name)
    ++kernel;
  if (kernel == kernels.size())
    kernels.push_back({name, 32, 0, uint32_t(arguments.size())});
  List &list = lists.back();
  list.launches.push_back({ORTC_LAUNCH_KERNEL, kernel, blocks, 0, uint32_t(list.arguments.size()), 0});
  list.arguments.insert(list.arguments.end(), arguments.begin(), arguments.end());
}
void DeviceCode::loop(uint32_t count, bool isReverse) {
  lists.back().launches.push_back({ORTC_LAUNCH_LOOP, 0, count, isReverse, 0, 0});
}
void DeviceCode::end() { lists.back().launches.push_back({ORTC_LAUNCH_END, 0, 0, 0, 0, 0}); }

Bytes DeviceCode::make() const {
  Bytes bytes;
  auto align = [&] { bytes.resize((bytes.size() + 7) / 8 * 8); };
  auto put = [&](const auto &row) {
    size_t at = bytes.size();
    bytes.resize(at + sizeof row);
    std::memcpy(bytes.data() + at, &row, sizeof row);
    return at;
  };
  put(ortc_blob{ORTC_BLOB_MAGIC, ORTC_CALL_ABI, uint32_t(lists.size()), sizeof(ortc_blob_entry)});
  for (const List &list : lists)
    put(list.entry);
  align();
  ortc_device_code code = {uint32_t(images.size()),  sizeof(ortc_device_image),  0,
                           uint32_t(kernels.size()), sizeof(ortc_device_kernel), 0};
  size_t codeAt = put(code);
  std::vector<uint32_t> listAt;
  for (const List &list : lists) {
    align();
    ortc_launch_list row = {uint32_t(list.launches.size()),  sizeof(ortc_launch),          0,
                            uint32_t(list.arguments.size()), sizeof(ortc_launch_argument), 0};
    size_t at = put(row);
    listAt.push_back(uint32_t(at));
    row.launches = bytes.size();
    for (const ortc_launch &launch : list.launches)
      put(launch);
    row.arguments = bytes.size();
    for (const ortc_launch_argument &argument : list.arguments)
      put(argument);
    std::memcpy(bytes.data() + at, &row, sizeof row);
  }
  for (size_t i = 0; i < lists.size(); ++i)
    std::memcpy(bytes.data() + sizeof(ortc_blob) + i * sizeof(ortc_blob_entry) +
                    offsetof(ortc_blob_entry, offset),
                &listAt[i], sizeof listAt[i]);
  auto putText = [&](const std::string &text) {
    size_t at = bytes.size();
    bytes.insert(bytes.end(), text.c_str(), text.c_str() + text.size() + 1);
    return at;
  };
  std::vector<ortc_device_image> imageRows;
  for (const Image &image : images) {
    size_t at = putText(image.text);
    imageRows.push_back({image.kind, image.processor, at, bytes.size() - at});
  }
  std::vector<ortc_device_kernel> kernelRows;
  for (const Kernel &kernel : kernels)
    kernelRows.push_back(
        {uint32_t(putText(kernel.name)), kernel.threads, kernel.shared, kernel.arguments, ORTC_NONE, 0});
  align();
  code.images = bytes.size();
  for (const ortc_device_image &row : imageRows)
    put(row);
  code.kernels = bytes.size();
  for (const ortc_device_kernel &row : kernelRows)
    put(row);
  std::memcpy(bytes.data() + codeAt, &code, sizeof code);
  return bytes;
}

ortc_launch_argument argument(ortc_argument_kind kind, uint64_t offset, uint64_t bytes,
                              std::vector<int64_t> strides) {
  ortc_launch_argument row{};
  row.kind = kind;
  row.offset = offset;
  row.bytes = bytes;
  std::copy(strides.begin(), strides.end(), row.strides);
  return row;
}

static const char kKernels[] =
    "\nforward shift check_label residual mean gradient update nothing2 nothing0\n";

DeviceCode::Image makePtx(uint32_t processor, const std::string &version) {
  return {ORTC_IMAGE_PTX, processor,
          "// ptx " + std::to_string(processor) + "\n.version " + version + kKernels};
}

DeviceCode::Image makeHsaco(const std::string &processor) {
  return {ORTC_IMAGE_HSACO, 0, "// hsaco " + processor + kKernels};
}

DeviceCode makeDeviceCode(Maker maker) {
  DeviceCode code;
  code.images = {maker == Maker::Nvidia ? makePtx() : makeHsaco()};
  // Places as in steps.c.
  auto w = argument(ORTC_ARGUMENT_PERSISTENT, 0, 24), momentum = argument(ORTC_ARGUMENT_PERSISTENT, 64, 24),
       step = argument(ORTC_ARGUMENT_PERSISTENT, 128, 8), rate = argument(ORTC_ARGUMENT_PERSISTENT, 192, 4),
       shift = argument(ORTC_ARGUMENT_CONSTANTS, 0, 8), loss = argument(ORTC_ARGUMENT_TRANSIENT, 0, 4),
       gradient = argument(ORTC_ARGUMENT_TRANSIENT, 64, 24),
       residual = argument(ORTC_ARGUMENT_TRANSIENT, 128, 32),
       status = argument(ORTC_ARGUMENT_STATUS, 0, sizeof(ortc_device_status));
  auto external = [](uint32_t i, uint64_t bytes) { return argument(ORTC_ARGUMENT_EXTERNAL, i, bytes); };
  auto addLoss = [&](uint32_t batch, const ortc_launch_argument &y) {
    auto label = external(1, 8 * batch);
    code.launch("check_label", batch, {label, status});
    code.launch("residual", batch, {y, label, residual});
    code.launch("mean", batch, {residual, loss, status});
  };
  auto x4 = external(0, 48), y4 = external(2, 32), kept = argument(ORTC_ARGUMENT_TRANSIENT, 192, 32);
  auto addUpdate = [&] { code.launch("update", 1, {w, momentum, gradient, rate, step, status}); };
  code.begin(ORTC_ENTRY_TRAIN);
  code.launch("forward", 4, {x4, w, y4});
  addLoss(4, y4);
  code.launch("gradient", 4, {residual, x4, gradient});
  addUpdate();
  code.begin(ORTC_ENTRY_EVAL);
  code.launch("forward", 4, {x4, w, y4});
  addLoss(4, y4);
  code.begin(ORTC_ENTRY_PREDICT);
  code.launch("forward", 4, {x4, w, external(1, 32)});
  code.launch("shift", 4, {external(1, 32), shift});
  code.begin(ORTC_ENTRY_GRADIENTS);
  code.launch("forward", 4, {x4, w, kept});
  addLoss(4, kept);
  code.launch("gradient", 4, {residual, x4, gradient});
  code.begin(ORTC_ENTRY_UPDATE);
  addUpdate();
  code.begin(ORTC_ENTRY_PREDICT, 1);
  code.launch("forward", 1, {external(0, 12), w, external(1, 8)});
  code.launch("shift", 1, {external(1, 8), shift});
  code.begin(ORTC_ENTRY_EVAL, 1);
  code.launch("forward", 1, {external(0, 12), w, external(2, 8)});
  addLoss(1, external(2, 8));
  return code;
}

static artifact::Code makeSection(ortc_architecture architecture, unsigned feature, const std::string &name,
                                  const DeviceCode &code) {
  artifact::Code section;
  section.name = name;
  section.architecture = architecture;
  section.features = uint64_t(1) << feature;
  section.bytes = code.make();
  return section;
}
artifact::Code makeSection(ortc_ptx_feature feature, const std::string &name, const DeviceCode &code) {
  return makeSection(ORTC_ARCH_PTX, feature, name, code);
}
artifact::Code makeSection(ortc_amdgpu_feature feature, const std::string &name, const DeviceCode &code) {
  return makeSection(ORTC_ARCH_AMDGPU, feature, name, code);
}

Artifact makeDeviceArtifact(const DeviceCode &code) {
  Artifact artifact = makeArtifact();
  artifact.codes.push_back(makeSection(ORTC_PTX_SM_80, "sm_80", code));
  return artifact;
}
Artifact makeDeviceArtifact(Maker maker) {
  if (maker == Maker::Nvidia)
    return makeDeviceArtifact();
  Artifact artifact = makeArtifact();
  artifact.codes.push_back(makeSection(ORTC_AMDGPU_GFX90A, "gfx90a", makeDeviceCode(maker)));
  return artifact;
}

static FakeDriver &findFake() {
  for (const char *variable : {"ORTC_CUDA_DRIVER", "ORTC_HIP_DRIVER"})
    setenv(variable, ORTC_FAKE_DRIVER, 1);
  void *library = dlopen(ORTC_FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL);
  auto **fake = static_cast<FakeDriver **>(library ? dlsym(library, "fake_driver") : nullptr);
  if (!fake) {
    ADD_FAILURE() << dlerror();
    abort();
  }
  return **fake;
}

FakeDevice::FakeDevice(Maker maker) : maker(maker), fake(findFake()) {
  fake = FakeDriver();
  host.size = sizeof host;
}

FakeDevice::~FakeDevice() {
  maker == Maker::Nvidia ? ortc_cuda_close(host.device) : ortc_hip_close(host.device);
  EXPECT_EQ(fake.live, 0) << "something of the driver's was not given back";
}

ortc_status FakeDevice::open(uint32_t ordinal) {
  return maker == Maker::Nvidia ? ortc_cuda_open(ordinal, &host.device, &message)
                                : ortc_hip_open(ordinal, &host.device, &message);
}

std::string FakeDevice::takeLog() {
  std::string log;
  std::swap(log, fake.log);
  return log;
}

} // namespace ortc::test
