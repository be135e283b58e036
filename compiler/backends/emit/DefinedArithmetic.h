// Arithmetic without undefined operands.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integer division, shifts, casts from floats and the float remainder are undefined, trap or lose all digits for some
// operands when they become single instructions. Here every operand has a result, the one that the evaluator gives:
//   x / 0 = 0, x % 0 = 0; the least number / -1 is itself, with remainder 0
//   a shift by the width or more leaves nothing (the sign, for an arithmetic shift to the right)
//   casts to integers truncate, saturate, and turn NaN into 0
//   a power of integers wraps around; with a negative exponent it is 1 / x^-y, truncated (0 for x = 0)
//   the float remainder is exact, as C's fmod
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ortc::emit {

/// The value of `op`, an operation of that kind, for `operands` (scalars or vectors); null for every other operation.
/// `type` is the result's.
mlir::Value emitDefined(mlir::ImplicitLocOpBuilder &b, mlir::Operation *op, mlir::ValueRange operands,
                        mlir::Type type);

} // namespace ortc::emit
