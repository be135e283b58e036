// Performs launches, copies and fills.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/driver/Work.h"

#include <cstring>
#include <sys/uio.h>
#include <unistd.h>

#include "test/gpu/emulator/driver/Device.h"

namespace ortc::emulator {
namespace {

constexpr uint32_t kMostThreads = 1024, kMostInZ = 64, kMostInGrid = 65535;

/// Reads the host's memory; false where there is none, which a plain read would not survive.
bool readHost(void *to, const void *from, size_t bytes) {
  iovec local = {to, bytes}, remote = {const_cast<void *>(from), bytes};
  ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (got >= 0)
    return size_t(got) == bytes;
  // Not permitted here: believe the caller, but for pointers that are surely none.
  if (reinterpret_cast<uintptr_t>(from) < 4096)
    return false;
  std::memcpy(to, from, bytes);
  return true;
}

/// Where rows of the device are in the host's memory; null after a message.
std::byte *rowsOf(DeviceMemory &memory, uint64_t at, const CopyWork &work, uint64_t pitch, const char *what) {
  uint64_t bytes = (work.height - 1) * pitch + work.width;
  std::byte *data = memory.find(at, bytes);
  if (!data)
    say("%s of %llu bytes at 0x%llx is out of bounds", what, (unsigned long long)bytes,
        (unsigned long long)at);
  return data;
}

ortc_cu_result performCopy(Device &device, const CopyWork &work) {
  if (!work.width || !work.height)
    return ORTC_CU_SUCCESS;
  DeviceMemory &memory = device.memory;
  const std::byte *from =
      work.taken.empty() ? reinterpret_cast<const std::byte *>(work.from) : work.taken.data();
  std::byte *to = reinterpret_cast<std::byte *>(work.to);
  if (work.isFromDevice)
    from = rowsOf(memory, work.from, work, work.fromPitch, "copy from device memory");
  if (work.isToDevice)
    to = rowsOf(memory, work.to, work, work.toPitch, "copy to device memory");
  if (!from || !to)
    return ORTC_CU_INVALID_VALUE;
  const MemoryView &view = memory.view();
  for (uint64_t row = 0; row < work.height; ++row) {
    std::memmove(to + row * work.toPitch, from + row * work.fromPitch, work.width);
    device.copiedBytes += work.width;
    const uint64_t source = work.from + row * work.fromPitch, target = work.to + row * work.toPitch;
    if (work.isToDevice && work.isFromDevice) // what was never written stays so
      std::memmove(view.state + (target - view.base), view.state + (source - view.base), work.width);
    else if (work.isToDevice)
      memory.markWritten(target, work.width);
    else if (device.options.isChecked && !device.hasSaidUnwritten && !memory.isWritten(source, work.width)) {
      device.hasSaidUnwritten = true;
      say("copy of %llu bytes at 0x%llx to the host has bytes that were never written",
          (unsigned long long)work.width, (unsigned long long)source);
    }
  }
  return ORTC_CU_SUCCESS;
}

ortc_cu_result performFill(Device &device, const FillWork &work) {
  const uint64_t bytes = work.count * work.bytes;
  std::byte *to = device.memory.find(work.to, bytes);
  if (!to || work.to % work.bytes) {
    say("fill of %llu bytes at 0x%llx is %s", (unsigned long long)bytes, (unsigned long long)work.to,
        to ? "misaligned" : "out of bounds");
    return ORTC_CU_INVALID_VALUE;
  }
  for (uint64_t k = 0; k < work.count; ++k)
    std::memcpy(to + k * work.bytes, &work.value, work.bytes);
  device.memory.markWritten(work.to, bytes);
  return ORTC_CU_SUCCESS;
}

} // namespace

ortc_cu_result perform(Device &device, const Work &work) {
  if (const auto *launch = std::get_if<LaunchWork>(&work))
    return device.runLaunch(*launch);
  if (const auto *copy = std::get_if<CopyWork>(&work))
    return performCopy(device, *copy);
  if (const auto *fill = std::get_if<FillWork>(&work))
    return performFill(device, *fill);
  ortc_cu_event_s &event = *std::get<EventWork>(work).event;
  event.time = std::chrono::steady_clock::now();
  return ORTC_CU_SUCCESS;
}

ortc_cu_result readParams(const Kernel &kernel, void **params, void **extra, std::vector<std::byte> &values) {
  values.assign(kernel.paramBytes, std::byte(0));
  const void *buffer = nullptr;
  size_t bytes = 0;
  for (; extra && *extra != ORTC_CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == ORTC_CU_LAUNCH_PARAM_BUFFER_POINTER)
      buffer = extra[1];
    else if (*extra == ORTC_CU_LAUNCH_PARAM_BUFFER_SIZE)
      bytes = *static_cast<const size_t *>(extra[1]);
    else
      return ORTC_CU_INVALID_VALUE;
  }
  if (buffer) {
    if (bytes != kernel.paramBytes) {
      say("kernel '%s' has %u bytes of parameters, given are %zu", kernel.name.c_str(), kernel.paramBytes,
          bytes);
      return ORTC_CU_INVALID_VALUE;
    }
    std::memcpy(values.data(), buffer, bytes);
  } else if (!kernel.params.empty()) {
    for (size_t k = 0; k < kernel.params.size(); ++k) {
      const KernelParam &param = kernel.params[k];
      void *value = nullptr;
      if (!params || !readHost(&value, params + k, sizeof value) || !value ||
          !readHost(values.data() + param.offset, value, param.bytes)) {
        say("kernel '%s' has %zu parameters, and number %zu ('%s') is not given", kernel.name.c_str(),
            kernel.params.size(), k, param.name.c_str());
        return ORTC_CU_INVALID_VALUE;
      }
    }
  }
  for (const KernelParam &param : kernel.params) {
    uint64_t address = 0;
    if (param.pointerAlign <= 1)
      continue;
    std::memcpy(&address, values.data() + param.offset, sizeof address);
    if (address % param.pointerAlign) {
      say("kernel '%s': parameter '%s' is 0x%llx but promises an alignment of %llu", kernel.name.c_str(),
          param.name.c_str(), (unsigned long long)address, (unsigned long long)param.pointerAlign);
      return ORTC_CU_INVALID_VALUE;
    }
  }
  return ORTC_CU_SUCCESS;
}

