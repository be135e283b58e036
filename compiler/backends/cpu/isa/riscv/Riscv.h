// RISC-V of 64 bits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/cpu/isa/Architecture.h"

namespace ortc::cpu::riscv {

const Architecture &architecture();

// Levels: the extensions that Linux distributions have (rv64gc), without vectors; with vectors (V 1.0) of 128 bits or
// more, of which 128 are used.
Target makeBase();
Target makeVector();

} // namespace ortc::cpu::riscv
