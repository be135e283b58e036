// The integers of a convolution.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/conv/ConvShape.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;

namespace ortc::kernels {

/// Fewer channels are no whole vector: the transforms would cost more than the products save.
static constexpr int64_t kLeastChannels = 16;
/// Smaller images are mostly border.
static constexpr int64_t kLeastSide = 4;

/// Strided windows whose tiles take more than this share of the products are better summed directly. Sizes
/// that are odd in tiles waste part of them.
static constexpr double kMostProducts = 0.85;

/// Wider windows of narrow groups are unrolled too far.
static constexpr int64_t kMostTaps = 32;
static constexpr int64_t kMostStride = 8;

int64_t ConvShape::flops() const {
  return 2 * parts * batch * nn::elementCount(output) * nn::elementCount(filter) * groupChannels() * features;
}

template <typename OpType>
static ConvShape makeShape(OpType op, Value input, Type filter, Value output, int64_t parts = 1) {
  auto in = cast<RankedTensorType>(input.getType()).getShape(), f = cast<RankedTensorType>(filter).getShape(),
       out = cast<RankedTensorType>(output.getType()).getShape();
  auto list = [](ArrayRef<int64_t> values) { return SmallVector<int64_t, 3>(values); };
  return {in.front() / parts,
          in.back(),
          f.back(),
          static_cast<int64_t>(op.getGroups()),
          list(in.drop_front().drop_back()),
          list(f.drop_back(2)),
          list(out.drop_front().drop_back()),
          list(op.getStrides()),
          list(op.getPaddingLow()),
          list(op.getDilations()),
          parts};
}

ConvShape shapeOfConv(Operation *op) {
  return llvm::TypeSwitch<Operation *, ConvShape>(op)
      .Case([](nn::ConvOp op) {
        return makeShape(op, op.getInput(), op.getFilter().getType(), op.getResult());
      })
      .Case([](nn::ConvInputGradOp op) {
        return makeShape(op, op.getResult(), op.getFilter().getType(), op.getGradient());
      })
      .Case([](nn::ConvFilterGradOp op) {
        return makeShape(op, op.getInput(), op.getFilterType(), op.getGradient(), op.getParts());
      });
}

Walk forwardWalk(const ConvShape &shape, int64_t d) {
  return {shape.output[d], shape.strides[d], -shape.low[d], shape.filter[d], shape.dilations[d], 0, 1};
}

// Position i of the input meets filter position f at output o = (i + low - f * dilation) / stride where that is whole.
// With i = phase + stride * q the filter positions are f0, f0 + stride / gcd, ...; taken from the last one
// down, o grows by dilation / gcd from tap to tap.
Walk gradientWalk(const ConvShape &shape, int64_t d, int64_t phase) {
  int64_t stride = shape.strides[d], dilation = shape.dilations[d], divisor = std::gcd(stride, dilation);
  int64_t step = stride / divisor, first = 0;
  while (first < step && (phase + shape.low[d] - first * dilation) % stride != 0)
    ++first;
  Walk walk;
  walk.count = (shape.input[d] - phase + stride - 1) / stride;
  walk.sourceStride = 1;
  walk.taps = first == step || first >= shape.filter[d] ? 0 : (shape.filter[d] - 1 - first) / step + 1;
  walk.filterBase = first + (walk.taps - 1) * step;
  walk.filterStep = step;
  walk.base = walk.taps ? (phase + shape.low[d] - walk.filterBase * dilation) / stride : 0;
  walk.tapStep = dilation / divisor;
  walk.outBase = phase;
  walk.outStep = stride;
  return walk;
}

ConvSides sidesOf(const ConvShape &shape, bool forward) {
  ConvSides sides{forward,        shape.input,           shape.output,          shape.channels,
                  shape.features, shape.groupChannels(), shape.groupFeatures(), {}};
  if (!forward) {
    std::swap(sides.source, sides.result);
    std::swap(sides.sourceChannels, sides.resultChannels);
    std::swap(sides.groupSource, sides.groupResult);
  }
  for (int64_t d = 0; d < shape.rank(); ++d) {
    SmallVector<Walk> &walks = sides.walks.emplace_back();
    if (forward)
      walks.push_back(forwardWalk(shape, d));
    else
      for (int64_t phase = 0; phase < shape.strides[d]; ++phase)
        walks.push_back(gradientWalk(shape, d, phase));
  }
  return sides;
}

SmallVector<SmallVector<Walk, 3>> phaseProduct(ArrayRef<SmallVector<Walk>> walks) {
  SmallVector<SmallVector<Walk, 3>> all{{}};
  for (ArrayRef<Walk> phases : walks) {
    SmallVector<SmallVector<Walk, 3>> longer;
    for (const auto &start : all)
      for (const Walk &walk : phases) {
        longer.push_back(start);
        longer.back().push_back(walk);
      }
    all = std::move(longer);
  }
  return all;
}

/// Products with transformed tiles for one without, along a dimension of a strided window.
static double shareOfProducts(const ConvShape &shape, int64_t d) {
  int64_t size = shape.output[d], tiles = (size + kWinogradTile - 1) / kWinogradTile;
  // A phase of two taps has three positions, one of one tap two.
  int64_t positions = shape.filter[d] == 4 ? 6 : 5;
  return static_cast<double>(tiles * positions) / static_cast<double>(size * shape.filter[d]);
}

static bool isStrided(const ConvShape &shape) {
  auto isShort = [](int64_t size) { return size == 3 || size == 4; };
  return llvm::all_of(shape.filter, isShort) &&
         llvm::all_of(shape.strides, [](int64_t stride) { return stride == 2; }) &&
         shareOfProducts(shape, 0) * shareOfProducts(shape, 1) <= kMostProducts;
}

bool usesWinograd(const ConvShape &shape) {
  auto all = [](ArrayRef<int64_t> values, int64_t wanted) {
    return llvm::all_of(values, [&](int64_t value) { return value == wanted; });
  };
  auto isWide = [](int64_t channels) { return channels >= kLeastChannels && channels % kChannelUnit == 0; };
  if (shape.rank() != 2 || shape.groups != 1 || !all(shape.dilations, 1) || !isWide(shape.channels) ||
      !isWide(shape.features) || llvm::any_of(shape.output, [](int64_t size) { return size < kLeastSide; }))
    return false;
  return all(shape.strides, 1) ? all(shape.filter, 3) : isStrided(shape);
}

bool hasNarrowGroups(const ConvShape &shape) {
  auto isNarrow = [](int64_t count) { return count == 1 || count == 2 || count == 4 || count == 8; };
  return shape.groups > 1 && isNarrow(shape.groupChannels()) && isNarrow(shape.groupFeatures()) &&
         shape.filter.back() <= kMostTaps && shape.strides.back() <= kMostStride;
}

} // namespace ortc::kernels
