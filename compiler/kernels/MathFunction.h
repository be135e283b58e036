// The mathematical functions that kernels compute.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/Operation.h"

#include <optional>

namespace ortc::kernels {

/// Functions of floating-point numbers that no machine has as an instruction, or not all have. All take one
/// operand but Pow and Atan2.
enum class MathFunction {
  Exp,
  Exp2,
  Expm1,
  Log,
  Log2,
  Log10,
  Log1p,
  Sqrt,
  Rsqrt,
  Tanh,
  Sinh,
  Cosh,
  Asinh,
  Acosh,
  Atanh,
  Erf,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Atan2,
  Pow,
  Floor,
  Ceil,
  Trunc,
  Round,
  RoundEven,
};

/// The function that a `math` op computes, or nothing for absf, copysign, fma and the like, which are
/// instructions everywhere.
std::optional<MathFunction> mathFunctionOf(mlir::Operation *op);

} // namespace ortc::kernels
