// WebAssembly.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/cpu/isa/Architecture.h"

namespace ortc::cpu::wasm {

const Architecture &architecture();

/// One level: memory of 32 bits with vectors of 128, which browsers have had since 2021. There is no fused
/// multiply-add.
Target makeBase();

} // namespace ortc::cpu::wasm
