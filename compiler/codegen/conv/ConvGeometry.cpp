//===- ConvGeometry.cpp - the integers of a convolution -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/conv/ConvGeometry.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;

namespace ortc::codegen {

/// What a block and its border may take in the second-level cache.
static constexpr int64_t kBlockBytes = 256 << 10;

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
// With i = phase + stride * q the filter positions are f0, f0 + stride / gcd, ...; taken from the last one down, o grows
// by dilation / gcd from tap to tap.
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

int64_t SourceBlock::elements() const { return nn::elementCount(sizes) * channels; }

void SourceBlock::limitPoints(int64_t most, int64_t points) {
  int64_t span = sizes[0] - (blockPoints - 1) * rowStep;
  blocks = (points + most - 1) / most;
  blockPoints = (points + blocks - 1) / blocks; // even blocks
  blocks = (points + blockPoints - 1) / blockPoints;
  if (copied)
    sizes[0] = (blockPoints - 1) * rowStep + span;
}

SourceBlock planSource(ArrayRef<SmallVector<Walk, 3>> walks, ArrayRef<int64_t> image, int64_t channels,
                       int64_t elementBytes) {
  int64_t rank = image.size();
  SmallVector<int64_t, 3> lowest(rank, 0), highest(rank, 0);
  int64_t points = 1, reach = 0;
  bool any = false;
  for (ArrayRef<Walk> phase : walks) {
    points = std::max(points, phase[0].count);
    if (llvm::any_of(phase, [](const Walk &walk) { return walk.isEmpty(); }))
      continue;
    for (int64_t d = 0; d < rank; ++d) {
      lowest[d] = any ? std::min(lowest[d], phase[d].lowest()) : phase[d].lowest();
      highest[d] = any ? std::max(highest[d], phase[d].highest()) : phase[d].highest();
    }
    reach = std::max(reach, phase[0].base + (phase[0].taps - 1) * phase[0].tapStep);
    any = true;
  }
  SourceBlock block;
  block.image.assign(image.begin(), image.end());
  block.channels = channels;
  block.rowStep = walks.front()[0].sourceStride;
  block.copied = false;
  for (int64_t d = 0; d < rank; ++d)
    block.copied |= lowest[d] < 0 || highest[d] >= image[d];
  if (!block.copied) {
    block.sizes = block.image;
    block.origin.assign(rank, 0);
  } else {
    for (int64_t d = 0; d < rank; ++d) {
      int64_t before = std::max<int64_t>(0, -lowest[d]),
              after = std::max<int64_t>(0, highest[d] + 1 - image[d]);
      block.origin.push_back(before);
      block.sizes.push_back(before + image[d] + after);
    }
    block.origin[0] = -lowest[0]; // block rows begin at the lowest row a block needs, inside the image or not
  }
  int64_t span = reach - lowest[0] + 1;
  int64_t rowBytes =
      std::max<int64_t>(1, nn::elementCount(ArrayRef(block.sizes).drop_front()) * channels * elementBytes);
  int64_t rows = std::max<int64_t>(span, kBlockBytes / rowBytes);
  block.blockPoints = 1;
  if (block.copied)
    block.sizes[0] = span;
  block.limitPoints(std::clamp<int64_t>((rows - span) / block.rowStep + 1, 1, points), points);
  return block;
}

} // namespace ortc::codegen
