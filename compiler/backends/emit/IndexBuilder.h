// Index arithmetic with constants folded while building.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

#include <algorithm>

namespace ortc::emit {

/// dynamic + constant, in elements. A null `dynamic` is zero. Keeping the constant apart lets the code generator put it
/// into the displacement of a memory operand.
struct Offset {
  Offset(int64_t constant = 0) : constant(constant) {}
  Offset(mlir::Value dynamic, int64_t constant = 0) : dynamic(dynamic), constant(constant) {}
  bool isStatic() const { return !dynamic; }

  mlir::Value dynamic;
  int64_t constant = 0;
};

/// Builds index arithmetic at the builder's insertion point.
class IndexBuilder {
public:
  IndexBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::Value constant(int64_t value) { return mlir::arith::ConstantIndexOp::create(builder, loc, value); }

  Offset add(Offset a, Offset b) {
    int64_t sum = a.constant + b.constant;
    if (!a.dynamic || !b.dynamic)
      return Offset(a.dynamic ? a.dynamic : b.dynamic, sum);
    return Offset(sumOf(a.dynamic, b.dynamic), sum);
  }
  Offset sub(Offset a, Offset b) {
    if (!b.dynamic)
      return Offset(a.dynamic, a.constant - b.constant);
    mlir::Value whole = a.dynamic ? a.dynamic : constant(0);
    mlir::Value difference = mlir::arith::SubIOp::create(builder, loc, whole, b.dynamic, kNoWrap);
    return Offset(difference, a.constant - b.constant);
  }
  Offset mul(Offset a, int64_t factor) {
    if (!a.dynamic || factor == 0)
      return Offset(a.constant * factor);
    if (factor == 1)
      return a;
    mlir::Value product = mlir::arith::MulIOp::create(builder, loc, a.dynamic, constant(factor), kNoWrap);
    return Offset(product, a.constant * factor);
  }
  mlir::Value value(Offset a) {
    if (!a.dynamic)
      return constant(a.constant);
    return a.constant ? sumOf(a.dynamic, constant(a.constant)) : a.dynamic;
  }
  /// Quotient and remainder of non-negative numbers.
  Offset div(Offset a, int64_t divisor) {
    if (!a.dynamic)
      return Offset(a.constant / divisor);
    if (divisor == 1)
      return a;
    return Offset(mlir::arith::DivUIOp::create(builder, loc, value(a), constant(divisor)));
  }
  Offset rem(Offset a, int64_t divisor) {
    if (!a.dynamic)
      return Offset(a.constant % divisor);
    if (divisor == 1)
      return Offset(0);
    return Offset(mlir::arith::RemUIOp::create(builder, loc, value(a), constant(divisor)));
  }
  Offset min(Offset a, Offset b) {
    if (!a.dynamic && !b.dynamic)
      return Offset(std::min(a.constant, b.constant));
    return Offset(mlir::arith::MinSIOp::create(builder, loc, value(a), value(b)));
  }
  mlir::Value equal(Offset a, Offset b) {
    return mlir::arith::CmpIOp::create(builder, loc, mlir::arith::CmpIPredicate::eq, value(a), value(b));
  }

private:
  // Not `nuw`: constants and strides may be negative.
  static constexpr auto kNoWrap = mlir::arith::IntegerOverflowFlags::nsw;
  mlir::Value sumOf(mlir::Value a, mlir::Value b) {
    return mlir::arith::AddIOp::create(builder, loc, a, b, kNoWrap);
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace ortc::emit
