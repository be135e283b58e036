// From scf, vector, memref, arith and math to the LLVM dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace ortc::emit {

struct LoweringOptions {
  unsigned indexBits = 64;      ///< of indices: fewer than 64 only where there are no vectors
  bool halfConversions = false; ///< f16 to f32 and back are instructions of the target
};

/// Converts `module` in place.
///
/// Before: functions of func, scf, cf, arith, math (only what the target has as an instruction: see MathExpansion.h),
/// ub, vector, memref on static identity-layout buffers (load, store, view, reinterpret_cast, collapse_shape and
/// expand_shape, globals; no alloc, no copy) and llvm.
/// After: only llvm ops. Memref arguments are bare pointers.
mlir::LogicalResult convertToLLVM(mlir::ModuleOp module, const LoweringOptions &options = {});

} // namespace ortc::emit
