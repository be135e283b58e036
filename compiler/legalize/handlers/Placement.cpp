// Elements put elsewhere.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Written as gathers where every element of the result knows where it comes from: nothing is overwritten then.
#include "compiler/legalize/Node.h"
#include "support/Plural.h"

using namespace mlir;

namespace ortc::legalize::handlers {

/// Elements of x along `axis` at indices that depend on two dimensions only: `indices` has those of `dimensions`.
static Value takeAlong(TensorBuilder &b, Value x, Value indices, Ints shape, Ints dimensions, int64_t axis) {
  auto type = RankedTensorType::get(shape, TensorBuilder::elementOf(x));
  return nn::GatherElementsOp::create(b, type, x, b.broadcast(indices, shape, dimensions), axis);
}

LogicalResult reverseSequence(Node &n) {
  int64_t time = n.getInt("time_axis", 0), batch = n.getInt("batch_axis", 1);
  if (n.rank(0) < 2 || time < 0 || batch < 0 || time > 1 || batch > 1 || time == batch)
    return n.refuse("its time and batch axes are not the first two dimensions");
  TensorBuilder &b = n.b;
  Ints x = n.shape(0);
  if (n.shape(1) != Ints({x[batch]}) || !TensorBuilder::elementOf(n[1]).isInteger(64))
    return n.refuse("lengths of shape " + shapeText(n.shape(1)) + " do not fit an input of shape " +
                    shapeText(x));
  Value lengths = nn::CheckIndexOp::create(b, n[1].getType(), n[1], n.name(1), 0, x[time] + 1, IntegerAttr());
  auto type = RankedTensorType::get({x[0], x[1]}, b.getI64Type());
  Value step = b.iota(type, time), length = b.broadcast(lengths, {x[0], x[1]}, {batch});
  Value back = b.addScalar(b.sub(length, step), -1);
  Value from = b.select(b.compare(arith::CmpIPredicate::slt, step, length), back, step);
  return n.yield(takeAlong(b, n[0], from, x, {0, 1}, time));
}

LogicalResult tensorScatter(Node &n) {
  TensorBuilder &b = n.b;
  int64_t axis = n.getInt("axis", -2);
  if (failed(n.axis(axis, n.rank(0))) || failed(n.sameElements({0, 1})))
    return n.reason().empty() ? n.refuse("its operands have different element types") : failure();
  StringRef mode = n.getString("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return n.refuse("mode '" + mode + "' is not supported");
  Shape expected(n.shape(0));
  if (axis > 0 && n.rank(1) == n.rank(0))
    expected[axis] = n.shape(1)[axis];
  int64_t batch = n.shape(0)[0], size = n.shape(0)[axis], written = expected[axis];
  if (axis == 0 || n.shape(1) != Ints(expected) || written > size ||
      (n.has(2) && n.shape(2) != Ints({batch})))
    return n.refuse("an update of shape " + shapeText(n.shape(1)) + " does not fit a cache of shape " +
                    shapeText(n.shape(0)));
  if (written == 0)
    return n.yield(n[0]);
  auto type = RankedTensorType::get({batch, size}, b.getI64Type());
  // How far behind the first written place each one is.
  Value distance = b.iota(type, 1);
  if (n.has(2)) {
    bool isCircular = mode == "circular";
    int64_t limit = isCircular ? size : size - written + 1;
    Value starts = b.cast(n[2], b.getI64Type());
    starts = nn::CheckIndexOp::create(b, starts.getType(), starts, n.name(2), 0, limit, IntegerAttr());
    distance = b.sub(distance, b.broadcast(starts, {batch, size}, {0}));
    if (isCircular) {
      Value wrapped = b.addScalar(distance, static_cast<double>(size));
      distance =
          b.select(b.compare(arith::CmpIPredicate::slt, distance, b.zerosLike(distance)), wrapped, distance);
    }
  }
  Value last = b.constantLike(distance, static_cast<double>(written - 1)), zero = b.zerosLike(distance);
  Value isWritten = b.logicalAnd(b.compare(arith::CmpIPredicate::sge, distance, zero),
                                 b.compare(arith::CmpIPredicate::sle, distance, last));
  Value from = b.select(isWritten, distance, zero);
  Value update = takeAlong(b, n[1], from, n.shape(0), {0, axis}, axis);
  return n.yield(b.select(b.broadcast(isWritten, n.shape(0), {0, axis}), update, n[0]));
}

LogicalResult centerCropPad(Node &n) {
  TensorBuilder &b = n.b;
  int64_t rank = n.rank(0);
  SmallVector<int64_t> wanted, axes = n.getInts("axes");
  if (failed(n.ints(1, "shape", wanted)))
    return failure();
  if (!n.hasAttribute("axes"))
    axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  SmallVector<int64_t> sorted = axes;
  if (failed(n.axes(sorted, rank)))
    return failure();
  if (wanted.size() != axes.size() ||
      llvm::any_of(wanted, [](int64_t size) { return size < 0 || size > kMostElements; }))
    return n.refuse("a shape of " + shapeText(wanted) + " does not fit " +
                    formatCount(axes.size(), "axis", "axes"));
  SmallVector<int64_t> starts(rank, 0), sizes(n.shape(0)), low(rank, 0), high(rank, 0);
  for (auto [axis, size] : llvm::zip_equal(axes, wanted)) {
    if (axis < 0)
      axis += rank;
    int64_t surplus = sizes[axis] - size;
    if (surplus > 0) {
      starts[axis] = surplus / 2;
      sizes[axis] = size;
    } else {
      low[axis] = -surplus / 2;
      high[axis] = -surplus - low[axis];
    }
  }
  return n.yield(b.padZeros(b.slice(n[0], starts, sizes), low, high));
}

/// Each element of a block is added at its place in the image; those beside it are added to an element behind it.
LogicalResult col2im(Node &n) {
  TensorBuilder &b = n.b;
  SmallVector<int64_t> image, block, strides = n.getInts("strides"), dilations = n.getInts("dilations"),
                                     pads = n.getInts("pads");
  if (failed(n.ints(1, "image_shape", image)) || failed(n.ints(2, "block_shape", block)))
    return failure();
  size_t spatial = image.size();
  if (strides.empty())
    strides.assign(spatial, 1);
  if (dilations.empty())
    dilations.assign(spatial, 1);
  if (pads.empty())
    pads.assign(2 * spatial, 0);
  auto positive = [](Ints values) {
    return llvm::all_of(values, [](int64_t v) { return v >= 1 && v <= kMostSize; });
  };
  if (spatial == 0 || block.size() != spatial || strides.size() != spatial || dilations.size() != spatial ||
      pads.size() != 2 * spatial || !positive(image) || !positive(block) || !positive(strides) ||
      !positive(dilations) || llvm::any_of(pads, [](int64_t pad) { return pad < 0 || pad > kMostSize; }))
    return n.refuse("its image, block, strides, dilations and pads do not fit together");
  Shape counts;
  for (size_t d = 0; d < spatial; ++d) {
    int64_t room = image[d] + pads[d] + pads[spatial + d] - dilations[d] * (block[d] - 1) - 1;
    counts.push_back(room < 0 ? 0 : room / strides[d] + 1);
  }
  int64_t taps = elementCount(block), blocks = elementCount(counts), volume = elementCount(image);
  if (n.rank(0) != 3 || n.shape(0)[1] % taps || n.shape(0)[2] != blocks)
    return n.refuse("an input of shape " + shapeText(n.shape(0)) + " does not hold " + Twine(blocks) +
                    " blocks of " + shapeText(block));
  if (volume > kMostElements)
    return n.refuse("an image of shape " + shapeText(image) + " has more than " + Twine(kMostElements) +
                    " elements");
  if (failed(n.list(elementCount({taps, blocks}))))
    return failure();
  HostTensor places(RankedTensorType::get({taps * blocks}, b.getI64Type()));
  for (int64_t i = 0; i < taps * blocks; ++i) {
    int64_t place = 0, stride = 1, tap = i / blocks, at = i % blocks;
    for (size_t d = spatial; d-- > 0; tap /= block[d], at /= counts[d]) {
      int64_t x = at % counts[d] * strides[d] + tap % block[d] * dilations[d] - pads[d];
      place = x < 0 || x >= image[d] || place < 0 ? -1 : place + x * stride;
      stride *= image[d];
    }
    places.setInt(i, place < 0 ? volume : place);
  }
  int64_t planes = n.shape(0)[0] * (n.shape(0)[1] / taps);
  auto type = RankedTensorType::get({planes, volume + 1}, n.element(0));
  Value columns = b.reshape(n[0], {planes, taps * blocks});
  Value sum = nn::ScatterAddOp::create(b, type, n.constantOf(places), columns, 1);
  Shape shape = {n.shape(0)[0], n.shape(0)[1] / taps};
  llvm::append_range(shape, image);
  return n.yield(b.reshape(b.sliceAxis(sum, 1, 0, volume), shape));
}

LogicalResult maxUnpool(Node &n) {
  TensorBuilder &b = n.b;
  int64_t rank = n.rank(0), spatial = rank - 2;
  SmallVector<int64_t> kernel = n.getInts("kernel_shape"), strides = n.getInts("strides"),
                       pads = n.getInts("pads"), wanted;
  if (strides.empty())
    strides.assign(std::max<int64_t>(spatial, 0), 1);
  if (pads.empty())
    pads.assign(2 * std::max<int64_t>(spatial, 0), 0);
  if (spatial < 1 || static_cast<int64_t>(kernel.size()) != spatial ||
      static_cast<int64_t>(strides.size()) != spatial || static_cast<int64_t>(pads.size()) != 2 * spatial ||
      n.shape(1) != n.shape(0))
    return n.refuse("its indices, kernel, strides or pads do not fit an input of shape " +
                    shapeText(n.shape(0)));
  Shape natural(n.shape(0));
  for (Ints values : {Ints(kernel), Ints(strides), Ints(pads)})
    if (llvm::any_of(values, [](int64_t value) { return value < 0 || value > kMostSize; }))
      return n.refuse("its kernel, strides or pads hold a number below 0 or above " + Twine(kMostSize));
  for (int64_t d = 0; d < spatial; ++d) {
    natural[2 + d] = (natural[2 + d] - 1) * strides[d] - pads[d] - pads[spatial + d] + kernel[d];
    if (natural[2 + d] < 1 || natural[2 + d] > kMostElements)
      return n.refuse("spatial dimension " + Twine(d) + " would have " +
                      formatCount(natural[2 + d], "element"));
  }
  SmallVector<int64_t> low(rank, 0), high(rank, 0);
  if (n.has(2)) { // the surplus goes to the end of every axis
    if (failed(n.ints(2, "output_shape", wanted)))
      return failure();
    for (int64_t d = 0; d < rank; ++d) {
      if (static_cast<int64_t>(wanted.size()) != rank || wanted[d] < natural[d])
        return n.refuse("an output_shape of " + shapeText(wanted) + " is smaller than " + shapeText(natural));
      high[d] = wanted[d] - natural[d];
    }
  }
  int64_t count = elementCount(n.shape(0)), total = elementCount(natural);
  if (count == 0 || total > kMostElements)
    return n.refuse("its input or its output is empty or too large");
  Value indices = n.index(b.reshape(n[1], {count}), total, n.name(1));
  if (!indices)
    return failure();
  Value zeros = b.constant(RankedTensorType::get({total}, n.element(0)), 0);
  Value flat = nn::ScatterElementsOp::create(b, zeros.getType(), nn::ScatterMode::set, zeros, indices,
                                             b.reshape(n[0], {count}), 0);
  return n.yield(b.padZeros(b.reshape(flat, natural), low, high));
}

} // namespace ortc::legalize::handlers
