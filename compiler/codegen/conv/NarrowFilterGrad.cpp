//===- NarrowFilterGrad.cpp - narrow groups: filter gradient --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A chunk walks all images in blocks of lines that fit a first-level cache. In a block, for one vector of features and one
// tap of the outer dimensions, the sums of all taps of the last dimension stay in registers; few of them are split in
// interleaved partial sums, so that enough are in flight. The sums of blocks are added up in the workspace.
#include "compiler/codegen/conv/NarrowGroups.h"
#include "dialects/nn/NnShapes.h"

#include <map>

using namespace mlir;

namespace ortc::codegen {

namespace {

/// Bytes of both operands that a block holds for sixteen channels and features of f32. Small blocks: what one reads is
/// then close to a stream.
constexpr int64_t kBlockBytes = 8 << 10;
constexpr int64_t kVirtualLanes = 16;
/// Chunks beyond two read at least this many times sixteen features: shorter pieces of memory are slow.
constexpr int64_t kMostChunks = 8, kPiecesOfChunk = 8;
/// Of more bytes than this with fewer operations a byte, a chunk reads pieces at least this long: the processor fetches
/// what lies between shorter ones too, and two workers would read everything twice.
constexpr int64_t kStreamBytes = 8 << 20, kStreamIntensity = 4, kPiecesOfStream = 16;
/// Sums in registers at once, before they are split.
constexpr int64_t kMostSums = 12;

class NarrowFilterGrad : public ConvEmitter {
public:
  NarrowFilterGrad(ModuleOp module, const ConvSpec &spec, const Target &target)
      : ConvEmitter(module, spec, target) {
    rank = shape.rank();
    for (int64_t d = 0; d < rank; ++d)
      walks.push_back(forwardWalk(shape, d));
    summed = shape.groupChannels();
    results = shape.groupFeatures();
  }

  KernelInfo emit(ModuleOp module) {
    int64_t features = shape.features, pieces = std::max<int64_t>(1, features / kVirtualLanes);
    int64_t chunks = std::min<int64_t>(pieces, isStream() && pieces < 2 * kPiecesOfStream ? 1 : 2);
    while (chunks > 1 && chunks < kMostChunks && pieces / (2 * chunks) >= kPiecesOfChunk)
      chunks *= 2;
    info.chunks = chunks;
    int64_t widest = (pieces + chunks - 1) / chunks * kVirtualLanes + features % kVirtualLanes;
    slots = (widest + lanes - 1) / lanes * lanes;
    int64_t rows = nn::elementCount(shape.filter) * summed;
    begin(module, rows * slots * elementBytes);
    total = kernel.workspaceView(*this, getLoc(), 0, element, rows * slots);
    auto border = [&](Value chunk) { return mul(div(mul(chunk, pieces), chunks), kVirtualLanes); };
    Value isLast = arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, kernel.chunk, index(chunks - 1));
    firstFeature = chunks == 1 ? index(0) : border(kernel.chunk);
    endFeature =
        chunks == 1
            ? index(features)
            : Value(arith::SelectOp::create(*this, isLast, index(features), border(add(kernel.chunk, 1))));

    zeroRun(total, index(0), rows * slots);
    loop(0, shape.batch, 1, [&](Value n) {
      image = n;
      overBlocks({});
    });
    loop(0, rows, 1, [&](Value row) {
      overVectors([&](Value feature, Value slot, int64_t width) {
        store(load(total, add(mul(row, slots), slot), width), operandBuffer(2),
              add(mul(row, features), feature));
      });
    });
    return info;
  }

private:
  /// Whether memory is the limit: little arithmetic on more than a cache holds.
  bool isStream() const {
    return info.bytesRead > kStreamBytes && info.flops < kStreamIntensity * info.bytesRead;
  }

