// Transpose, concat, split, slice, pad, tile.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Node.h"
#include "support/Plural.h"

using namespace mlir;

namespace ortc::legalize::handlers {

/// Where no operand is: of versions that have an attribute instead.
static constexpr unsigned kNoOperand = ~0u;

LogicalResult transpose(Node &n) {
  SmallVector<int64_t> permutation = n.getInts("perm");
  int64_t rank = n.rank(0);
  if (!n.hasAttribute("perm"))
    for (int64_t i = rank; i-- > 0;)
      permutation.push_back(i);
  SmallVector<int64_t> sorted = permutation;
  if (failed(n.axes(sorted, rank)))
    return failure();
  if (static_cast<int64_t>(permutation.size()) != rank)
    return n.refuse("perm has " + formatCount(permutation.size(), "entry", "entries") + " for " +
                    formatCount(rank, "dimension"));
  for (int64_t &axis : permutation) // TorchScript writes negative ones of permute as they are
    axis += axis < 0 ? rank : 0;
  return n.yield(n.b.transpose(n[0], permutation));
}

LogicalResult concat(Node &n) {
  int64_t axis = n.getInt("axis", 1);
  if (failed(n.axis(axis, n.rank(0))))
    return failure();
  SmallVector<Value> parts;
  for (unsigned i = 0; i < n.size(); ++i) {
    if (n.rank(i) != n.rank(0) || n.element(i) != n.element(0))
      return n.refuse("its inputs differ in rank or element type");
    for (int64_t dim = 0; dim < n.rank(0); ++dim)
      if (dim != axis && n.shape(i)[dim] != n.shape(0)[dim])
        return n.refuse("shapes " + shapeText(n.shape(0)) + " and " + shapeText(n.shape(i)) +
                        " cannot be joined along axis " + Twine(axis));
    if (elementCount(n.shape(i)) != 0)
      parts.push_back(n[i]);
  }
  return n.yield(parts.empty() ? n[0] : n.b.concat(parts, axis));
}

LogicalResult split(Node &n) {
  int64_t axis = n.getInt("axis", 0);
  SmallVector<int64_t> sizes;
  bool present = false;
  if (failed(n.axis(axis, n.rank(0))) || failed(n.intsAt(1, "split", sizes, &present)))
    return failure();
  int64_t parts = n.op.getNumResults(), size = n.shape(0)[axis];
  if (n.getInt("num_outputs", parts) != parts)
    return n.refuse("it has " + formatCount(parts, "output") +
                    ", but num_outputs = " + Twine(n.getInt("num_outputs", parts)));
  if (!present) {
    // The last part is smaller where the size cannot be divided (num_outputs, opset 18).
    int64_t each = (size + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i)
      sizes.push_back(std::clamp<int64_t>(size - i * each, 0, each));
  }
  if (static_cast<int64_t>(sizes.size()) != parts)
    return n.refuse("it has " + formatCount(parts, "output") + " but " + formatCount(sizes.size(), "size"));
  SmallVector<Value> results;
  int64_t start = 0;
  for (int64_t each : sizes) {
    if (each < 0 || each > size - start)
      return n.refuse("its sizes exceed the " + formatCount(size, "element") + " of axis " + Twine(axis));
    results.push_back(n.b.sliceAxis(n[0], axis, start, each));
    start += each;
  }
  if (start != size)
    return n.refuse("its sizes cover " + Twine(start) + " of " + formatCount(size, "element") + " of axis " +
                    Twine(axis));
  return n.yield(results);
}

LogicalResult slice(Node &n) {
  SmallVector<int64_t> starts, ends, axes, steps;
  bool given = false, stepped = false;
  bool byAttributes = n.version() < 10;
  if (failed(n.intsAt(byAttributes ? kNoOperand : 1, "starts", starts)) ||
      failed(n.intsAt(byAttributes ? kNoOperand : 2, "ends", ends)) ||
      failed(n.intsAt(byAttributes ? kNoOperand : 3, "axes", axes, &given)) ||
      failed(n.intsAt(byAttributes ? kNoOperand : 4, "steps", steps, &stepped)))
    return failure();
  int64_t rank = n.rank(0);
  if (!given)
    axes = llvm::to_vector(llvm::seq<int64_t>(0, starts.size()));
  if (!stepped)
    steps.assign(starts.size(), 1);
  if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size())
    return n.refuse("its starts, ends, axes and steps differ in length");
  SmallVector<int64_t> begin(rank, 0), sizes(n.shape(0)), strides(rank, 1), reversed;
  for (auto [start, end, axis, step] : llvm::zip_equal(starts, ends, axes, steps)) {
    if (failed(n.axis(axis, rank)))
      return failure();
    if (step == 0)
      return n.refuse("a step of 0");
    int64_t size = n.shape(0)[axis];
    auto clamp = [&](int64_t v, int64_t low, int64_t high) {
      return std::clamp<int64_t>(v < 0 ? v + size : v, low, high);
    };
    if (step > 0) {
      start = clamp(start, 0, size);
      end = clamp(end, 0, size);
      sizes[axis] = end > start ? (end - start - 1) / step + 1 : 0;
      begin[axis] = start;
      strides[axis] = step;
    } else {
      // An end of -1 after clamping is "before the first element"; a start is an element, as the standard's
      // text has it.
      start = clamp(start, std::min<int64_t>(0, size - 1), size - 1);
      end = clamp(end, -1, size - 1);
      int64_t stride = step == INT64_MIN ? INT64_MAX : -step;
      sizes[axis] = start > end ? (start - end - 1) / stride + 1 : 0;
      strides[axis] = stride;
      begin[axis] = sizes[axis] ? start - (sizes[axis] - 1) * stride : 0;
      reversed.push_back(axis);
    }
    strides[axis] = sizes[axis] > 1 ? strides[axis] : 1;
  }
  if (elementCount(sizes) == 0)
    return n.yield(
        arith::ConstantOp::create(
            n.b, cast<TypedAttr>(HostTensor(RankedTensorType::get(sizes, n.element(0))).toAttribute()))
            .getResult());
  Value result = n.b.slice(n[0], begin, sizes, strides);
  llvm::sort(reversed);
  return n.yield(reversed.empty() ? result : n.b.reverse(result, reversed));
}