ortc_cu_result checkLaunch(const ortc_cu_kernel_s &handle, const LaunchWork &work, const Options &options) {
  const Kernel &kernel = handle.kernel;
  const char *name = kernel.name.c_str();
  const uint32_t *g = work.grid, *b = work.block;
  const uint64_t threads = uint64_t(b[0]) * b[1] * b[2];
  if (!threads || !g[0] || !g[1] || !g[2] || threads > kMostThreads || b[2] > kMostInZ || g[0] > INT32_MAX ||
      g[1] > kMostInGrid || g[2] > kMostInGrid) {
    say("kernel '%s': no grid can be (%u,%u,%u) blocks of (%u,%u,%u) threads", name, g[0], g[1], g[2], b[0],
        b[1], b[2]);
    return ORTC_CU_INVALID_VALUE;
  }
  const uint32_t *most = kernel.maxThreads;
  const uint64_t allowed = uint64_t(most[0]) * most[1] * most[2];
  const bool isExact = b[0] == most[0] && b[1] == most[1] && b[2] == most[2];
  if (allowed && (kernel.isExactThreads ? !isExact : threads > allowed)) {
    say("kernel '%s' is compiled for blocks of %s(%u,%u,%u) threads, this one has (%u,%u,%u)", name,
        kernel.isExactThreads ? "" : "at most ", most[0], most[1], most[2], b[0], b[1], b[2]);
    return ORTC_CU_INVALID_VALUE;
  }
  if (work.dynamicShared > handle.mostDynamicShared) {
    say("kernel '%s' is launched with %u bytes of dynamic shared memory but may have %u (its attribute says "
        "how many)",
        name, work.dynamicShared, handle.mostDynamicShared);
    return ORTC_CU_INVALID_VALUE;
  }
  (void)options;
  return ORTC_CU_SUCCESS;
}

} // namespace ortc::emulator
