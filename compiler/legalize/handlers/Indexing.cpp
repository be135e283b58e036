// Gather, scatter, one-hot.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Indices known at compile time are checked at once; others by nn.check_index in the program (Node::index
// does both).
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/Node.h"
#include "support/Plural.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace ortc::legalize::handlers {

/// Indices known at compile time that step evenly upwards are a slice. Null when they are not.
static Value gatherBySlice(Node &n, int64_t axis) {
  const HostTensor *known = n.constant(1);
  if (!known || known->isFloat() || known->size() == 0)
    return {};
  int64_t size = n.shape(0)[axis], count = known->size();
  auto at = [&](int64_t i) { return known->getInt(i) < 0 ? known->getInt(i) + size : known->getInt(i); };
  int64_t step = count > 1 ? at(1) - at(0) : 1;
  for (int64_t i = 0; i < count; ++i)
    if (at(i) < 0 || at(i) >= size || (i > 0 && at(i) - at(i - 1) != step))
      return {};
  if (step < 1)
    return {};
  SmallVector<int64_t> starts(n.rank(0), 0), sizes(n.shape(0)), strides(n.rank(0), 1);
  starts[axis] = at(0);
  sizes[axis] = count;
  strides[axis] = step;
  return n.b.reshape(n.b.slice(n[0], starts, sizes, strides), nn::replaceAxis(n.shape(0), axis, n.shape(1)));
}

LogicalResult gather(Node &n) {
  int64_t axis = n.getInt("axis", 0);
  if (failed(n.axis(axis, n.rank(0))))
    return failure();
  if (Value slice = gatherBySlice(n, axis))
    return n.yield(slice);
  Value indices = n.index(n[1], n.shape(0)[axis], n.name(1));
  if (!indices)
    return failure();
  auto type = RankedTensorType::get(nn::replaceAxis(n.shape(0), axis, n.shape(1)), n.element(0));
  return n.yield(nn::GatherOp::create(n.b, type, n[0], indices, axis).getResult());
}

/// Gather along the first axis, whose lookups of one row give the table no gradient.
LogicalResult embedding(Node &n) {
  TensorBuilder &b = n.b;
  if (n.rank(0) < 1)
    return n.refuse("its table is a scalar");
  int64_t rows = n.shape(0)[0], row = n.getInt("padding", 0);
  if (row < -rows || row >= rows)
    return n.refuse("its padding row is " + Twine(row) + ", and the table has " + Twine(rows) + " rows");
  Value indices = n.index(n[1], rows, n.name(1));
  if (!indices)
    return failure();
  Value y = gatherBySlice(n, 0);
  if (!y) {
    auto type = RankedTensorType::get(nn::replaceAxis(n.shape(0), 0, n.shape(1)), n.element(0));
    y = nn::GatherOp::create(b, type, n[0], indices, 0);
  }
  if (!n.isFloat(0))
    return n.yield(y);
  Value isPadding = b.compare(arith::CmpIPredicate::eq, indices,
                              b.constantLike(indices, static_cast<double>(row < 0 ? row + rows : row)));
  auto dimensions = llvm::to_vector(llvm::seq<int64_t>(0, n.rank(1)));
  isPadding = b.broadcast(isPadding, TensorBuilder::shapeOf(y), dimensions);
  return n.yield(Value(nn::StraightThroughOp::create(b, y, b.select(isPadding, b.zerosLike(y), y))));
}

LogicalResult gatherElements(Node &n) {
  int64_t axis = n.getInt("axis", 0);
  if (failed(n.axis(axis, n.rank(0))))
    return failure();
  if (n.rank(1) != n.rank(0))
    return n.refuse("its indices have " + formatCount(n.rank(1), "dimension") + ", its input " +
                    Twine(n.rank(0)));
  for (int64_t i = 0; i < n.rank(0); ++i)
    if (i != axis && n.shape(1)[i] > n.shape(0)[i])
      return n.refuse("indices of shape " + shapeText(n.shape(1)) + " do not fit an input of shape " +
                      shapeText(n.shape(0)));
  Value indices = n.index(n[1], n.shape(0)[axis], n.name(1));
  if (!indices)
    return failure();
  auto type = RankedTensorType::get(n.shape(1), n.element(0));
  return n.yield(nn::GatherElementsOp::create(n.b, type, n[0], indices, axis).getResult());
}

