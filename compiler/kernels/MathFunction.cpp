// The mathematical functions that kernels compute.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/MathFunction.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ortc::kernels {

std::optional<MathFunction> mathFunctionOf(Operation *op) {
  using F = std::optional<MathFunction>;
  return llvm::TypeSwitch<Operation *, F>(op)
      .Case<math::ExpOp>([](auto) { return F(MathFunction::Exp); })
      .Case<math::Exp2Op>([](auto) { return F(MathFunction::Exp2); })
      .Case<math::ExpM1Op>([](auto) { return F(MathFunction::Expm1); })
      .Case<math::LogOp>([](auto) { return F(MathFunction::Log); })
      .Case<math::Log2Op>([](auto) { return F(MathFunction::Log2); })
      .Case<math::Log10Op>([](auto) { return F(MathFunction::Log10); })
      .Case<math::Log1pOp>([](auto) { return F(MathFunction::Log1p); })
      .Case<math::SqrtOp>([](auto) { return F(MathFunction::Sqrt); })
      .Case<math::RsqrtOp>([](auto) { return F(MathFunction::Rsqrt); })
      .Case<math::TanhOp>([](auto) { return F(MathFunction::Tanh); })
      .Case<math::SinhOp>([](auto) { return F(MathFunction::Sinh); })
      .Case<math::CoshOp>([](auto) { return F(MathFunction::Cosh); })
      .Case<math::AsinhOp>([](auto) { return F(MathFunction::Asinh); })
      .Case<math::AcoshOp>([](auto) { return F(MathFunction::Acosh); })
      .Case<math::AtanhOp>([](auto) { return F(MathFunction::Atanh); })
      .Case<math::ErfOp>([](auto) { return F(MathFunction::Erf); })
      .Case<math::SinOp>([](auto) { return F(MathFunction::Sin); })
      .Case<math::CosOp>([](auto) { return F(MathFunction::Cos); })
      .Case<math::TanOp>([](auto) { return F(MathFunction::Tan); })
      .Case<math::AsinOp>([](auto) { return F(MathFunction::Asin); })
      .Case<math::AcosOp>([](auto) { return F(MathFunction::Acos); })
      .Case<math::AtanOp>([](auto) { return F(MathFunction::Atan); })
      .Case<math::Atan2Op>([](auto) { return F(MathFunction::Atan2); })
      .Case<math::PowFOp>([](auto) { return F(MathFunction::Pow); })
      .Case<math::FloorOp>([](auto) { return F(MathFunction::Floor); })
      .Case<math::CeilOp>([](auto) { return F(MathFunction::Ceil); })
      .Case<math::TruncOp>([](auto) { return F(MathFunction::Trunc); })
      .Case<math::RoundOp>([](auto) { return F(MathFunction::Round); })
      .Case<math::RoundEvenOp>([](auto) { return F(MathFunction::RoundEven); })
      .Default(F());
}

} // namespace ortc::kernels
