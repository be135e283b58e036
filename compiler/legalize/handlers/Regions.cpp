// RoiAlign, MaxRoiPool.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regions come from constants or data; they have no gradient.
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/handlers/Taps.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace ortc::legalize::handlers {

/// Column i of a matrix as a vector.
static Value columnOf(TensorBuilder &b, Value x, int64_t i) {
  return b.reshape(b.sliceAxis(x, 1, i, 1), {TensorBuilder::shapeOf(x)[0]});
}

namespace {

/// The samples of RoiAlign along one axis.
struct Samples {
  Taps taps;    ///< [regions, bins, 2 samples]
  Value exists; ///< i1 like the taps; null: all do
  Value count;  ///< per region, as a float
};

struct RegionAxis {
  int64_t size, bins, ratio;
  unsigned first; ///< the column where it starts; it ends two columns on
};

} // namespace

/// Most samples per bin that an axis may need: as regions say, or when they depend on data, what one over the
/// whole input needs.
static int64_t mostSamples(Node &n, const RegionAxis &axis, double scale, double offset) {
  const HostTensor *regions = n.constant(1);
  double most = static_cast<double>(axis.size) + 1;
  if (regions) {
    most = 1;
    for (int64_t i = 0; i < regions->getShape()[0]; ++i) {
      double length =
          (regions->getFloat(4 * i + axis.first + 2) - regions->getFloat(4 * i + axis.first)) * scale;
      most = std::max(most, offset > 0 ? length : std::max(length, 1.0));
    }
    most *= 1 + 1e-6; // the program rounds in its own precision
  }
  return static_cast<int64_t>(std::ceil(std::min(most, 1e9) / static_cast<double>(axis.bins)));
}

static Samples sampleAxis(Node &n, Value regions, const RegionAxis &axis, double scale, double offset,
                          Type index) {
  TensorBuilder &b = n.b;
  int64_t count = TensorBuilder::shapeOf(regions)[0];
  auto coordinate = [&](unsigned i) {
    return b.addScalar(b.mulScalar(columnOf(b, regions, i), scale), -offset);
  };
  Value start = coordinate(axis.first), length = b.sub(coordinate(axis.first + 2), start);
  if (offset == 0)
    length = clip(b, length, b.constantLike(length, 1), {});
  Value bin = b.div(length, b.constantLike(length, static_cast<double>(axis.bins)));
  Samples samples;
  int64_t most = axis.ratio;
  if (most > 0) {
    samples.count = b.constantLike(bin, static_cast<double>(most));
  } else {
    most = mostSamples(n, axis, scale, offset);
    Value needed = b.cast(math::CeilOp::create(b, bin), b.getI32Type());
    needed = clip(b, needed, b.zerosLike(needed), {});
    if (!n.constant(1)) // a region that needs more than the whole input ends the step
      needed = nn::CheckIndexOp::create(b, needed.getType(), needed, n.name(1), 0, most + 1, IntegerAttr());
    samples.count = b.cast(needed, TensorBuilder::elementOf(bin));
  }
  Shape shape = {count, axis.bins, most};
  auto type = RankedTensorType::get(shape, TensorBuilder::elementOf(bin));
  auto wide = [&](Value x) { return b.broadcast(x, shape, {0}); };
  Value number = b.iota(type, 2), divisor = clip(b, samples.count, b.constantLike(samples.count, 1), {});
  Value within = b.div(b.mul(b.addScalar(number, 0.5), wide(bin)), wide(divisor));
  Value at = b.add(b.add(wide(start), b.mul(b.iota(type, 1), wide(bin))), within);
  // Up to one element beyond the edge an element of the edge is read, farther out zero.
  Value isNear = b.logicalAnd(
      b.compare(arith::CmpFPredicate::OGE, at, b.constantLike(at, -1)),
      b.compare(arith::CmpFPredicate::OLE, at, b.constantLike(at, static_cast<double>(axis.size))));
  samples.taps = tapsAround(n, at, axis.size, Interpolation::linear, Padding::border, index);
  Shape flat = {count, axis.bins, 2 * most}, perTap = {count, axis.bins, most, 2};
  auto perSample = [&](Value x) { return b.reshape(b.broadcast(x, perTap, {0, 1, 2}), flat); };
  samples.taps = {b.reshape(samples.taps.index, flat), b.reshape(samples.taps.weight, flat),
                  perSample(isNear)};
  if (axis.ratio <= 0)
    samples.exists = perSample(b.compare(arith::CmpFPredicate::OLT, number, wide(samples.count)));
  return samples;
}

LogicalResult roiAlign(Node &n) {
  TensorBuilder &b = n.b;
  StringRef mode = n.getString("mode", "avg");
  bool isMax = mode == "max";
  if (!isMax && mode != "avg")
    return n.refuse("mode '" + mode + "' is not supported");
  if (n.rank(0) != 4 || n.rank(1) != 2 || n.shape(1)[1] != 4 || n.shape(2) != n.shape(1).take_front(1))
    return n.refuse("regions of shape " + shapeText(n.shape(1)) + " do not fit an input of shape " +
                    shapeText(n.shape(0)));
  if (failed(n.sameElements({0, 1})) || !n.isFloat(0))
    return n.reason().empty() ? n.refuse("its input is not floating-point") : failure();
  bool isShifted =
      n.version() >= 16 && n.getString("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  Ints x = n.shape(0);
  int64_t ratio = n.getInt("sampling_ratio", 0), regions = n.shape(1)[0], volume = x[2] * x[3];
  double scale = n.getFloat("spatial_scale", 1), offset = isShifted ? 0.5 : 0;
  RegionAxis axes[2] = {{x[2], n.getInt("output_height", 1), ratio, 1},
                        {x[3], n.getInt("output_width", 1), ratio, 0}};
  auto isCount = [](int64_t value) { return value >= 1 && value <= kMostSize; };
  if (!isCount(axes[0].bins) || !isCount(axes[1].bins) || volume == 0)
    return n.refuse("its input or its output is empty or too large");
  int64_t samples[2] = {ratio > 0 ? ratio : mostSamples(n, axes[0], scale, offset),
                        ratio > 0 ? ratio : mostSamples(n, axes[1], scale, offset)};
  if (elementCount({regions, axes[0].bins, axes[1].bins, samples[0], samples[1]}) > kMostSize)
    return n.refuse("its regions have more samples than supported");
  Value image = n.index(n[2], x[0], n.name(2));
  if (!image)
    return failure();
  Type index = indexType(b, x[0] * volume);
  Value places = b.detach(n[1]);
  Shape bins = {regions, axes[0].bins, axes[1].bins, 1};
  Taps taps;
  taps.index = b.broadcast(b.cast(image, index), bins, {0});
  Value exists, divisor;
  for (int64_t d = 0; d < 2; ++d) {
    Samples samples = sampleAxis(n, places, axes[d], scale, offset, index);
    bins.back() = TensorBuilder::shapeOf(samples.taps.index).back();
    auto wide = [&](Value value) { return b.broadcast(value, bins, {0, 1 + d, 3}); };
    Taps along = {wide(samples.taps.index), wide(samples.taps.weight), wide(samples.taps.inside)};
    if (samples.exists && !isMax)
      along.inside = b.logicalAnd(along.inside, wide(samples.exists));
    if (samples.exists) { // crossed like the taps
      Taps now = {along.index, {}, wide(samples.exists)}, before = {taps.index, {}, exists};
      exists = crossTaps(b, before, now, axes[d].size).inside;
    }
    taps = crossTaps(b, taps, along, axes[d].size);
    divisor = divisor ? b.mul(divisor, samples.count) : samples.count;
  }
  Value table = channelTable(b, n[0], x[0], x[1], volume), y;
  if (isMax) { // of the weighted elements, not of the samples: so the standard's implementations have it
    Value read = readTaps(b, table, taps);
    Shape shape(TensorBuilder::shapeOf(read));
    if (exists)
      read = b.select(b.broadcast(exists, shape, {0, 1, 2, 3}), read,
                      b.constantLike(read, -std::numeric_limits<double>::infinity()));
    y = b.reduce(nn::ReduceKind::max, read, {3});
    Value isEmpty = b.broadcast(b.compare(arith::CmpFPredicate::OLT, divisor, b.constantLike(divisor, 1)),
                                TensorBuilder::shapeOf(y), {0});
    y = b.select(isEmpty, b.zerosLike(y), y);
  } else {
    y = sumTaps(b, table, taps);
    Value count = clip(b, divisor, b.constantLike(divisor, 1), {});
    y = b.div(y, b.broadcast(count, TensorBuilder::shapeOf(y), {0}));
  }
  return n.yield(b.transpose(y, {0, 3, 1, 2}));
}

/// Whether elements lie in the bins of regions along one axis: i1 [regions, bins, size].
static Value binMask(TensorBuilder &b, Value regions, unsigned first, int64_t size, int64_t bins,
                     double scale) {
  int64_t count = TensorBuilder::shapeOf(regions)[0];
  auto whole = [&](unsigned i) {
    Value x = math::FloorOp::create(b, b.addScalar(b.mulScalar(columnOf(b, regions, i), scale), 0.5));
    // Far outside it does not matter where.
    double bound = static_cast<double>(std::numeric_limits<int32_t>::max() / (4 * (bins + 1)));
    x = clip(b, x, b.constantLike(x, -bound), b.constantLike(x, bound));
    return b.cast(x, b.getI32Type());
  };
  Value start = whole(first), length = b.addScalar(b.sub(whole(first + 2), start), 1);
  length = clip(b, length, b.constantLike(length, 1), {});
  Shape shape = {count, bins};
  Value number = b.iota(RankedTensorType::get(shape, b.getI32Type()), 1),
        divisor = b.constantLike(number, static_cast<double>(bins));
  auto wide = [&](Value x) { return b.broadcast(x, shape, {0}); };
  Value low = b.add(wide(start), b.div(b.mul(number, wide(length)), divisor));
  Value past = b.addScalar(b.mul(b.addScalar(number, 1), wide(length)), static_cast<double>(bins - 1));
  Value high = b.add(wide(start), b.div(past, divisor));
  Shape full = {count, bins, size};
  Value at = b.iota(RankedTensorType::get(full, b.getI32Type()), 2);
  auto bound = [&](Value x) { return b.broadcast(x, full, {0, 1}); };
  return b.logicalAnd(b.compare(arith::CmpIPredicate::sge, at, bound(low)),
                      b.compare(arith::CmpIPredicate::slt, at, bound(high)));
}

namespace {

/// The largest elements so far and where they are.
struct Largest {
  Value value, place;
};

} // namespace

/// The first of the largest elements along dimension `axis` where the mask allows; `places` are those of the elements.
static Largest largestOf(TensorBuilder &b, Value x, Value places, Value mask, int64_t axis) {
  Value least = b.constantLike(x, -std::numeric_limits<double>::infinity());
  Value most = b.reduce(nn::ReduceKind::max, b.select(mask, x, least), {axis});
  Value wide = b.broadcastAlong(most, TensorBuilder::shapeOf(x), {axis});
  Value isMost =
      b.logicalOr(b.compare(arith::CmpFPredicate::OEQ, x, wide), b.compare(arith::CmpFPredicate::UNO, x, x));
  Value none = b.constantLike(places, std::numeric_limits<int32_t>::max());
  Value candidates = b.select(b.logicalAnd(mask, isMost), places, none);
  return {most, b.reduce(nn::ReduceKind::min, candidates, {axis})};
}

// Values only say which element is the largest; the result is gathered, so that the first of equals has the gradient.
LogicalResult maxRoiPool(Node &n) {
  TensorBuilder &b = n.b;
  SmallVector<int64_t> bins = n.getInts("pooled_shape");
  if (n.rank(0) != 4 || n.rank(1) != 2 || n.shape(1)[1] != 5 || bins.size() != 2 || bins[0] < 1 ||
      bins[1] < 1)
    return n.refuse("regions of shape " + shapeText(n.shape(1)) + " do not fit an input of shape " +
                    shapeText(n.shape(0)));
  Ints x = n.shape(0);
  int64_t regions = n.shape(1)[0], channels = x[1], volume = x[2] * x[3];
  if (volume == 0 || volume > kMostSize ||
      elementCount({regions, bins[0], bins[1], volume, channels}) > kMostElements)
    return n.refuse("its input or its output is empty or too large");
  double scale = n.getFloat("spatial_scale", 1);
  Value places = b.detach(n[1]);
  Value image = n.index(b.cast(columnOf(b, places, 0), b.getI64Type()), x[0], n.name(1));
  if (!image)
    return failure();
  Value rows = binMask(b, places, 2, x[2], bins[0], scale),
        columns = binMask(b, places, 1, x[3], bins[1], scale);
  Value last = b.transpose(b.detach(n[0]), {0, 2, 3, 1});
  auto perRegion = RankedTensorType::get({regions, x[2], x[3], channels}, n.element(0));
  Value own = nn::GatherOp::create(b, perRegion, last, image, 0);
  // Along rows: [regions, height, bins, width, channels].
  Shape shape = {regions, x[2], bins[1], x[3], channels};
  Value number = b.iota(RankedTensorType::get(shape, b.getI32Type()), 3);
  Largest row =
      largestOf(b, b.broadcast(own, shape, {0, 1, 3, 4}), number, b.broadcast(columns, shape, {0, 2, 3}), 3);
  // Across rows: [regions, bins, height, bins, channels]; the first row decides, then the first column in it.
  shape = {regions, bins[0], x[2], bins[1], channels};
  number = b.mulScalar(b.iota(RankedTensorType::get(shape, b.getI32Type()), 2), static_cast<double>(x[3]));
  Value column = b.broadcast(row.place, shape, {0, 2, 3, 4});
  Value inRow = b.constantLike(column, static_cast<double>(x[3]));
  Value isFound = b.compare(arith::CmpIPredicate::slt, column, inRow);
  Value mask = b.logicalAnd(b.broadcast(rows, shape, {0, 1, 2}), isFound);
  Largest found = largestOf(b, b.broadcast(row.value, shape, {0, 2, 3, 4}),
                            b.add(number, b.select(isFound, column, inRow)), mask, 2);
  // From a place in one image and channel to one in the whole input; bins without elements give zero.
  Shape result = {regions, bins[0], bins[1], channels};
  Value none = b.constantLike(found.place, static_cast<double>(volume));
  Value isFull = b.compare(arith::CmpIPredicate::slt, found.place, none);
  Value place = b.cast(b.select(isFull, found.place, b.zerosLike(found.place)), b.getI64Type());
  auto wide = TensorBuilder::typeOf(place);
  Value plane = b.add(
      b.mulScalar(b.broadcast(b.cast(image, b.getI64Type()), result, {0}), static_cast<double>(channels)),
      b.iota(wide, 3));
  Value flat = b.reshape(n[0], {elementCount(x)});
  Value index = b.add(b.mulScalar(plane, static_cast<double>(volume)), place);
  Value y = nn::GatherOp::create(b, RankedTensorType::get(result, n.element(0)), flat, index, 0);
  y = b.select(isFull, y, b.zerosLike(y));
  return n.yield(b.transpose(y, {0, 3, 1, 2}));
}

} // namespace ortc::legalize::handlers
