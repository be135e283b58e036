// Chooses the code for the vector instructions of this processor.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/lanes/LaneTables.h"

namespace ortc::emulator {

const LaneCode &laneCode() {
  static const LaneCode code = [] {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
      return avx2::makeLaneCode();
#endif
    return portable::makeLaneCode();
  }();
  return code;
}

} // namespace ortc::emulator
