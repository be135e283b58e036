// What streams and graphs consist of: launches, copies, fills.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <memory>
#include <variant>
#include <vector>

#include "test/gpu/emulator/driver/LoadedModule.h"

namespace ortc::emulator {

class Device;

struct LaunchWork {
  std::shared_ptr<const ortc_cu_kernel_s> kernel;
  uint32_t grid[3], block[3];
  uint32_t dynamicShared;
  std::vector<std::byte> params;
};

/// `height` rows of `width` bytes; addresses are of the host or of the device.
struct CopyWork {
  bool isFromDevice, isToDevice;
  uint64_t from, to;
  uint64_t width, height, fromPitch, toPitch;
  /// What a copy from pageable memory took when it was called.
  std::vector<std::byte> taken;
};

struct FillWork {
  uint64_t to, count;
  uint32_t value, bytes;
};

struct EventWork {
  ortc_cu_event event;
};

using Work = std::variant<LaunchWork, CopyWork, FillWork, EventWork>;

/// Does it now; what goes wrong in a kernel stays with the device.
ortc_cu_result perform(Device &device, const Work &work);

/// The values that `params` or `extra` of a launch give to the kernel's parameters.
ortc_cu_result readParams(const Kernel &kernel, void **params, void **extra, std::vector<std::byte> &values);

/// Whether the kernel can be launched so; says on stderr why not.
ortc_cu_result checkLaunch(const ortc_cu_kernel_s &kernel, const LaunchWork &work, const Options &options);

} // namespace ortc::emulator
