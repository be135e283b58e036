// Narrow groups: filter gradient.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A chunk walks all images in blocks of one tile of a few lines, and in a block all its features. It reads something
// close to a stream. For one vector of features the sums of a window stay in registers over the block: of all its lines
// where they fit, else of one line after another. Few sums are split in interleaved partial ones, so that enough
// are in flight. The sums of blocks are added up in the workspace.
#include "compiler/backends/cpu/conv/ConvAlgorithms.h"
#include "compiler/backends/cpu/conv/narrow/NarrowGroups.h"
#include "compiler/kernels/SumOrder.h"
#include "dialects/nn/NnShapes.h"

#include <map>

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

namespace {

/// Results along a line that a block holds where all sums of a window are in registers. Others read and write
/// their sums more often: their blocks have longer tiles and several lines.
constexpr int64_t kTileResults = 8, kLongTileResults = 16, kBlockResults = 32;
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
    channels = std::min(summed, kNarrowChannels);
    taps = std::min(shape.filter.back(), std::max<int64_t>(1, kMostSums / channels));
    int64_t lines = rank > 1 ? shape.filter[rank - 2] : 1;
    for (int64_t count = 2; count <= lines && count * shape.filter.back() * channels <= kMostSums; ++count)
      rows = lines % count ? rows : count;
    int64_t sums = rows * taps * channels;
    splits = sums >= 6 ? 1 : sums >= 3 ? 2 : 4;
    isWhole = sums == lines * shape.filter.back() * summed;
    fetches = isWhole && bytesRead > target.machine.l2Bytes;
    int64_t tileBytes = kTileResults * shape.features * elementBytes;
    fetchedTiles = (kFetchDistance + tileBytes - 1) / tileBytes;
  }

  KernelInfo emit(ModuleOp module) {
    int64_t features = shape.features, pieces = std::max<int64_t>(1, features / kDotLanes);
    int64_t chunks =
        std::min<int64_t>(pieces, shape.parts > 1 || (isStream() && pieces < 2 * kPiecesOfStream) ? 1 : 2);
    while (chunks > 1 && chunks < kMostChunks && pieces / (2 * chunks) >= kPiecesOfChunk)
      chunks *= 2;
    info.chunks = chunks;
    int64_t widest = (pieces + chunks - 1) / chunks * kDotLanes + features % kDotLanes;
    slots = (widest + lanes - 1) / lanes * lanes;
    int64_t sums = nn::elementCount(shape.filter) * summed;
    begin(module, sums * slots * elementBytes);
    total = kernel.workspaceView(*this, getLoc(), 0, element, sums * slots);
    auto border = [&](Value chunk) { return mul(div(mul(chunk, pieces), chunks), kDotLanes); };
    Value isLast = arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, kernel.chunk, index(chunks - 1));
    firstFeature = chunks == 1 ? index(0) : border(kernel.chunk);
    endFeature =
        chunks == 1
            ? index(features)
            : Value(arith::SelectOp::create(*this, isLast, index(features), border(add(kernel.chunk, 1))));

    zeroRun(total, index(0), sums * slots);
    loop(0, shape.batch, 1, [&](Value n) {
      image = n;
      overBlocks({});
    });
    loop(0, sums, 1, [&](Value row) {
      overVectors([&](Value feature, Value slot, int64_t width) {
        store(load(total, add(mul(row, slots), slot), width), operandBuffer(2),
              add(mul(row, features), feature));
      });
    });
    return info;
  }

