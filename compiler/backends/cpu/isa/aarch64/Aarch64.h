// AArch64: Arm's 64-bit processors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/cpu/isa/Architecture.h"

namespace ortc::cpu::aarch64 {

const Architecture &architecture();

/// Every processor of Armv8-A: NEON, 32 registers of 128 bits.
Target makeBase();

} // namespace ortc::cpu::aarch64
