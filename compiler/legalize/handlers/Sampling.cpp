// GridSample, DeformConv.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/handlers/Taps.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ortc::legalize::handlers {

/// The place of each leading index in a table of `stride` rows for each: [positions..., 1], counted along
/// dimension 0 (and, with
/// `second`, dimension 1).
static Taps tableStart(TensorBuilder &b, Ints positions, bool second, Type index) {
  Shape shape(positions);
  shape.push_back(1);
  auto type = RankedTensorType::get(shape, index);
  Taps taps;
  taps.index = b.iota(type, 0);
  if (second)
    taps.index = b.add(b.mulScalar(taps.index, static_cast<double>(positions[1])), b.iota(type, 1));
  return taps;
}

/// A point has 2 or 4 taps to the power of its dimensions.
static constexpr int64_t kMostSpatial = 4;

LogicalResult gridSample(Node &n) {
  TensorBuilder &b = n.b;
  StringRef mode = n.getString("mode", n.version() < 20 ? "bilinear" : "linear"),
            padding = n.getString("padding_mode", "zeros");
  bool align = n.getInt("align_corners", 0), isNearest = mode == "nearest",
       isCubic = mode == "cubic" || mode == "bicubic";
  if (!isNearest && !isCubic && mode != "linear" && mode != "bilinear")
    return n.refuse("mode '" + mode + "' is not supported");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    return n.refuse("padding_mode '" + padding + "' is not supported");
  Ints x = n.shape(0), grid = n.shape(1);
  int64_t spatial = static_cast<int64_t>(x.size()) - 2;
  if (spatial < 1 || grid.size() != x.size() || grid[0] != x[0] || grid.back() != spatial || !n.isFloat(1))
    return n.refuse("a grid of shape " + shapeText(grid) + " does not fit an input of shape " + shapeText(x));
  if (spatial > kMostSpatial)
    return n.refuse("more than " + Twine(kMostSpatial) + " spatial dimensions are not supported");
  if (!isNearest && !n.isFloat(0))
    return n.refuse("an input of integers can be sampled in mode nearest only");
  Padding kind = padding == "zeros"    ? Padding::zeros
                 : padding == "border" ? Padding::border
                 : align               ? Padding::reflectElements
                                       : Padding::reflectEdges;
  int64_t volume = elementCount(x.drop_front(2)), points = elementCount(grid.slice(1, spatial));
  if (volume == 0)
    return n.refuse("an input of " + shapeText(x) + " without elements");
  Type index = indexType(b, x[0] * volume);
  Value places = b.reshape(n[1], {x[0], points, spatial});
  Taps taps = tableStart(b, {x[0], points}, false, index);
  for (int64_t d = 0; d < spatial; ++d) {
    double size = static_cast<double>(x[2 + d]);
    // The grid names the last dimension first, from -1 to 1.
    Value at = b.addScalar(b.reshape(b.sliceAxis(places, 2, spatial - 1 - d, 1), {x[0], points}), 1);
    at = align ? b.mulScalar(at, (size - 1) / 2) : b.mulScalar(b.addScalar(b.mulScalar(at, size), -1), 0.5);
    Taps along;
    if (isNearest) {
      Value whole = math::RoundEvenOp::create(b, at);
      along = wholeTaps(b, b.reshape(whole, {x[0], points, 1}), x[2 + d], kind, index);
    } else {
      along =
          tapsAround(n, at, x[2 + d], isCubic ? Interpolation::cubic : Interpolation::linear, kind, index);
    }
    taps = crossTaps(b, taps, along, x[2 + d]);
  }
  Value read = sumTaps(b, channelTable(b, n[0], x[0], x[1], volume), taps);
  Shape shape = {x[0], x[1]};
  llvm::append_range(shape, grid.slice(1, spatial));
  return n.yieldAs(b.reshape(b.transpose(read, {0, 2, 1}), shape), n.isUnsigned(0));
}

