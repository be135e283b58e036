// The families of machines that there are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/Registry.h"

#include "compiler/backends/cpu/CpuBackend.h"
#include "compiler/backends/gpu/GpuBackend.h"

namespace ortc::backends {

std::vector<const Backend *> listBackends() {
  static const cpu::CpuBackend cpu;
  static const gpu::GpuBackend gpu;
  return {&cpu, &gpu};
}

} // namespace ortc::backends