private:
  /// Whether memory is the limit: little arithmetic on more than a cache holds.
  bool isStream() const { return bytesRead > kStreamBytes && shape.flops() < kStreamIntensity * bytesRead; }

  /// Tiles of a line, and lines of the outer dimensions.
  struct Block {
    LineTiles tiles;
    Value tile; // which of the tiles
    SmallVector<IndexRange, 2> lines;
  };

  /// Blocks are single lines of all dimensions but the last of the outer ones, which may have several.
  void overBlocks(SmallVector<IndexRange, 2> lines) {
    int64_t d = lines.size();
    if (d == rank - 1) {
      for (const LineTiles &run : tileLine({walks.back()}, shape.output.back(), shape.input.back(), splits,
                                           isWhole ? kTileResults : kLongTileResults))
        loop(0, run.count, 1, [&](Value tile) {
          overVectors([&](Value feature, Value slot, int64_t width) {
            addBlock({run, tile, lines}, feature, slot, width);
          });
        });
      return;
    }
    int64_t count = 1;
    if (d == rank - 2 && !isWhole)
      count = std::clamp<int64_t>(kBlockResults / std::min(kLongTileResults, shape.output.back()), 1,
                                  shape.output[d]);
    loop(0, shape.output[d], count, [&](Value first) {
      lines.push_back({first, minimum(add(first, count), index(shape.output[d]))});
      overBlocks(lines);
      lines.pop_back();
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

  /// Fetches what a later tile reads of the gradient and of the last source lines: the others are in a cache. Lines
  /// follow each other, so the end of one leads on to the next.
  void fetchAhead(const Block &block, Value feature) {
    const LineTile &tile = block.tiles.tile;
    if (tile.uses.empty())
      return;
    Value gradient = image, source = image;
    for (int64_t d = 0; d < rank - 1; ++d) {
      Value last = sub(block.lines[d].end, index(1));
      gradient = add(mul(gradient, shape.output[d]), last);
      Value lowest =
          add(mul(last, walks[d].sourceStride), walks[d].base + (walks[d].taps - 1) * walks[d].tapStep);
      source = add(mul(source, shape.input[d]), lowest);
    }
    gradient = add(mul(gradient, shape.output.back()), mul(block.tile, tile.size));
    gradient = add(mul(gradient, shape.features), feature);
    source = add(mul(source, shape.input.back()), mul(block.tile, block.tiles.sourceStep));
    source = add(mul(source, shape.channels), LaneMap(lanes, results, summed).sourceChannel(*this, feature));
    int64_t stride = walks.back().sourceStride, distance = fetchedTiles * tile.size;
    for (int64_t r = 0; r < tile.size; ++r)
      fetch(operandBuffer(1), add(gradient, (tile.first + distance + r) * shape.features), /*writes=*/false);
    int64_t from = tile.uses.back().position + 1 + (distance - tile.size) * stride;
    for (int64_t line : rank > 1 ? newLines(walks[rank - 2]) : SmallVector<int64_t>{0})
      for (int64_t at = 0; at < tile.size * stride; ++at)
        fetch(operandBuffer(0), add(source, (from + at - line * shape.input.back()) * shape.channels),
              /*writes=*/false);
  }

  void addBlock(const Block &block, Value feature, Value slot, int64_t width) {
    if (fetches)
      fetchAhead(block, feature);
    overOuterTaps({}, index(0), [&](ArrayRef<Value> outerTaps, Value filterLine) {
      for (int64_t tap = 0; tap < shape.filter.back(); tap += taps)
        for (int64_t channel = 0; channel < summed; channel += channels)
          addPart({tap, std::min(taps, shape.filter.back() - tap), channel}, block, outerTaps, filterLine,
                  feature, slot, width);
    });
  }

  /// The taps of the outer dimensions, `rows` at once of the last of them: body(first taps, line of the filter).
  void overOuterTaps(SmallVector<Value> outerTaps, Value filterLine,
                     llvm::function_ref<void(ArrayRef<Value>, Value)> body) {
    int64_t d = outerTaps.size();
    if (d == rank - 1)
      return body(outerTaps, filterLine);
    loop(0, shape.filter[d], d == rank - 2 ? rows : 1, [&](Value t) {
      outerTaps.push_back(t);
      overOuterTaps(outerTaps, add(mul(filterLine, shape.filter[d]), t), body);
      outerTaps.pop_back();
    });
  }

  /// The results of `range` that meet the image with tap `t`.
  IndexRange hits(int64_t d, Value t, IndexRange range) {
    const Walk &walk = walks[d];
    Value start = add(mul(t, walk.tapStep), walk.base); // of result 0
    return {maximum(range.begin, ceilDivPositive(sub(index(0), start), walk.sourceStride)),
            minimum(range.end, ceilDivPositive(sub(index(shape.input[d]), start), walk.sourceStride))};
  }

  /// Taps along the last dimension and channels of a group whose sums are in registers together.
  struct Part {
    int64_t firstTap, taps, firstChannel;
  };
  int64_t sumAt(const Part &part, int64_t row, int64_t tap, int64_t channel, int64_t result) const {
    int64_t place = (row * part.taps + tap - part.firstTap) * channels + channel - part.firstChannel;
    return place * splits + result % splits;
  }

  void addPart(const Part &part, const Block &block, ArrayRef<Value> outerTaps, Value filterLine,
               Value feature, Value slot, int64_t width) {
    LaneMap map(width, results, summed);
    Value channel = map.sourceChannel(*this, feature);
    SmallVector<Value> sums(rows * part.taps * channels * splits, splat(element, 0, width));
    auto addLine = [&](ArrayRef<Line> sources, Value gradient, ValueRange init) {
      SmallVector<Value> next(init);
      Value gradientTile = add(mul(gradient, shape.output.back()), mul(block.tile, block.tiles.tile.size));
      gradientTile = add(mul(gradientTile, shape.features), feature);
      for (auto [row, source] : llvm::enumerate(sources)) {
        Value sourceTile = add(mul(source.at, shape.input.back()), mul(block.tile, block.tiles.sourceStep));
        sourceTile = add(mul(sourceTile, shape.channels), channel);
        next = where(source.exists, next, [&](ValueRange values) {
          return addTile(part, row, block.tiles.tile, map, sourceTile, gradientTile, values);
        });
      }
      return next;
    };
    sums = overLines(block.lines, outerTaps, image, image, sums, addLine);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t tap = part.firstTap; tap < part.firstTap + part.taps; ++tap)
        for (int64_t c = part.firstChannel; c < part.firstChannel + channels; ++c) {
          SmallVector<Value> terms;
          for (int64_t i = 0; i < splits; ++i)
            terms.push_back(sums[sumAt(part, row, tap, c, i)]);
          for (; terms.size() > 1; terms.resize(terms.size() / 2))
            for (size_t i = 0; i < terms.size() / 2; ++i)
              terms[i] = arith::AddFOp::create(*this, terms[2 * i], terms[2 * i + 1]);
          Value position = add(mul(add(filterLine, row), shape.filter.back()), tap);
          Value place = add(mul(add(mul(position, summed), c), slots), slot);
          store(arith::AddFOp::create(*this, load(total, place, width), terms[0]), total, place);
        }
  }

  /// A line of the source, and whether it is inside the image (null: known to be).
  struct Line {
    Value at, exists;
  };
  using LineBody = llvm::function_ref<SmallVector<Value>(ArrayRef<Line>, Value, ValueRange)>;
  /// The lines of results of a block: body(source lines of `rows` taps from the last of `outerTaps` on, line, sums).
  SmallVector<Value> overLines(ArrayRef<IndexRange> lines, ArrayRef<Value> outerTaps, Value from,
                               Value gradient, ValueRange sums, LineBody body, int64_t d = 0) {
    if (d == rank - 1)
      return body({Line{from, {}}}, gradient, sums);
    bool takesRows = d == rank - 2 && rows > 1;
    IndexRange range = takesRows ? lines[d] : hits(d, outerTaps[d], lines[d]);
    return fold(range, 1, sums, [&](Value at, ValueRange carried) {
      const Walk &walk = walks[d];
      Value position = add(add(mul(at, walk.sourceStride), mul(outerTaps[d], walk.tapStep)), walk.base);
      Value source = add(mul(from, shape.input[d]), position);
      Value line = add(mul(gradient, shape.output[d]), at);
      if (!takesRows)
        return overLines(lines, outerTaps, source, line, carried, body, d + 1);
      SmallVector<Line> sources;
      for (int64_t row = 0; row < rows; ++row)
        sources.push_back({add(source, row * walk.tapStep),
                           arith::CmpIOp::create(*this, arith::CmpIPredicate::ult,
                                                 add(position, row * walk.tapStep), index(shape.input[d]))});
      return body(sources, line, carried);
    });
  }

  /// body(values) where the condition holds, `values` elsewhere.
  SmallVector<Value> where(Value condition, ValueRange values,
                           llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
    if (!condition)
      return body(values);
    auto branch = scf::IfOp::create(*this, values.getTypes(), condition, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(*this, body(values));
    setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(*this, values);
    return llvm::to_vector_of<Value>(branch.getResults());
  }

  SmallVector<Value> addTile(const Part &part, int64_t row, const LineTile &tile, const LaneMap &map,
                             Value from, Value gradient, ValueRange init) {
    SmallVector<Value> sums(init), gradients(tile.size);
    for (size_t begin = 0, end; begin < tile.uses.size(); begin = end) {
      int64_t at = tile.uses[begin].position;
      SmallVector<LineTile::Use> uses;
      for (end = begin; end < tile.uses.size() && tile.uses[end].position == at; ++end)
        if (int64_t tap = tile.uses[end].tap - part.firstTap; tap >= 0 && tap < part.taps)
          uses.push_back(tile.uses[end]);
      if (uses.empty())
        continue;
      Value source = load(operandBuffer(0), add(from, at * shape.channels), map.span);
      for (int64_t c = part.firstChannel; c < part.firstChannel + channels; ++c) {
        Value spread = map.spread(*this, source, c);
        for (const LineTile::Use &use : uses) {
          Value &value = gradients[use.result];
          if (!value)
            value =
                load(operandBuffer(1), add(gradient, (tile.first + use.result) * shape.features), map.width);
          Value &sum = sums[sumAt(part, row, use.tap, c, tile.first + use.result)];
          sum = multiplyAdd(spread, value, sum);
        }
      }
    }
    return sums;
  }

  int64_t rank, summed, results, slots = 0; // slots: features that a chunk has sums for
  // The sums of a part: of so many taps of the last dimension and the one before (`rows`), channels of a
  // group, and results in turns. isWhole: no sum of a window is missing.
  int64_t taps, rows = 1, channels, splits;
  bool isWhole;
  bool fetches; // memory ahead, by so many tiles:
  int64_t fetchedTiles;
  SmallVector<Walk, 3> walks;
  Value total, firstFeature, endFeature, image;
};

} // namespace

KernelInfo emitNarrowFilterGrad(ModuleOp module, const ConvSpec &spec, const Target &target) {
  return NarrowFilterGrad(module, spec, target).emit(module);
}

} // namespace ortc::cpu