  /// Blocks are single lines of all dimensions but the last of the outer ones, which has several.
  void overBlocks(SmallVector<IndexRange> block) {
    int64_t d = block.size();
    if (d == rank - 1) {
      overVectors([&](Value feature, Value slot, int64_t width) { addBlock(block, feature, slot, width); });
      return;
    }
    int64_t lines = 1;
    if (d == rank - 2) {
      int64_t lineBytes = (shape.output.back() * results + shape.input.back() * shape.strides[d] * summed) /
                          std::max(summed, results) * kVirtualLanes * 4;
      lines = std::clamp<int64_t>(kBlockBytes / std::max<int64_t>(1, lineBytes), 1, shape.output[d]);
      int64_t blocks = (shape.output[d] + lines - 1) / lines;
      lines = (shape.output[d] + blocks - 1) / blocks;
    }
    loop(0, shape.output[d], lines, [&](Value first) {
      block.push_back({first, minimum(add(first, lines), index(shape.output[d]))});
      overBlocks(block);
      block.pop_back();
    });
  }

  /// The features of this chunk: body(first, where its sums are, width). A last vector that is not full begins earlier.
  void overVectors(llvm::function_ref<void(Value, Value, int64_t)> body) {
    if (shape.features < lanes)
      return body(index(0), index(0), shape.features);
    loop({firstFeature, endFeature}, lanes, [&](Value at) {
      Value feature = shape.features % lanes ? minimum(at, index(shape.features - lanes)) : at;
      body(feature, sub(at, firstFeature), lanes);
    });
  }

  void addBlock(ArrayRef<IndexRange> block, Value feature, Value slot, int64_t width) {
    overOuterTaps({}, index(0), [&](ArrayRef<Value> taps, Value filterLine) {
      SmallVector<IndexRange> ranges;
      for (int64_t d = 0; d < rank - 1; ++d)
        ranges.push_back(hits(d, taps[d], block[d]));
      int64_t channels = std::min(summed, kNarrowChannels), step = std::max<int64_t>(1, kMostSums / channels);
      int64_t window = shape.filter.back();
      for (int64_t firstTap = 0; firstTap < window; firstTap += step)
        for (int64_t channel = 0; channel < summed; channel += channels) {
          Part part{firstTap, std::min(step, window - firstTap), channel, channels, 1};
          int64_t count = part.taps * channels;
          part.splits = count >= 6 ? 1 : count >= 3 ? 2 : 4;
          addPart(part, ranges, taps, filterLine, feature, slot, width);
        }
    });
  }

  void overOuterTaps(SmallVector<Value> taps, Value filterLine,
                     llvm::function_ref<void(ArrayRef<Value>, Value)> body) {
    int64_t d = taps.size();
    if (d == rank - 1)
      return body(taps, filterLine);
    loop(0, shape.filter[d], 1, [&](Value t) {
      taps.push_back(t);
      overOuterTaps(taps, add(mul(filterLine, shape.filter[d]), t), body);
      taps.pop_back();
    });
  }

  /// The results of `range` that meet the image with tap `t`.
  IndexRange hits(int64_t d, Value t, IndexRange range) {
    const Walk &walk = walks[d];
    Value start = add(mul(t, walk.tapStep), walk.base); // of result 0
    return {maximum(range.begin, ceilDivPositive(sub(index(0), start), walk.sourceStride)),
            minimum(range.end, ceilDivPositive(sub(index(shape.input[d]), start), walk.sourceStride))};
  }

  /// Taps along the last dimension and channels of a group whose sums are in registers together, each in `splits`.
  struct Part {
    int64_t firstTap, taps, firstChannel, channels, splits;
    int64_t sumAt(int64_t tap, int64_t channel, int64_t result) const {
      return ((tap - firstTap) * channels + channel - firstChannel) * splits + result % splits;
    }
  };

