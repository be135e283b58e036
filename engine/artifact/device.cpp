// What `--device` names: this processor, or a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/device.h"

#include <bit>
#include <fstream>
#include <ortc/cuda.h>
#include <ortc/device.h>
#include <ortc/hip.h>
#include <vector>

#include "engine/artifact/device_name.h"

namespace ortc::engine {

Status Device::open(const std::string &name, Device &device) {
  device = Device();
  DeviceKind kind;
  uint32_t ordinal = 0;
  ORTC_TRY(parseDevice(name, kind, ordinal));
  device.name = name;
  if (kind == DeviceKind::Cpu)
    return Status();
  const ortc_device *opened = nullptr;
  ortc_message message{};
  if ((kind == DeviceKind::Hip ? ortc_hip_open : ortc_cuda_open)(ordinal, &opened, &message) != ORTC_OK)
    return Status::failure("--device " + name + ": " + message.text);
  device.device.reset(opened);
  return Status();
}

void Device::Close::operator()(const ortc_device *device) const {
  (device->architecture == ORTC_ARCH_AMDGPU ? ortc_hip_close : ortc_cuda_close)(device);
}

/// The sections of code in a file, each with its name. Nothing where the file is not an artifact.
static std::vector<std::pair<ortc_file_section, std::string>> listCode(const std::string &path) {
  std::vector<std::pair<ortc_file_section, std::string>> codes;
  std::ifstream file(path, std::ios::binary);
  ortc_file_header header{};
  constexpr uint32_t kMostSections = 4096;
  if (!file.read(reinterpret_cast<char *>(&header), sizeof(header)) || header.section_count > kMostSections)
    return codes;
  std::vector<ortc_file_section> sections(header.section_count);
  if (!file.read(reinterpret_cast<char *>(sections.data()),
                 static_cast<std::streamsize>(sections.size() * sizeof(ortc_file_section))))
    return codes;
  for (const ortc_file_section &strings : sections) {
    if (strings.kind != ORTC_SECTION_STRINGS)
      continue;
    for (const ortc_file_section &code : sections) {
      if (code.kind != ORTC_SECTION_CODE || code.name >= strings.bytes)
        continue;
      std::string name;
      file.seekg(static_cast<std::streamoff>(strings.offset + code.name));
      std::getline(file, name, '\0');
      codes.emplace_back(code, name.substr(0, 64));
    }
  }
  return codes;
}

/// The newest processor of NVIDIA's that a device is at least, or which of AMD's it is.
static std::string nameProcessor(const ortc_device &device) {
  static const char *const kPtx[] = {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};
  static_assert(std::size(kPtx) == ORTC_PTX_SM_90A);
  static const char *const kAmdgpu[] = {"gfx90a", "gfx942", "gfx1100"};
  static_assert(std::size(kAmdgpu) == ORTC_AMDGPU_FEATURES);
  uint64_t features = device.features;
  if (device.architecture == ORTC_ARCH_PTX)
    features &= ~(uint64_t(1) << ORTC_PTX_SM_90A); // code for sm_90 runs on newer ones, too
  auto newest = static_cast<size_t>(std::bit_width(features)) - 1;
  return device.architecture == ORTC_ARCH_PTX ? kPtx[newest] : kAmdgpu[newest];
}

/// The target that can most of those which this processor runs; "" without any.
static std::string nameThisProcessor() {
  auto has = [features = ortc_host_features()](uint64_t bits) { return (features & bits) == bits; };
  switch (ortc_host_architecture()) {
  case ORTC_ARCH_X86_64:
    return has(ORTC_X86_64_V4) ? "x86-64-v4" : has(ORTC_X86_64_V3) ? "x86-64-v3" : "x86-64";
  case ORTC_ARCH_AARCH64:
    return "aarch64";
  case ORTC_ARCH_RISCV64:
    return has(ORTC_RISCV_V) ? "riscv64-v" : "riscv64";
  case ORTC_ARCH_ARMV7:
    return has(ORTC_ARM_NEON | ORTC_ARM_VFPV4 | ORTC_ARM_IDIVA) ? "armv7" : "";
  default:
    return "";
  }
}

std::string explainTarget(const std::string &path, const Device &device) {
  std::string names, devices;
  bool hasSuchCode = false, isLinked = false;
  for (const auto &[code, name] : listCode(path)) {
    names += (names.empty() ? "" : ", ") + name;
    isLinked |= (code.features & ORTC_FEATURE_LINKED) != 0;
    hasSuchCode |= device.get() && code.architecture == device.get()->architecture;
    const char *option = code.architecture == ORTC_ARCH_PTX      ? "--device cuda"
                         : code.architecture == ORTC_ARCH_AMDGPU ? "--device hip"
                                                                 : "";
    if (devices.find(option) == std::string::npos)
      devices += (devices.empty() ? "run it with " : " or ") + std::string(option);
  }
  if (names.empty())
    return "";
  if (isLinked)
    return "is the image of a linked model: its code for " + names +
           " is in model.a of ortc train --emit static, " +
           "and in the programs that are linked with it; model.ortc beside model.a has both";
  std::string text = "the artifact has code for " + names + ", not for ";
  if (!device.get()) {
    std::string own = nameThisProcessor();
    return text + "this processor" + (own.empty() ? "" : " (" + own + ")") + "; " + devices +
           (devices.empty() ? "" : ", or ") + "compile it with --target " +
           (own.empty() ? "" : own + " or ") + "all";
  }
  std::string processor = nameProcessor(*device.get());
  return text + device.getName() + (hasSuchCode ? " (" + std::string(device.get()->processor) + ")" : "") +
         "; compile it with --target " + processor;
}

} // namespace ortc::engine
