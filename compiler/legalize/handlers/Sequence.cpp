// Sequences of tensors, known at compile time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sequence is a list of values while the model is compiled; nothing of it is left in the program.
#include "compiler/legalize/Node.h"

using namespace mlir;

namespace ortc::legalize::handlers {

static LogicalResult yieldItems(Node &n, Items items) {
  Bound bound;
  bound.items = std::make_shared<const Items>(std::move(items));
  return n.yieldBound({bound});
}

static LogicalResult itemsOf(Node &n, const Items *&items) {
  items = n.items(0);
  return items ? success() : n.refuse("operand 0 is not a sequence");
}

/// A position from operand i, counted from the end when negative; below `limit`.
static LogicalResult positionAt(Node &n, unsigned i, int64_t size, int64_t limit, int64_t &position) {
  SmallVector<int64_t> value;
  if (failed(n.ints(i, "position", value)))
    return failure();
  position = value.size() == 1 ? value[0] : limit;
  if (position < 0)
    position += size;
  if (position < 0 || position >= limit)
    return n.refuse("position " + Twine(value.empty() ? 0 : value[0]) + " of a sequence of " + Twine(size));
  return success();
}

LogicalResult sequenceEmpty(Node &n) { return yieldItems(n, {}); }

LogicalResult sequenceConstruct(Node &n) {
  Items items;
  for (unsigned i = 0; i < n.size(); ++i) {
    if (!n.has(i))
      return n.refuse("operand " + Twine(i) + " is no tensor");
    items.push_back(n.bound(i));
  }
  return yieldItems(n, std::move(items));
}

LogicalResult sequenceInsert(Node &n) {
  const Items *items;
  if (failed(itemsOf(n, items)))
    return failure();
  if (!n.has(1))
    return n.refuse("what it inserts is no tensor");
  int64_t size = items->size(), position = size;
  if (n.has(2) && failed(positionAt(n, 2, size, size + 1, position)))
    return failure();
  if (failed(n.list((size + 1) * kNumbersPerItem)))
    return failure();
  Items result(*items);
  result.insert(result.begin() + position, n.bound(1));
  return yieldItems(n, std::move(result));
}

LogicalResult sequenceErase(Node &n) {
  const Items *items;
  if (failed(itemsOf(n, items)))
    return failure();
  int64_t size = items->size(), position = size - 1;
  if (size == 0)
    return n.refuse("an empty sequence");
  if (n.has(1) && failed(positionAt(n, 1, size, size, position)))
    return failure();
  if (failed(n.list(size * kNumbersPerItem)))
    return failure();
  Items result(*items);
  result.erase(result.begin() + position);
  return yieldItems(n, std::move(result));
}

LogicalResult sequenceAt(Node &n) {
  const Items *items;
  int64_t position;
  if (failed(itemsOf(n, items)) || failed(positionAt(n, 1, items->size(), items->size(), position)))
    return failure();
  return n.yieldBound({(*items)[position]});
}

LogicalResult sequenceLength(Node &n) {
  const Items *items;
  if (failed(itemsOf(n, items)))
    return failure();
  return n.yield(n.intConstant({static_cast<int64_t>(items->size())}, {}));
}

LogicalResult sequenceMap(Node &n) {
  const Items *items;
  if (failed(itemsOf(n, items)))
    return failure();
  onnx::GraphOp body = n.op.getGraph("body");
  if (!body || body.getBlock().getNumArguments() != n.size())
    return n.refuse("its body does not take its operands");
  if (body.getBlock().getTerminator()->getNumOperands() < n.op.getNumResults())
    return n.refuse("its body gives fewer values than it has results");
  int64_t size = items->size(), lists = n.op.getNumResults();
  if (failed(n.list(elementCount({size, lists, kNumbersPerItem}))))
    return failure();
  std::vector<Items> results(n.op.getNumResults());
  for (size_t i = 0; i < items->size(); ++i) {
    SmallVector<Bound> arguments, outputs;
    for (unsigned k = 0; k < n.size(); ++k) {
      const Items *each = n.items(k);
      if (each && each->size() != items->size())
        return n.refuse("its sequences have " + Twine(items->size()) + " and " + Twine(each->size()) +
                        " items");
      arguments.push_back(each ? (*each)[i] : n.bound(k));
    }
    if (failed(n.walk.inlineGraph(n, body, arguments, outputs)))
      return failure();
    for (auto [list, output] : llvm::zip(results, outputs)) {
      if (!output.value)
        return n.refuse("its body gives a sequence, not a tensor");
      list.push_back(output);
    }
  }
  SmallVector<Bound> bounds(results.size());
  for (auto [bound, list] : llvm::zip_equal(bounds, results))
    bound.items = std::make_shared<const Items>(std::move(list));
  return n.yieldBound(bounds);
}

LogicalResult concatFromSequence(Node &n) {
  const Items *items;
  if (failed(itemsOf(n, items)))
    return failure();
  if (items->empty())
    return n.refuse("an empty sequence");
  bool isNew = n.getInt("new_axis", 0) != 0;
  SmallVector<Value> values;
  int64_t rank = TensorBuilder::rankOf(items->front().value), axis = n.getInt("axis", 0);
  if (failed(n.axis(axis, rank + isNew)))
    return failure();
  Shape wanted(TensorBuilder::shapeOf(items->front().value));
  if (!isNew)
    wanted.erase(wanted.begin() + axis);
  for (const Bound &item : *items) {
    Shape shape(TensorBuilder::shapeOf(item.value));
    bool fits = static_cast<int64_t>(shape.size()) == rank &&
                TensorBuilder::elementOf(item.value) == TensorBuilder::elementOf(items->front().value);
    if (fits && !isNew) {
      Shape others(shape);
      others.erase(others.begin() + axis);
      fits = others == wanted;
    } else if (fits) {
      fits = shape == wanted;
      shape.insert(shape.begin() + axis, 1);
    }
    if (!fits)
      return n.refuse("its tensors do not fit together: shapes " +
                      shapeText(TensorBuilder::shapeOf(items->front().value)) + " and " +
                      shapeText(TensorBuilder::shapeOf(item.value)));
    values.push_back(isNew ? n.b.reshape(item.value, shape) : item.value);
  }
  return n.yieldBound({items->front().with(n.b.concat(values, axis))});
}

LogicalResult splitToSequence(Node &n) {
  int64_t axis = n.getInt("axis", 0);
  if (failed(n.axis(axis, n.rank(0))))
    return failure();
  int64_t size = n.shape(0)[axis];
  SmallVector<int64_t> sizes;
  bool keepsAxis = true;
  if (n.has(1)) {
    SmallVector<int64_t> split;
    if (failed(n.ints(1, "split", split)))
      return failure();
    if (n.rank(1) == 0) {
      if (split[0] < 1)
        return n.refuse("a split of " + Twine(split[0]));
      if (failed(n.expand(size / split[0])))
        return failure();
      for (int64_t at = 0; at < size; at += split[0])
        sizes.push_back(std::min(split[0], size - at));
    } else {
      if (failed(n.expand(split.size())))
        return failure();
      sizes = split;
    }
  } else {
    if (failed(n.expand(size)))
      return failure();
    sizes.assign(size, 1);
    keepsAxis = n.getInt("keepdims", 1) != 0;
  }
  Items items;
  int64_t at = 0;
  for (int64_t each : sizes) {
    if (each < 0 || each > size - at)
      return n.refuse("split sizes that do not add up to " + Twine(size));
    Value slice = n.b.sliceAxis(n[0], axis, at, each);
    Shape shape(TensorBuilder::shapeOf(slice));
    if (!keepsAxis)
      shape.erase(shape.begin() + axis);
    items.push_back(n.bound(0).with(n.b.reshape(slice, shape)));
    at += each;
  }
  if (at != size)
    return n.refuse("split sizes that add up to " + Twine(at) + ", not " + Twine(size));
  return yieldItems(n, std::move(items));
}

} // namespace ortc::legalize::handlers
