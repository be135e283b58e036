// Arm of 32 bits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/cpu/isa/Architecture.h"

namespace ortc::cpu::arm {

const Architecture &architecture();

// One level: ARMv7-A with NEON, VFPv4 and division of integers, as phones have had it since 2012, in Arm instructions.
// NEON makes denormal numbers zero whatever the mode is, so portable numerics do without it.
Target makeV7();
Target makeV7Scalar();

} // namespace ortc::cpu::arm
