// A module on the device: its variables in device memory, its kernels ready to run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "test/gpu/emulator/cuda_driver.h"
#include "test/gpu/emulator/driver/DeviceMemory.h"
#include "test/gpu/emulator/driver/Options.h"
#include "test/gpu/emulator/run/Program.h"

/// What a handle of a kernel points to.
struct ortc_cu_kernel_s {
  ortc::emulator::Kernel kernel;
  int ptxVersion = 0;
  /// What a launch may ask for beside the static shared memory.
  uint32_t mostDynamicShared = 0;
};

struct ortc_cu_module_s {
  std::map<std::string, std::shared_ptr<ortc_cu_kernel_s>> kernels;
  /// Of the module's variables.
  std::vector<uint64_t> allocations;
};

namespace ortc::emulator {

/// Why a module is refused.
struct LoadError {
  ortc_cu_result result;
  std::string message;
};

/// Bytes of shared memory that a block may have: usually, and when the kernel's attribute asks for it.
uint32_t sharedLimit(int capability, bool isAskedFor);

/// Loads PTX; throws LoadError.
std::unique_ptr<ortc_cu_module_s> loadModule(const char *image, const Options &options, DeviceMemory &memory);

} // namespace ortc::emulator