  void addPart(const Part &part, ArrayRef<IndexRange> ranges, ArrayRef<Value> taps, Value filterLine,
               Value feature, Value slot, int64_t width) {
    LaneMap map(width, results, summed);
    auto runs = tileLine({walks.back()}, shape.output.back(), shape.input.back(), part.splits, 8);
    Value channel = map.sourceChannel(*this, feature);
    SmallVector<Value> sums(part.taps * part.channels * part.splits, splat(element, 0, width));
    sums = overLines(ranges, taps, image, image, sums, [&](Value from, Value gradient, ValueRange init) {
      SmallVector<Value> carried(init);
      Value sourceLine = add(mul(mul(from, shape.input.back()), shape.channels), channel);
      Value gradientLine = add(mul(mul(gradient, shape.output.back()), shape.features), feature);
      for (const LineTiles &run : runs)
        carried = fold({index(0), index(run.count)}, 1, carried, [&](Value i, ValueRange values) {
          return addTile(part, run.tile, map, add(sourceLine, mul(i, run.sourceStep * shape.channels)),
                         add(gradientLine, mul(i, run.tile.size * shape.features)), values);
        });
      return carried;
    });
    for (int64_t tap = part.firstTap; tap < part.firstTap + part.taps; ++tap)
      for (int64_t c = part.firstChannel; c < part.firstChannel + part.channels; ++c) {
        SmallVector<Value> terms;
        for (int64_t i = 0; i < part.splits; ++i)
          terms.push_back(sums[part.sumAt(tap, c, i)]);
        for (; terms.size() > 1; terms.resize(terms.size() / 2))
          for (size_t i = 0; i < terms.size() / 2; ++i)
            terms[i] = arith::AddFOp::create(*this, terms[2 * i], terms[2 * i + 1]);
        Value row = add(mul(add(mul(filterLine, shape.filter.back()), tap), summed), c);
        Value place = add(mul(row, slots), slot);
        store(arith::AddFOp::create(*this, load(total, place, width), terms[0]), total, place);
      }
  }

  using LineBody = llvm::function_ref<SmallVector<Value>(Value, Value, ValueRange)>;
  SmallVector<Value> overLines(ArrayRef<IndexRange> ranges, ArrayRef<Value> taps, Value from, Value gradient,
                               ValueRange sums, LineBody body, int64_t d = 0) {
    if (d == rank - 1)
      return body(from, gradient, sums);
    return fold(ranges[d], 1, sums, [&](Value at, ValueRange carried) {
      Value position =
          add(add(mul(at, walks[d].sourceStride), mul(taps[d], walks[d].tapStep)), walks[d].base);
      return overLines(ranges, taps, add(mul(from, shape.input[d]), position),
                       add(mul(gradient, shape.output[d]), at), carried, body, d + 1);
    });
  }

  SmallVector<Value> addTile(const Part &part, const LineTile &tile, const LaneMap &map, Value from,
                             Value gradient, ValueRange init) {
    SmallVector<Value> sums(init), gradients(tile.size);
    for (size_t begin = 0, end; begin < tile.uses.size(); begin = end) {
      int64_t at = tile.uses[begin].position;
      SmallVector<LineTile::Use> uses;
      for (end = begin; end < tile.uses.size() && tile.uses[end].position == at; ++end)
        if (int64_t tap = tile.uses[end].tap - part.firstTap; tap >= 0 && tap < part.taps)
          uses.push_back(tile.uses[end]);
      if (uses.empty())
        continue;
      Value channels = load(operandBuffer(0), add(from, at * shape.channels), map.span);
      for (int64_t c = part.firstChannel; c < part.firstChannel + part.channels; ++c) {
        Value spread = map.spread(*this, channels, c);
        for (const LineTile::Use &use : uses) {
          Value &value = gradients[use.result];
          if (!value)
            value =
                load(operandBuffer(1), add(gradient, (tile.first + use.result) * shape.features), map.width);
          Value &sum = sums[part.sumAt(use.tap, c, tile.first + use.result)];
          sum = multiplyAdd(spread, value, sum);
        }
      }
    }
    return sums;
  }

  int64_t rank, summed, results, slots = 0; // slots: features that a chunk has sums for
  SmallVector<Walk, 3> walks;
  Value total, firstFeature, endFeature, image;
};

} // namespace

KernelInfo emitNarrowFilterGrad(ModuleOp module, const ConvSpec &spec, const Target &target) {
  return NarrowFilterGrad(module, spec, target).emit(module);
}

} // namespace ortc::codegen
