// Constants, shapes, and what only changes the shape.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/Node.h"

#include <cmath>

using namespace mlir;

namespace ortc::legalize::handlers {

static Value constantOf(Node &n, ElementsAttr value) {
  return arith::ConstantOp::create(n.b, cast<TypedAttr>(value));
}

LogicalResult identity(Node &n) { return n.yieldBound({n.bound(0)}); }

LogicalResult constant(Node &n) {
  if (ElementsAttr value =
          n.op.getTensor("value") ? n.op.getTensor("value") : n.op.getTensor("sparse_value")) {
    ElementsAttr signless = signlessAttribute(value, n.options().float64, n.op.getOutputName(0));
    if (!signless)
      return n.refuse("its element type is not supported");
    return n.yieldBound(boundAs(constantOf(n, signless), value.getElementType()));
  }
  Type floating = n.options().float64 ? Type(n.b.getF64Type()) : Type(n.b.getF32Type());
  if (n.hasAttribute("value_int"))
    return n.yield(n.intConstant({n.getInt("value_int", 0)}, {}));
  if (n.hasAttribute("value_ints"))
    return n.yield(n.intVector(n.getInts("value_ints")));
  if (n.hasAttribute("value_float"))
    return n.yield(n.floatConstant({n.getFloat("value_float", 0)}, {}, floating));
  if (n.hasAttribute("value_floats")) {
    ArrayRef<float> given = n.op.getFloats("value_floats");
    SmallVector<double> values(given.begin(), given.end());
    return n.yield(n.floatConstant(values, {static_cast<int64_t>(values.size())}, floating));
  }
  return n.refuse("it holds no numbers");
}

LogicalResult constantOfShape(Node &n) {
  SmallVector<int64_t> shape;
  if (failed(n.ints(0, "input", shape)))
    return failure();
  for (int64_t size : shape)
    if (size < 0)
      return n.refuse("its shape has a dimension of " + Twine(size));
  if (elementCount(shape) > kMostElements)
    return n.refuse("a result of shape " + shapeText(shape) + " is too large");
  ElementsAttr value = n.op.getTensor("value");
  if (!value)
    return n.yield(n.b.constant(
        RankedTensorType::get(shape, n.options().float64 ? Type(n.b.getF64Type()) : Type(n.b.getF32Type())),
        0));
  ElementsAttr signless = signlessAttribute(value, n.options().float64, "value");
  if (!signless || signless.getNumElements() != 1)
    return n.refuse("its value is not one element of a supported type");
  auto one = cast<DenseElementsAttr>(signless).reshape(RankedTensorType::get({}, signless.getElementType()));
  auto type = RankedTensorType::get(shape, signless.getElementType());
  if (type.getNumElements() == 0)
    return n.yieldBound(boundAs(constantOf(n, HostTensor(type).toAttribute()), value.getElementType()));
  return n.yieldBound(boundAs(constantOf(n, one.resizeSplat(type)), value.getElementType()));
}

LogicalResult shapeOf(Node &n) {
  int64_t rank = n.rank(0), start = n.getInt("start", 0), end = n.getInt("end", rank);
  auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  start = clamp(start);
  end = std::max(clamp(end), start);
  return n.yieldAs(n.intVector(n.shape(0).slice(start, end - start)), false);
}

LogicalResult sizeOf(Node &n) { return n.yieldAs(n.intConstant({elementCount(n.shape(0))}, {}), false); }

LogicalResult reshape(Node &n) {
  SmallVector<int64_t> shape;
  if (failed(n.ints(1, "shape", shape)))
    return failure();
  bool zeroIsZero = n.getInt("allowzero", 0);
  int64_t count = elementCount(n.shape(0)), unknown = -1;
  Shape others;
  for (auto [i, size] : llvm::enumerate(shape)) {
    if (size == 0 && !zeroIsZero) {
      if (static_cast<int64_t>(i) >= n.rank(0))
        return n.refuse("its shape copies dimension " + Twine(i) + " of an input of " + Twine(n.rank(0)) +
                        " dimensions");
      size = n.shape(0)[i];
    }
    if (size == -1 && unknown >= 0)
      return n.refuse("its shape has two -1");
    if (size < -1)
      return n.refuse("its shape has a dimension of " + Twine(size));
    if (size == -1)
      unknown = i;
    else
      others.push_back(size);
  }
  if (int64_t known = elementCount(others); unknown >= 0)
    shape[unknown] = known == 0 ? 0 : count / known;
  if (elementCount(shape) != count)
    return n.refuse("an input of shape " + shapeText(n.shape(0)) + " cannot be reshaped to " +
                    shapeText(shape));
  return n.yield(n.b.reshape(n[0], shape));
}

LogicalResult flatten(Node &n) {
  int64_t rank = n.rank(0), axis = n.getInt("axis", 1);
  if (axis != rank && failed(n.axis(axis, rank)))
    return failure();
  Ints shape = n.shape(0);
  return n.yield(
      n.b.reshape(n[0], {elementCount(shape.take_front(axis)), elementCount(shape.drop_front(axis))}));
}

LogicalResult squeeze(Node &n) {
  SmallVector<int64_t> axes;
  bool present = false;
  if (failed(n.intsAt(1, "axes", axes, &present)) || failed(n.axes(axes, n.rank(0))))
    return failure();
  for (int64_t i = 0; !present && i < n.rank(0); ++i)
    if (n.shape(0)[i] == 1)
      axes.push_back(i);
  for (int64_t axis : axes)
    if (n.shape(0)[axis] != 1)
      return n.refuse("dimension " + Twine(axis) + " has " + Twine(n.shape(0)[axis]) +
                      " elements and cannot be squeezed");
  return n.yield(n.b.reshape(n[0], nn::dropAxes(n.shape(0), axes)));
}

LogicalResult unsqueeze(Node &n) {
  SmallVector<int64_t> axes;
  if (failed(n.intsAt(1, "axes", axes)) ||
      failed(n.axes(axes, n.rank(0) + static_cast<int64_t>(axes.size()))))
    return failure();
  Shape shape(n.shape(0));
  for (int64_t axis : axes)
    shape.insert(shape.begin() + axis, 1);
  return n.yield(n.b.reshape(n[0], shape));
}

LogicalResult expand(Node &n) {
  SmallVector<int64_t> wanted;
  if (failed(n.ints(1, "shape", wanted)))
    return failure();
  // Two-way broadcasting: the result may be larger than `wanted`.
  Shape shape(n.shape(0));
  if (wanted.size() > shape.size())
    shape.insert(shape.begin(), wanted.size() - shape.size(), 1);
  for (size_t i = 0; i < wanted.size(); ++i) {
    int64_t &mine = shape[shape.size() - 1 - i], theirs = wanted[wanted.size() - 1 - i];
    if (theirs < 0)
      return n.refuse("its shape has a dimension of " + Twine(theirs));
    if (mine != theirs && mine != 1 && theirs != 1)
      return n.refuse("an input of shape " + shapeText(n.shape(0)) + " cannot be expanded to " +
                      shapeText(wanted));
    if (mine == 1)
      mine = theirs;
  }
  return n.yield(n.b.broadcastTo(n[0], shape));
}

LogicalResult range(Node &n) {
  if (failed(n.sameElements({0, 1, 2})))
    return failure();
  const HostTensor *bounds[3];
  const char *names[3] = {"start", "limit", "delta"};
  for (unsigned i = 0; i < 3; ++i)
    if (failed(n.constant(i, names[i], bounds[i])))
      return failure();
  for (const HostTensor *bound : bounds)
    if (bound->size() != 1)
      return n.refuse("its operands are no scalars");
  if (n.isFloat(0)) {
    double start = bounds[0]->getFloat(0), limit = bounds[1]->getFloat(0), delta = bounds[2]->getFloat(0);
    if (delta == 0 || !std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(delta))
      return n.refuse("its start, limit or delta is not finite, or its delta is 0");
    double steps = std::ceil((limit - start) / delta);
    int64_t count = static_cast<int64_t>(std::clamp(steps, 0.0, static_cast<double>(kMostElements)));
    if (failed(n.list(count)))
      return failure();
    HostTensor values(RankedTensorType::get({count}, n.element(0)));
    for (int64_t i = 0; i < count; ++i)
      values.setFloat(i, start + static_cast<double>(i) * delta);
    return n.yield(n.constantOf(values));
  }
  int64_t start = bounds[0]->getInt(0), limit = bounds[1]->getInt(0), delta = bounds[2]->getInt(0);
  if (delta == 0)
    return n.refuse("its delta is 0");
  __extension__ using Wide = __int128; // the distance of two int64 does not fit one
  Wide distance = Wide(limit) - start, steps = (distance + delta - (delta > 0 ? 1 : -1)) / delta;
  int64_t count = static_cast<int64_t>(std::clamp<Wide>(steps, 0, kMostElements));
  if (failed(n.list(count)))
    return failure();
  HostTensor values(RankedTensorType::get({count}, n.element(0)));
  for (int64_t i = 0; i < count; ++i)
    values.setInt(i, static_cast<int64_t>(Wide(start) + Wide(i) * delta));
  return n.yield(n.constantOf(values));
}

/// A diagonal's number within what any matrix has, so that it may be added to a row.
static int64_t clampDiagonal(int64_t k) { return std::clamp(k, -kMostElements, kMostElements); }

LogicalResult eyeLike(Node &n) {
  ElementType element = n.hasAttribute("dtype") ? n.elementType(n.getInt("dtype", 1)) : n.typeOf(0);
  if (!element.type || n.rank(0) != 2)
    return n.refuse(element.type ? "its input is no matrix" : "its element type is not supported");
  TensorBuilder &b = n.b;
  auto type = RankedTensorType::get(n.shape(0), b.getI64Type());
  Value shifted = b.addScalar(b.iota(type, 0), static_cast<double>(clampDiagonal(n.getInt("k", 0))));
  return n.yieldAs(b.cast(b.compare(arith::CmpIPredicate::eq, b.iota(type, 1), shifted), element.type),
                   element.isUnsigned, element.lowBits);
}

LogicalResult trilu(Node &n) {
  int64_t k = 0, rank = n.rank(0);
  if (n.has(1)) {
    SmallVector<int64_t> value;
    if (failed(n.ints(1, "k", value)))
      return failure();
    if (value.size() != 1)
      return n.refuse("its k has " + Twine(value.size()) + " elements, not one");
    k = value[0];
  }
  if (rank < 2)
    return n.refuse("its input has fewer than 2 dimensions");
  TensorBuilder &b = n.b;
  auto type = RankedTensorType::get(n.shape(0).take_back(2), b.getI64Type());
  Value diagonal = b.addScalar(b.iota(type, 0), static_cast<double>(clampDiagonal(k)));
  auto predicate = n.getInt("upper", 1) ? arith::CmpIPredicate::sge : arith::CmpIPredicate::sle;
  Value keep = b.broadcastTo(b.compare(predicate, b.iota(type, 1), diagonal), n.shape(0));
  return n.yield(b.select(keep, n[0], b.zerosLike(n[0])));
}

} // namespace ortc::legalize::handlers