/// Every tap of the filter reads the input at a place of its own; then the products are those of a convolution.
LogicalResult deformConv(Node &n) {
  TensorBuilder &b = n.b;
  if (n.rank(0) != 4 || n.rank(1) != 4 || n.rank(2) != 4)
    return n.refuse("only images with two spatial dimensions are supported");
  Ints x = n.shape(0), w = n.shape(1);
  int64_t images = x[0], channels = x[1], features = w[0], groups = n.getInt("group", 1),
          offsetGroups = n.getInt("offset_group", 1);
  SmallVector<int64_t> strides = n.getInts("strides"), dilations = n.getInts("dilations"),
                       pads = n.getInts("pads");
  if (strides.empty())
    strides = {1, 1};
  if (dilations.empty())
    dilations = {1, 1};
  if (pads.empty())
    pads = {0, 0, 0, 0};
  if (groups < 1 || offsetGroups < 1 || channels % groups || features % groups || channels % offsetGroups ||
      w[1] != channels / groups)
    return n.refuse("filters of shape " + shapeText(w) + " in " + Twine(groups) +
                    " groups do not fit an input of shape " + shapeText(x));
  auto within = [](Ints values, int64_t least) {
    return llvm::all_of(values, [&](int64_t value) { return value >= least && value <= kMostSize; });
  };
  if (strides.size() != 2 || dilations.size() != 2 || pads.size() != 4 || !within(strides, 1) ||
      !within(dilations, 1) || !within(pads, 0))
    return n.refuse("its strides, dilations or pads are not those of two dimensions");
  int64_t outputs[2], taps = w[2] * w[3];
  for (int64_t d = 0; d < 2; ++d) {
    int64_t room = x[2 + d] + pads[d] + pads[2 + d] - dilations[d] * (w[2 + d] - 1) - 1;
    outputs[d] = room < 0 ? 0 : room / strides[d] + 1;
  }
  Shape offsets = {images, offsetGroups * taps * 2, outputs[0], outputs[1]},
        masks = {images, offsetGroups * taps, outputs[0], outputs[1]};
  if (n.shape(2) != Ints(offsets) || (n.has(4) && n.shape(4) != Ints(masks)))
    return n.refuse("offsets of shape " + shapeText(n.shape(2)) +
                    (n.has(4) ? " and a mask of shape " + shapeText(n.shape(4)) : "") + " do not fit " +
                    shapeText(offsets));
  int64_t points = outputs[0] * outputs[1], volume = x[2] * x[3], wide = channels / offsetGroups;
  if (points == 0 || volume == 0)
    return n.refuse("its input or its output has no elements");
  if (failed(n.list(elementCount({2, taps, points}))))
    return failure();
  // [images, offset groups, taps, axis, points]
  Value shifts = b.reshape(n[2], {images, offsetGroups, taps, 2, points});
  Shape positions = {images, offsetGroups, taps, points};
  Type index = indexType(b, images * offsetGroups * volume);
  Taps places = tableStart(b, positions, true, index);
  for (int64_t d = 0; d < 2; ++d) {
    HostTensor start(RankedTensorType::get({taps, points}, n.element(2)));
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t o = 0; o < points; ++o) {
        int64_t at = d == 0 ? o / outputs[1] : o % outputs[1], of = d == 0 ? tap / w[3] : tap % w[3];
        start.setFloat(tap * points + o, static_cast<double>(at * strides[d] - pads[d] + of * dilations[d]));
      }
    Value base = b.broadcast(n.constantOf(start), positions, {2, 3});
    Value at = b.add(base, b.reshape(b.sliceAxis(shifts, 3, d, 1), positions));
    places = crossTaps(b, places, tapsAround(n, at, x[2 + d], Interpolation::linear, Padding::zeros, index),
                       x[2 + d]);
  }
  // Each group of channels is an image of its own: [images, offset groups, taps, points, channels of a group].
  Value read = sumTaps(b, channelTable(b, n[0], images * offsetGroups, wide, volume), places);
  if (n.has(4))
    read = b.mul(read, b.broadcast(b.reshape(n[4], positions), TensorBuilder::shapeOf(read), {0, 1, 2, 3}));
  Value columns =
      b.reshape(b.transpose(read, {0, 3, 1, 4, 2}), {images, points, groups, channels / groups, taps});
  Value filters = b.reshape(n[1], {groups, features / groups, channels / groups, taps});
  Value y = b.reshape(contract(b, columns, "npgct", filters, "goct", "ngop"),
                      {images, features, outputs[0], outputs[1]});
  if (n.has(3)) {
    if (n.shape(3) != Ints({features}))
      return n.refuse("a bias of shape " + shapeText(n.shape(3)) + " does not fit " + Twine(features) +
                      " features");
    y = b.add(y, b.broadcast(n[3], TensorBuilder::shapeOf(y), {1}));
  }
  return n.yield(y);
}

} // namespace ortc::legalize::handlers
