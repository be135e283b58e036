// Short words for building tensor programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What legalisation, gradient rules, losses and optimizers are written with. Result types are inferred;
// arithmetic needs equal types and never broadcasts by itself (use broadcastLike).
#pragma once

#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace ortc::nn {

class TensorBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using mlir::ImplicitLocOpBuilder::ImplicitLocOpBuilder;
  using Value = mlir::Value;
  using Ints = llvm::ArrayRef<int64_t>;

  static mlir::RankedTensorType typeOf(Value value) {
    return mlir::cast<mlir::RankedTensorType>(value.getType());
  }
  static Ints shapeOf(Value value) { return typeOf(value).getShape(); }
  static mlir::Type elementOf(Value value) { return typeOf(value).getElementType(); }
  static int64_t rankOf(Value value) { return typeOf(value).getRank(); }

  // Constants: a splat of `type`; for integer and boolean types the value is truncated to an integer.
  Value constant(mlir::RankedTensorType type, double value);
  Value constantLike(Value like, double value) { return constant(typeOf(like), value); }
  Value scalar(mlir::Type element, double value) {
    return constant(mlir::RankedTensorType::get({}, element), value);
  }
  /// i1: where elements of an integer tensor are not `value`, which need not fit their type.
  Value differsFrom(Value x, int64_t value);
  Value zerosLike(Value like) { return constantLike(like, 0); }

  // Movement.
  Value broadcast(Value x, Ints shape, Ints dimensions);
  /// NumPy rules: dimensions are aligned at the end.
  Value broadcastTo(Value x, Ints shape);
  /// Undoes the dropping of `axes` (sorted): x has the dimensions of `shape` that are not in `axes`.
  Value broadcastAlong(Value x, Ints shape, Ints axes);
  Value reshape(Value x, Ints shape);
  Value transpose(Value x, Ints permutation);
  /// starts, sizes and strides per dimension.
  Value slice(Value x, Ints starts, Ints sizes, Ints strides = {});
  /// `size` elements from `start` on along one axis.
  Value sliceAxis(Value x, int64_t axis, int64_t start, int64_t size);
  Value pad(Value x, Value value, Ints low, Ints high, Ints interior = {});
  Value padZeros(Value x, Ints low, Ints high, Ints interior = {});
  Value concat(mlir::ValueRange inputs, int64_t axis);
  Value reverse(Value x, Ints axes);
  Value iota(mlir::RankedTensorType type, int64_t axis);
  /// x without a gradient.
  Value detach(Value x) { return DetachOp::create(*this, x.getType(), x); }

  // Reduction; `axes` sorted, dropped (keepdims: kept with size 1).
  Value reduce(ReduceKind kind, Value x, Ints axes, bool keepDims = false);
  Value sum(Value x, Ints axes, bool keepDims = false) { return reduce(ReduceKind::sum, x, axes, keepDims); }
  Value mean(Value x, Ints axes, bool keepDims = false);
  /// {mean, variance} without the reduced axes.
  std::pair<Value, Value> moments(Value x, Ints axes);
  Value softmax(Value x, int64_t axis);
  Value logSoftmax(Value x, int64_t axis);

  // Contraction.
  Value dot(Value lhs, Value rhs, Ints lhsBatch, Ints rhsBatch, Ints lhsContract, Ints rhsContract,
            bool exact = false);
  /// Plain matrix product of rank-2 operands, optionally transposed.
  Value matmul(Value lhs, Value rhs, bool transposeLhs = false, bool transposeRhs = false);

  // Elementwise on equal types. Integers use signed arithmetic where it matters.
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, Value b);
  Value neg(Value a);
  Value addScalar(Value a, double value) { return add(a, constantLike(a, value)); }
  Value mulScalar(Value a, double value) { return mul(a, constantLike(a, value)); }
  /// Floating point: ordered comparison except `une`; integers: signed.
  Value compare(mlir::arith::CmpFPredicate predicate, Value a, Value b);
  Value compare(mlir::arith::CmpIPredicate predicate, Value a, Value b);
  Value select(Value condition, Value a, Value b);
  /// max and min of floating point pass NaN on; integers are signed.
  Value maximum(Value a, Value b);
  Value minimum(Value a, Value b);
  Value exp(Value a);
  Value log(Value a);
  Value sqrt(Value a);
  Value rsqrt(Value a);
  Value tanh(Value a);
  Value abs(Value a);
  Value erf(Value a);
  Value pow(Value a, Value b);
  Value logicalNot(Value a);
  Value logicalAnd(Value a, Value b);
  Value logicalOr(Value a, Value b);
  /// Positions in the row-major volume of `input` (spatial sizes) of what `taps`, a result of max_pool,
  /// names: i32, or i64 for volumes of 2^31 and more.
  Value tapPositions(Value taps, Ints input, Ints window, Ints strides, Ints low, Ints dilations);
  /// Between any two element types as ONNX Cast does it (float to bool: nonzero; float to integer: towards zero).
  Value cast(Value a, mlir::Type element, bool fromUnsigned = false, bool toUnsigned = false);
};

} // namespace ortc::nn
