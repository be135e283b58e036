// Det, Inverse.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elimination written out step by step, for small matrices.
#include "compiler/legalize/Node.h"

using namespace mlir;

namespace ortc::legalize::handlers {

/// No larger matrix is written out.
static constexpr int64_t kMostRows = 64;

/// A batch of square matrices as [batch, rows, rows].
static LogicalResult readMatrices(Node &n, Value &x) {
  int64_t rank = n.rank(0);
  if (rank < 2 || n.shape(0)[rank - 1] != n.shape(0)[rank - 2])
    return n.refuse("its input of shape " + shapeText(n.shape(0)) + " holds no square matrices");
  int64_t rows = n.shape(0).back();
  if (rows > kMostRows)
    return n.refuse("matrices of more than " + Twine(kMostRows) + " rows are not supported");
  x = n.b.reshape(n[0], {elementCount(n.shape(0).drop_back(2)), rows, rows});
  return success();
}

/// The elements of the rows of x [batch, n] at indices [batch, m].
static Value take(TensorBuilder &b, Value x, Value indices) {
  auto type = RankedTensorType::get(TensorBuilder::shapeOf(indices), TensorBuilder::elementOf(x));
  return nn::GatherElementsOp::create(b, type, x, indices, 1);
}

static Value isZero(TensorBuilder &b, Value x) {
  return b.compare(arith::CmpFPredicate::OEQ, x, b.zerosLike(x));
}

/// x [batch, n] and y [batch, m] to [batch, n, m], combined.
template <typename Combine> static Value outer(TensorBuilder &b, Value x, Value y, Combine combine) {
  Shape shape = {TensorBuilder::shapeOf(x)[0], TensorBuilder::shapeOf(x)[1], TensorBuilder::shapeOf(y)[1]};
  return combine(b.broadcast(x, shape, {0, 1}), b.broadcast(y, shape, {0, 2}));
}

// The pivot is the largest element of all that remain; its row and its column leave the matrix, as in an expansion by
// minors. So the steps are exact for singular matrices, too: when a pivot is zero, so is all that remains.
LogicalResult determinant(Node &n) {
  TensorBuilder &b = n.b;
  Value x;
  if (failed(readMatrices(n, x)))
    return failure();
  int64_t batch = TensorBuilder::shapeOf(x)[0], rows = TensorBuilder::shapeOf(x)[1];
  Type element = n.element(0), integer = b.getI32Type();
  Value result = b.constant(RankedTensorType::get({batch, 1}, element), 1);
  Value flat = b.reshape(x, {batch, rows * rows});
  for (int64_t left = rows; left > 1; --left) {
    auto single = RankedTensorType::get({batch}, integer),
         line = RankedTensorType::get({batch, left - 1}, integer);
    Value place = nn::ArgReduceOp::create(b, single, nn::ReduceKind::max, b.abs(flat), 1, false);
    Value size = b.constantLike(place, static_cast<double>(left));
    Value row = arith::DivSIOp::create(b, place, size), column = arith::RemSIOp::create(b, place, size);
    auto withoutPivot = [&](Value at) {
      Value i = b.iota(line, 1), wide = b.broadcast(at, {batch, left - 1}, {0});
      return b.select(b.compare(arith::CmpIPredicate::sge, i, wide), b.addScalar(i, 1), i);
    };
    Value rowStarts = b.mulScalar(withoutPivot(row), static_cast<double>(left)),
          columns = withoutPivot(column);
    Value pivot = take(b, flat, b.reshape(place, {batch, 1}));
    Value pivotRow = take(b, flat, b.add(columns, b.broadcast(b.mul(row, size), {batch, left - 1}, {0})));
    Value pivotColumn = take(b, flat, b.add(rowStarts, b.broadcast(column, {batch, left - 1}, {0})));
    Value inner = outer(b, rowStarts, columns, [&](Value r, Value c) { return b.add(r, c); });
    int64_t count = (left - 1) * (left - 1);
    Value minor = take(b, flat, b.reshape(inner, {batch, count}));
    Value divisor = b.select(isZero(b, pivot), b.constantLike(pivot, 1), pivot);
    Value factors = b.div(pivotColumn, b.broadcast(divisor, {batch, left - 1}, {0, 1}));
    Value product = outer(b, factors, pivotRow, [&](Value c, Value r) { return b.mul(c, r); });
    flat = b.sub(minor, b.reshape(product, {batch, count}));
    Value parity = arith::RemSIOp::create(b, b.add(row, column), b.constantLike(row, 2));
    Value isOdd = b.reshape(b.differsFrom(parity, 0), {batch, 1});
    result = b.mul(result, b.select(isOdd, b.neg(pivot), pivot));
  }
  if (rows > 0)
    result = b.mul(result, flat);
  return n.yield(b.reshape(result, n.shape(0).drop_back(2)));
}

// Gauss-Jordan elimination of [x, 1]: the pivot of a column is its largest element in the rows that have been
// none yet. Rows stay where they are; those of the result are taken in the order of the pivots. One step of
// Newton's method follows: it improves the result y, and its gradient is that of the inverse, -y' dy y'.
LogicalResult inverse(Node &n) {
  if (failed(n.require({0})))
    return failure();
  TensorBuilder &b = n.b;
  Value x;
  if (failed(readMatrices(n, x)))
    return failure();
  int64_t batch = TensorBuilder::shapeOf(x)[0], rows = TensorBuilder::shapeOf(x)[1];
  if (batch == 0 || rows == 0)
    return n.yield(n[0]);
  auto integers = [&](Shape shape) { return RankedTensorType::get(shape, b.getI32Type()); };
  Value diagonal = b.compare(arith::CmpIPredicate::eq, b.iota(integers({batch, rows, rows}), 1),
                             b.iota(integers({batch, rows, rows}), 2));
  Value work = b.concat({b.detach(x), b.cast(diagonal, n.element(0))}, 2);
  Value used = b.constant(RankedTensorType::get({batch, rows}, b.getI1Type()), 0),
        number = b.iota(integers({batch, rows}), 1);
  SmallVector<Value> order;
  for (int64_t column = 0; column < rows; ++column) {
    Value elements = b.reshape(b.sliceAxis(work, 2, column, 1), {batch, rows});
    Value size = b.select(used, b.constantLike(elements, -1), b.abs(elements));
    Value place = nn::ArgReduceOp::create(b, integers({batch}), nn::ReduceKind::max, size, 1, false);
    Value isPivot = b.compare(arith::CmpIPredicate::eq, number, b.broadcast(place, {batch, rows}, {0}));
    used = b.logicalOr(used, isPivot);
    order.push_back(b.reshape(place, {batch, 1}));
    // The pivot's row, [batch, 2 rows], by one gather along the rows.
    Value index = b.broadcast(place, {batch, 1, 2 * rows}, {0});
    auto rowType = RankedTensorType::get({batch, 1, 2 * rows}, n.element(0));
    Value row = b.reshape(nn::GatherElementsOp::create(b, rowType, work, index, 1), {batch, 2 * rows});
    Value pivot = b.broadcast(b.reshape(b.sliceAxis(row, 1, column, 1), {batch}), {batch, 2 * rows}, {0});
    row = b.div(row, pivot);
    Value product = outer(b, elements, row, [&](Value e, Value r) { return b.mul(e, r); });
    Value here = b.broadcast(isPivot, TensorBuilder::shapeOf(work), {0, 1});
    work = b.select(here, b.broadcast(row, TensorBuilder::shapeOf(work), {0, 2}), b.sub(work, product));
  }
  Value right = b.sliceAxis(work, 2, rows, rows);
  Value index = b.broadcast(b.concat(order, 1), {batch, rows, rows}, {0, 1});
  Value y = nn::GatherElementsOp::create(b, TensorBuilder::typeOf(right), right, index, 1);
  auto product = [&](Value l, Value r) { return b.dot(l, r, {0}, {0}, {2}, {1}, /*exact=*/true); };
  Value error = b.sub(b.cast(diagonal, n.element(0)), product(x, y));
  Value result = b.add(y, product(y, error));
  return n.yield(b.reshape(result, n.shape(0)));
}

} // namespace ortc::legalize::handlers