/// Index tuples (the last dimension of `indices`) as positions in the row-major order of `dims`; [tuples...].
static Value linearIndex(Node &n, Value indices, Ints dims, StringRef name) {
  TensorBuilder &b = n.b;
  Shape shape(TensorBuilder::shapeOf(indices));
  int64_t last = shape.size() - 1;
  shape.pop_back();
  Value result;
  int64_t stride = 1;
  for (int64_t i = dims.size(); i-- > 0;) {
    Value part = n.index(b.reshape(b.sliceAxis(indices, last, i, 1), shape), dims[i], name);
    if (!part)
      return {};
    part = b.mulScalar(part, static_cast<double>(stride));
    result = result ? b.add(result, part) : part;
    stride *= dims[i];
  }
  return result ? result : b.constant(RankedTensorType::get(shape, b.getI64Type()), 0);
}

LogicalResult gatherND(Node &n) {
  TensorBuilder &b = n.b;
  int64_t batch = n.getInt("batch_dims", 0), rank = n.rank(0);
  Ints x = n.shape(0), i = n.shape(1);
  int64_t depth = i.empty() ? 0 : i.back();
  if (i.empty() || batch < 0 || batch >= n.rank(1) || depth > rank - batch ||
      x.take_front(batch) != i.take_front(batch))
    return n.refuse("indices of shape " + shapeText(i) + " do not fit an input of shape " + shapeText(x));
  Value indices = linearIndex(n, n[1], x.slice(batch, depth), n.name(1));
  if (!indices)
    return failure();
  // Batch dimensions become part of the position.
  int64_t inner = elementCount(x.slice(batch, depth)), stride = inner;
  auto type = TensorBuilder::typeOf(indices);
  for (int64_t d = batch; d-- > 0;) {
    indices = b.add(indices, b.mulScalar(b.iota(type, d), static_cast<double>(stride)));
    stride *= x[d];
  }
  Shape flat = {elementCount(x.take_front(batch + depth))}, rest(x.drop_front(batch + depth));
  flat.append(rest.begin(), rest.end());
  Shape shape(i.drop_back());
  shape.append(rest.begin(), rest.end());
  return n.yield(
      nn::GatherOp::create(b, RankedTensorType::get(shape, n.element(0)), b.reshape(n[0], flat), indices, 0)
          .getResult());
}

static std::optional<nn::ScatterMode> scatterMode(Node &n) {
  return llvm::StringSwitch<std::optional<nn::ScatterMode>>(n.getString("reduction", "none"))
      .Case("none", nn::ScatterMode::set)
      .Case("add", nn::ScatterMode::add)
      .Case("mul", nn::ScatterMode::mul)
      .Case("max", nn::ScatterMode::max)
      .Case("min", nn::ScatterMode::min)
      .Default(std::nullopt);
}

/// scatter_elements, which compares integers as signed ones.
static Value scatter(Node &n, nn::ScatterMode mode, Value x, Value indices, Value updates, int64_t axis) {
  TensorBuilder &b = n.b;
  bool turns = n.isUnsigned(0) && (mode == nn::ScatterMode::max || mode == nn::ScatterMode::min);
  if (turns)
    x = turnSign(b, x), updates = turnSign(b, updates);
  Value result = nn::ScatterElementsOp::create(b, x.getType(), mode, x, indices, updates, axis);
  return turns ? turnSign(b, result) : result;
}