/// Elements of one axis by position: slices, reversed slices and repetitions, joined; a gather where they are many.
static Value pick(Node &n, Value x, int64_t axis, Ints positions) {
  TensorBuilder &b = n.b;
  SmallVector<Value> parts;
  for (size_t i = 0; i < positions.size();) {
    size_t end = i + 1;
    int64_t step = end < positions.size() ? positions[end] - positions[i] : 1;
    if (step < -1 || step > 1)
      step = 1;
    while (end < positions.size() && positions[end] - positions[end - 1] == step)
      ++end;
    int64_t count = end - i;
    Value part = b.sliceAxis(x, axis, std::min(positions[i], positions[end - 1]), step == 0 ? 1 : count);
    if (step < 0)
      part = b.reverse(part, {axis});
    if (step == 0) {
      Shape shape(TensorBuilder::shapeOf(part));
      shape[axis] = count;
      part = b.broadcastTo(part, shape);
    }
    parts.push_back(part);
    i = end;
    if (parts.size() > 16 && i < positions.size()) {
      Shape shape(TensorBuilder::shapeOf(x));
      shape[axis] = positions.size();
      auto type = RankedTensorType::get(shape, TensorBuilder::elementOf(x));
      return nn::GatherOp::create(b, type, x, n.intVector(positions), axis);
    }
  }
  return b.concat(parts, axis);
}

/// The element that stands at `position` outside `[0, size)` in a padding mode.
static int64_t mirrored(StringRef mode, int64_t position, int64_t size) {
  if (mode == "edge")
    return std::clamp<int64_t>(position, 0, size - 1);
  if (mode == "wrap")
    return ((position % size) + size) % size;
  if (size == 1)
    return 0;
  int64_t period = 2 * (size - 1), offset = ((position % period) + period) % period;
  return offset < size ? offset : period - offset;
}

LogicalResult pad(Node &n) {
  int64_t rank = n.rank(0);
  StringRef mode = n.getString("mode", "constant");
  SmallVector<int64_t> pads, axes;
  bool given = false;
  if (failed(n.intsAt(n.version() < 11 ? kNoOperand : 1, "pads", pads)) ||
      (n.version() >= 18 && failed(n.intsAt(3, "axes", axes, &given))))
    return failure();
  if (!given)
    axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (pads.size() != 2 * axes.size())
    return n.refuse("it has " + formatCount(pads.size(), "pad") + " for " +
                    formatCount(axes.size(), "axis", "axes"));
  SmallVector<int64_t> low(rank, 0), high(rank, 0);
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (failed(n.axis(axis, rank)))
      return failure();
    low[axis] = pads[i];
    high[axis] = pads[i + axes.size()];
  }
  for (int64_t amount : pads)
    if (amount > (int64_t(1) << 31) || amount < -(int64_t(1) << 31))
      return n.refuse("a pad of " + Twine(amount));
  if (n.version() >= 11 && failed(n.sameElements({0, 2})))
    return failure();
  Value x = n[0];
  TensorBuilder &b = n.b;
  if (mode == "constant") {
    Value value =
        n.version() >= 11 && n.has(2) ? b.reshape(n[2], {}) : b.scalar(n.element(0), n.getFloat("value", 0));
    // Negative pads cut first.
    SmallVector<int64_t> starts(rank, 0), sizes(n.shape(0));
    for (int64_t i = 0; i < rank; ++i) {
      starts[i] = std::max<int64_t>(-low[i], 0);
      sizes[i] -= starts[i] + std::max<int64_t>(-high[i], 0);
      low[i] = std::max<int64_t>(low[i], 0);
      high[i] = std::max<int64_t>(high[i], 0);
      if (sizes[i] < 0 || (sizes[i] == 0 && n.shape(0)[i] != 0))
        return n.refuse("its negative pads leave nothing of dimension " + Twine(i));
    }
    return n.yield(b.pad(b.slice(x, starts, sizes), value, low, high));
  }
  if (mode != "reflect" && mode != "edge" && mode != "wrap")
    return n.refuse("mode '" + mode + "' is not supported");
  for (int64_t i = 0; i < rank; ++i) {
    int64_t size = n.shape(0)[i];
    if (size == 0 || size + low[i] + high[i] <= 0)
      return n.refuse("its pads leave nothing of dimension " + Twine(i));
    if (!low[i] && !high[i])
      continue;
    if (failed(n.list(size + low[i] + high[i])))
      return failure();
    SmallVector<int64_t> positions;
    for (int64_t p = -low[i]; p < size + high[i]; ++p)
      positions.push_back(mirrored(mode, p, size));
    x = pick(n, x, i, positions);
  }
  return n.yield(x);
}

