// From scf, vector, memref, arith and math to the LLVM dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/Target.h"

#include "mlir/IR/BuiltinOps.h"

namespace ortc::cpu {

/// Lowers `module` in place, as `emit::convertToLLVM` does. Every function with `kKernelAttribute` is then internal and
/// has an ABI entry `void <name>.entry(ptr args, i64 chunk, i64 worker)` (KernelFunction.h).
mlir::LogicalResult lowerToLLVM(mlir::ModuleOp module, const Target &target);

} // namespace ortc::cpu
