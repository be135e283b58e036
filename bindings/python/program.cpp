// An artifact that is open, and what its steps take and give.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/python/program.h"

#include <algorithm>
#include <cstring>
#include <nanobind/ndarray.h>
#include <ortc/cuda.h>
#include <ortc/hip.h>

#include "bindings/python/errors.h"
#include "engine/artifact/device_name.h"

namespace nb = nanobind;

namespace ortc::python {

Device::Device(const std::string &name) {
  engine::DeviceKind kind;
  uint32_t ordinal = 0;
  if (Status parsed = engine::parseDevice(name, kind, ordinal); !parsed.isOk())
    throw nb::value_error(("device " + parsed.getMessage()).c_str());
  if (kind == engine::DeviceKind::Cpu)
    return;
  ortc_message message{};
  const bool isCuda = kind == engine::DeviceKind::Cuda;
  check((isCuda ? ortc_cuda_open : ortc_hip_open)(ordinal, &device, &message), message.text, name);
  close = isCuda ? ortc_cuda_close : ortc_hip_close;
  type = isCuda ? nb::device::cuda::value : nb::device::rocm::value;
  id = int(ordinal);
}

Device::~Device() {
  if (close)
    close(device);
}

Program::Program(const std::string &path, const std::string &deviceName) : device(deviceName) {
  ortc_host host = ORTC_INIT(ortc_host);
  host.device = device.get();
  ortc_message message{};
  ortc_status status;
  {
    nb::gil_scoped_release release;
    status = ortc_program_open_file(path.c_str(), &host, &program, &message);
  }
  check(status, message.text, path);
  try {
    info = ORTC_INIT(ortc_program_info);
    check(ortc_program_get_info(program, &info), "", path);
    const void *data = nullptr;
    uint64_t bytes = 0;
    check(ortc_program_section(program, ORTC_SECTION_TENSORS, &data, &bytes), "", path + ": tensor table");
    rows = static_cast<const ortc_file_tensor *>(data);
    readEntries();
  } catch (...) {
    ortc_program_close(program);
    throw;
  }
}

Program::~Program() { ortc_program_close(program); }

void Program::readEntries() {
  for (uint32_t i = 0; const char *name = ortc_binding_name(program, i); ++i)
    bindings.emplace_back().name = name;
  ortc_entry_info entry = ORTC_INIT(ortc_entry_info);
  for (uint32_t e = 0; ortc_entry_get(program, e, &entry) == ORTC_OK; ++e) {
    if (entry.role >= ORTC_ENTRY_ROLES || entry.segment || entry.binding >= bindings.size())
      continue;
    Binding &binding = bindings[entry.binding];
    Entry &found = binding.entries[entry.role];
    found.exists = true;
    for (uint32_t n = 0; n < entry.value_count; ++n) {
      ortc_tensor_info value = ORTC_INIT(ortc_tensor_info);
      check(ortc_entry_value(program, e, n, &value), "", entry.name);
      if (value.role != ORTC_ROLE_INPUT && value.role != ORTC_ROLE_OUTPUT)
        continue;
      auto place = std::find_if(binding.values.begin(), binding.values.end(),
                                [&](const Spec &spec) { return spec.name == value.name; });
      if (place == binding.values.end()) {
        Spec spec;
        spec.name = value.name;
        spec.key = nb::steal<nb::str>(PyUnicode_InternFromString(value.name));
        spec.isInput = value.role == ORTC_ROLE_INPUT;
        spec.type = value.dtype;
        spec.rank = value.rank;
        spec.bytes = value.bytes;
        std::copy_n(value.dims, ORTC_MAX_RANK, spec.dims);
        place = binding.values.insert(place, spec);
      }
      (place->isInput ? found.inputs : found.outputs).push_back(uint32_t(place - binding.values.begin()));
    }
  }
}

ortc_tensor_info Program::getTensor(uint32_t index) const {
  ortc_tensor_info tensor = ORTC_INIT(ortc_tensor_info);
  check(ortc_tensor_get(program, index, &tensor), "", "tensor " + std::to_string(index));
  return tensor;
}

ortc_tensor_info Program::findTensor(const std::string &name) const {
  ortc_tensor_info tensor = ORTC_INIT(ortc_tensor_info);
  if (ortc_tensor_find(program, name.c_str(), &tensor) != ORTC_OK)
    raise(ORTC_E_NOT_FOUND, "there is no tensor '" + name + "'");
  return tensor;
}

ortc_tensor_info Program::findGradient(const std::string &parameter) const {
  uint32_t owner = findTensor(parameter).index;
  for (uint32_t i = 0; i < info.tensor_count; ++i)
    if (ortc_tensor_info tensor = getTensor(i); tensor.role == ORTC_ROLE_GRADIENT && tensor.owner == owner)
      return tensor;
  raise(ORTC_E_NOT_FOUND,
        "there is no gradient of '" + parameter + "'; compile with gradients=True, and train it");
}

nb::bytes Program::readSection(uint32_t kind) const {
  const void *data = nullptr;
  uint64_t bytes = 0;
  check(ortc_program_section(program, kind, &data, &bytes), "", "section " + std::to_string(kind));
  return nb::bytes(data, size_t(bytes));
}

} // namespace ortc::python