LogicalResult scatterElements(Node &n) {
  int64_t axis = n.getInt("axis", 0);
  if (failed(n.axis(axis, n.rank(0))))
    return failure();
  if (failed(n.sameElements({0, 2})))
    return failure();
  auto mode = scatterMode(n);
  bool fits = n.rank(1) == n.rank(0) && n.shape(1) == n.shape(2);
  for (int64_t i = 0; fits && i < n.rank(0); ++i)
    fits = i == axis || n.shape(1)[i] <= n.shape(0)[i];
  if (!mode || !fits)
    return n.refuse(mode ? "its input, indices and updates do not fit" : "its reduction is not supported");
  Value indices = n.index(n[1], n.shape(0)[axis], n.name(1));
  if (!indices)
    return failure();
  return n.yield(scatter(n, *mode, n[0], indices, n[2], axis));
}

// Slices go to rows of a matrix. Sums are a scatter_add onto zeros, the others write element by element.
LogicalResult scatterND(Node &n) {
  TensorBuilder &b = n.b;
  Ints x = n.shape(0), i = n.shape(1);
  int64_t depth = i.empty() ? 0 : i.back();
  if (failed(n.sameElements({0, 2})))
    return failure();
  auto mode = scatterMode(n);
  if (!mode || i.empty() || depth > n.rank(0))
    return n.refuse(mode ? "its indices do not fit its input" : "its reduction is not supported");
  int64_t rows = elementCount(x.take_front(depth)), columns = elementCount(x.drop_front(depth)),
          updates = elementCount(i.drop_back());
  Shape wanted(i.drop_back());
  llvm::append_range(wanted, x.drop_front(depth));
  if (n.shape(2) != Ints(wanted))
    return n.refuse("updates of shape " + shapeText(n.shape(2)) + " do not fit indices of shape " +
                    shapeText(i));
  Value indices = linearIndex(n, n[1], x.take_front(depth), n.name(1));
  if (!indices)
    return failure();
  Value flat = b.reshape(indices, {updates}), source = b.reshape(n[2], {updates, columns});
  if (*mode == nn::ScatterMode::add) {
    auto type = RankedTensorType::get({rows, columns}, n.element(0));
    return n.yield(b.add(n[0], b.reshape(nn::ScatterAddOp::create(b, type, flat, source, 0), x)));
  }
  Value target = b.reshape(n[0], {rows, columns}), wide = b.broadcast(flat, {updates, columns}, {0});
  return n.yield(b.reshape(scatter(n, *mode, target, wide, source, 0), x));
}

LogicalResult oneHot(Node &n) {
  TensorBuilder &b = n.b;
  SmallVector<double> depths;
  if (failed(n.floats(1, "depth", depths)))
    return failure();
  int64_t axis = n.getInt("axis", -1), rank = n.rank(0);
  if (failed(n.axis(axis, rank + 1)))
    return failure();
  if (depths.size() != 1 || !(depths[0] >= 1 && depths[0] <= static_cast<double>(kMostElements)))
    return n.refuse("a depth that is not one number from 1 to " + Twine(kMostElements));
  int64_t depth = static_cast<int64_t>(depths[0]);
  if (n.shape(2) != Ints({2}))
    return n.refuse("its values are not two");
  Shape shape(n.shape(0));
  shape.insert(shape.begin() + axis, depth);
  // An index outside the range gives a row of "off".
  Value indices = b.cast(n[0], b.getI64Type(), n.isUnsigned(0));
  Value wrapped = b.addScalar(indices, static_cast<double>(depth));
  indices = b.select(b.compare(arith::CmpIPredicate::slt, indices, b.zerosLike(indices)), wrapped, indices);
  Value hit = b.compare(arith::CmpIPredicate::eq, b.iota(RankedTensorType::get(shape, b.getI64Type()), axis),
                        b.broadcastAlong(indices, shape, {axis}));
  auto value = [&](int64_t i) { return b.broadcastTo(b.reshape(b.sliceAxis(n[2], 0, i, 1), {}), shape); };
  return n.yieldBound({n.bound(2).with(b.select(hit, value(1), value(0)))});
}

} // namespace ortc::legalize::handlers