LogicalResult tile(Node &n) {
  SmallVector<int64_t> repeats;
  if (failed(n.ints(1, "repeats", repeats)))
    return failure();
  if (static_cast<int64_t>(repeats.size()) != n.rank(0))
    return n.refuse("it has " + formatCount(repeats.size(), "repeat") + " for " +
                    formatCount(n.rank(0), "dimension"));
  // [a, b] -> [r, a, s, b] -> [r * a, s * b].
  Shape wide, shape;
  SmallVector<int64_t> dimensions;
  for (auto [repeat, size] : llvm::zip_equal(repeats, n.shape(0))) {
    if (repeat < 0 || repeat > kMostElements)
      return n.refuse("a repeat of " + Twine(repeat));
    if (elementCount({repeat, size}) > kMostElements)
      return n.refuse("a dimension of " + formatCount(size, "element") + " repeated " +
                      formatCount(repeat, "time"));
    if (repeat != 1)
      wide.push_back(repeat);
    dimensions.push_back(wide.size());
    wide.push_back(size);
    shape.push_back(repeat * size);
  }
  return n.yield(n.b.reshape(n.b.broadcast(n[0], wide, dimensions), shape));
}

/// Blocks of depthToSpace and spaceToDepth: the square of their size times a size of a dimension does not overflow.
static constexpr int64_t kMostBlock = int64_t(1) << 10;

LogicalResult depthToSpace(Node &n) {
  if (n.rank(0) != 4)
    return n.refuse("its input does not have 4 dimensions");
  Ints s = n.shape(0);
  int64_t k = n.getInt("blocksize", 1);
  if (k < 1 || k > kMostBlock || s[1] % (k * k))
    return n.refuse(Twine(s[1]) + " channels cannot be cut in blocks of " + Twine(k));
  int64_t depth = s[1] / (k * k);
  bool columnsFirst = n.getString("mode", "DCR") == "CRD";
  TensorBuilder &b = n.b;
  Value x = columnsFirst ? b.transpose(b.reshape(n[0], {s[0], depth, k, k, s[2], s[3]}), {0, 1, 4, 2, 5, 3})
                         : b.transpose(b.reshape(n[0], {s[0], k, k, depth, s[2], s[3]}), {0, 3, 4, 1, 5, 2});
  return n.yield(b.reshape(x, {s[0], depth, s[2] * k, s[3] * k}));
}

LogicalResult spaceToDepth(Node &n) {
  if (n.rank(0) != 4)
    return n.refuse("its input does not have 4 dimensions");
  Ints s = n.shape(0);
  int64_t k = n.getInt("blocksize", 1);
  if (k < 1 || k > kMostBlock || s[2] % k || s[3] % k)
    return n.refuse("an image of " + Twine(s[2]) + "x" + Twine(s[3]) + " cannot be cut in blocks of " +
                    Twine(k));
  TensorBuilder &b = n.b;
  Value blocks = b.reshape(n[0], {s[0], s[1], s[2] / k, k, s[3] / k, k});
  bool columnsFirst = n.getString("mode", "DCR") == "CRD";
  Value x = b.transpose(blocks, columnsFirst ? Ints({0, 1, 3, 5, 2, 4}) : Ints({0, 3, 5, 1, 2, 4}));
  return n.yield(b.reshape(x, {s[0], s[1] * k * k, s[2] / k, s[3] / k}));
}

} // namespace ortc::legalize::handlers
