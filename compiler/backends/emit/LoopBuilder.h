// Short words for loops and index arithmetic.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernel generators with explicit loops are written with. Constants fold; loops of one iteration are not emitted.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

#include <optional>

namespace ortc::emit {

/// Half-open range of an index.
struct IndexRange {
  mlir::Value begin, end;
};

class LoopBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using mlir::ImplicitLocOpBuilder::ImplicitLocOpBuilder;
  using Value = mlir::Value;

  Value index(int64_t value) { return mlir::arith::ConstantIndexOp::create(*this, value); }
  static std::optional<int64_t> constantOf(Value value) {
    if (llvm::APInt number; mlir::matchPattern(value, mlir::m_ConstantInt(&number)))
      return number.getSExtValue();
    return std::nullopt;
  }

  Value add(Value a, Value b) { return createOrFold<mlir::arith::AddIOp>(a, b); }
  Value add(Value a, int64_t b) { return b == 0 ? a : add(a, index(b)); }
  Value sub(Value a, Value b) { return createOrFold<mlir::arith::SubIOp>(a, b); }
  Value mul(Value a, int64_t b) { return b == 1 ? a : createOrFold<mlir::arith::MulIOp>(a, index(b)); }
  /// Of values that are not negative.
  Value div(Value a, int64_t b) { return b == 1 ? a : createOrFold<mlir::arith::DivUIOp>(a, index(b)); }
  Value rem(Value a, int64_t b) {
    return b == 1 ? index(0) : createOrFold<mlir::arith::RemUIOp>(a, index(b));
  }
  Value minimum(Value a, Value b) { return createOrFold<mlir::arith::MinSIOp>(a, b); }
  Value maximum(Value a, Value b) { return createOrFold<mlir::arith::MaxSIOp>(a, b); }
  /// ceil(max(a, 0) / b).
  Value ceilDivPositive(Value a, int64_t b) { return div(add(maximum(a, index(0)), b - 1), b); }
  Value toI32(Value value) { return mlir::arith::IndexCastOp::create(*this, getI32Type(), value); }

  /// for (i = begin; i < end; i += step) body(i).
  void loop(IndexRange range, int64_t step, llvm::function_ref<void(Value)> body) {
    auto begin = constantOf(range.begin), end = constantOf(range.end);
    if (begin && end && *end - *begin <= step) {
      if (*end > *begin)
        body(range.begin);
      return;
    }
    auto op = mlir::scf::ForOp::create(*this, range.begin, range.end, index(step));
    mlir::OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(op.getBody());
    body(op.getInductionVar());
  }
  void loop(int64_t begin, int64_t end, int64_t step, llvm::function_ref<void(Value)> body) {
    loop({index(begin), index(end)}, step, body);
  }

  /// As `loop`, carrying values: body(i, values) returns the new ones.
  llvm::SmallVector<Value> fold(IndexRange range, int64_t step, mlir::ValueRange values,
                                llvm::function_ref<llvm::SmallVector<Value>(Value, mlir::ValueRange)> body) {
    auto begin = constantOf(range.begin), end = constantOf(range.end);
    if (begin && end && *end - *begin <= step)
      return *end > *begin ? body(range.begin, values) : llvm::to_vector_of<Value>(values);
    if (values.empty()) { // such a loop has its yield already
      loop(range, step, [&](Value i) { body(i, {}); });
      return {};
    }
    auto op = mlir::scf::ForOp::create(*this, range.begin, range.end, index(step), values);
    mlir::OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(op.getBody());
    auto results = body(op.getInductionVar(), op.getRegionIterArgs());
    mlir::scf::YieldOp::create(*this, results);
    return llvm::to_vector_of<Value>(op.getResults());
  }

  /// [0, count) in pieces of `step`, and what remains as one shorter piece: body(begin, size).
  void tiles(int64_t count, int64_t step, llvm::function_ref<void(Value, int64_t)> body) {
    int64_t whole = count / step * step;
    loop(0, whole, step, [&](Value i) { body(i, step); });
    if (whole < count)
      body(index(whole), count - whole);
  }

  // A vector of `width` elements, or a scalar where `width` is 0.

  Value load(Value buffer, Value at, int64_t width) {
    if (width == 0)
      return loadScalar(buffer, at);
    auto element = mlir::cast<mlir::MemRefType>(buffer.getType()).getElementType();
    return mlir::vector::LoadOp::create(*this, mlir::VectorType::get({width}, element), buffer,
                                        mlir::ValueRange{at});
  }
  Value loadScalar(Value buffer, Value at) {
    return mlir::memref::LoadOp::create(*this, buffer, mlir::ValueRange{at});
  }
  void store(Value value, Value buffer, Value at) {
    if (!mlir::isa<mlir::VectorType>(value.getType()))
      mlir::memref::StoreOp::create(*this, value, buffer, mlir::ValueRange{at});
    else
      mlir::vector::StoreOp::create(*this, value, buffer, mlir::ValueRange{at});
  }
  /// A vector that repeats a scalar.
  Value spread(Value scalar, int64_t width) {
    if (width == 0)
      return scalar;
    return mlir::vector::BroadcastOp::create(*this, mlir::VectorType::get({width}, scalar.getType()), scalar);
  }
  Value splat(mlir::FloatType element, double value, int64_t width) {
    if (width == 0)
      return mlir::arith::ConstantOp::create(*this, getFloatAttr(element, value));
    auto type = mlir::VectorType::get({width}, element);
    return mlir::arith::ConstantOp::create(
        *this, mlir::DenseElementsAttr::get(type, getFloatAttr(element, value).getValue()));
  }
};

} // namespace ortc::emit
