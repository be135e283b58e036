// Filter gradient of one group.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dW = A^T B: rows of a register tile are neighbours in (filter position, channel), columns are features, the reduction
// runs over the results of a group of image rows (or of a few small images). Groups are added up in the filter itself,
// one after another, so that no sum is one long chain. A chunk owns a block of channels, a range of columns and perhaps
// a range of filter positions: chunks share nothing.
#include "compiler/backends/cpu/conv/ConvAlgorithms.h"
#include "compiler/backends/cpu/conv/dense/DenseEmitter.h"

#include "compiler/backends/cpu/contraction/VectorAccess.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

/// Results of a group.
static constexpr int64_t kGroupResults = 512;
/// Channels of a block.
static constexpr int64_t kBlockChannels = 64;
/// Chunks that there should be, if there is enough to do.
static constexpr int64_t kWantedChunks = 4;
/// Rows that do not share a tile with those of other filter positions.
static constexpr int64_t kWholeRun = 15;
/// Columns and rows that a chunk has at least.
static constexpr int64_t kChunkColumns = 32, kChunkRows = 9;

namespace {

class DenseFilterGradEmitter : public DenseEmitter {
public:
  DenseFilterGradEmitter(ModuleOp module, const ConvSpec &spec, const Target &target)
      : DenseEmitter(module, spec, target) {
    if (shape.rank() == 1) // a second dimension of one point
      for (auto [sizes, value] : {std::pair{&shape.input, 1},
                                  {&shape.filter, 1},
                                  {&shape.output, 1},
                                  {&shape.strides, 1},
                                  {&shape.low, 0},
                                  {&shape.dilations, 1}})
        sizes->push_back(value);
    rank = shape.rank();
    for (int64_t d = 0; d < rank; ++d)
      walks.push_back(forwardWalk(shape, d));
  }

  FailureOr<KernelInfo> emit(ModuleOp module) {
    planGroups();
    planChunks();
    planTile(nullptr);
    // A tile with rows of several filter positions sums zeros of the border, others leave them out.
    if (run() >= kWholeRun &&
        failed(choose("", [&](const KernelChoice *choice) { return planTile(choice); })))
      return failure();
    int64_t blockBytes = bytesOf(block.copied ? block.elements() : 0);
    int64_t panelBytes = bytesOf(packsPanels() ? groupResults() * vectors * lanes : 0);
    begin(module, blockBytes + panelBytes);
    auto view = [&](int64_t at, int64_t bytes) {
      return bytes ? kernel.workspaceView(*this, getLoc(), at, element, bytes / elementBytes) : Value();
    };
    blockBuffer = view(0, blockBytes);
    panelBuffer = view(blockBytes, panelBytes);
    if (block.copied)
      zeroRun(blockBuffer, index(0), block.elements());

    Value tapChunk = rem(kernel.chunk, tapChunks), others = div(kernel.chunk, tapChunks);
    Value columnChunk = rem(others, columnChunks);
    channelBlock = div(others, columnChunks);
    own = {mul(columnChunk, chunkColumns),
           minimum(mul(add(columnChunk, 1), chunkColumns), index(shape.features))};
    if (columnChunks == 1)
      own = {index(0), index(shape.features)};
    int64_t groups = shape.batch / block.images * block.blocks;
    loop(0, groups, 1, [&](Value group) {
      isFirst =
          groups == 1 ? Value() : arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, group, index(0));
      firstImage = mul(div(group, block.blocks), block.images);
      blockIndex = rem(group, block.blocks);
      fillImages(block, operandBuffer(0), firstImage, blockIndex, channelBlock);
      Value begin = mul(blockIndex, block.blockPoints);
      points = {begin, minimum(add(begin, block.blockPoints), index(shape.output[0]))};
      overPanels([&](Panel panel) {
        packPanel(panel);
        int64_t last = shape.filter[0] - (tapChunks - 1) * chunkTaps;
        if (last == chunkTaps)
          return overTaps(panel, mul(tapChunk, chunkTaps), chunkTaps);
        guarded(arith::CmpIPredicate::ult, tapChunk, index(tapChunks - 1),
                [&] { overTaps(panel, mul(tapChunk, chunkTaps), chunkTaps); });
        guarded(arith::CmpIPredicate::eq, tapChunk, index(tapChunks - 1),
                [&] { overTaps(panel, index((tapChunks - 1) * chunkTaps), last); });
      });
    });
    return info;
  }

private:
  /// Results of a block per grid point of dimension 0, and of a group.
  int64_t resultsOfPoint() const { return nn::elementCount(ArrayRef(shape.output).drop_front()); }
  int64_t groupResults() const { return block.images * block.blockPoints * resultsOfPoint(); }
  /// Rows of the gradient that are close together are read in place.
  bool packsPanels() const { return shape.features * elementBytes >= 1024; }
  /// Filter positions of the last dimension and channels are one run of the source.
  bool isMerged() const { return walks.back().tapStep == 1 && block.steps().back() == block.channels; }
  int64_t run() const { return block.channels * (isMerged() ? shape.filter.back() : 1); }

  void planGroups() {
    int64_t channels = shape.channels, wanted = (channels + kBlockChannels - 1) / kBlockChannels;
    auto choose = [&] {
      for (int64_t unit : {16, 1})
        for (int64_t blocks = wanted; blocks < 2 * wanted; ++blocks)
          if (channels % (blocks * unit) == 0 && channels / blocks >= 16)
            return channels / blocks;
      return channels;
    };
    SmallVector<Walk, 3> all(walks.begin(), walks.end());
    block = planImages({all}, shape.input, channels, choose(), INT64_MAX);
    int64_t points = std::max(kGroupResults / resultsOfPoint(), 2 * block.span / block.rowStep);
    cutGroups(block, shape.batch, shape.output[0], std::max<int64_t>(1, points), shape.batch, 1,
              elementBytes);
  }

  void planChunks() {
    int64_t wanted = std::clamp<int64_t>(shape.flops() / target.machine.parallel.convFlops, 1, kWantedChunks);
    wanted = (wanted + shape.parts - 1) / shape.parts;
    auto pieces = [&](int64_t have, int64_t most) {
      return std::clamp<int64_t>((wanted + have - 1) / have, 1, std::max<int64_t>(1, most));
    };
    columnChunks = pieces(block.channelBlocks, shape.features / kChunkColumns);
    chunkColumns = (shape.features + columnChunks - 1) / columnChunks;
    if (columnChunks > 1)
      chunkColumns = (chunkColumns + 31) / 32 * 32;
    columnChunks = (shape.features + chunkColumns - 1) / chunkColumns;
    wanted = std::min<int64_t>(wanted, 2); // each copies its image
    int64_t rows = nn::elementCount(shape.filter) / shape.filter[0] * block.channels;
    int64_t tapsAtLeast = (kChunkRows + rows - 1) / rows;
    tapChunks = pieces(block.channelBlocks * columnChunks, shape.filter[0] / tapsAtLeast);
    chunkTaps = (shape.filter[0] + tapChunks - 1) / tapChunks;
    tapChunks = (shape.filter[0] + chunkTaps - 1) / chunkTaps;
    info.chunks = block.channelBlocks * columnChunks * tapChunks;
  }

  /// Groups decide about the order of sums: the choice is the tile.
  KernelChoice planTile(const KernelChoice *choice) {
    // A panel divides a chunk's columns.
    int64_t widest = columnChunks == 1 ? shape.features : 32;
    highest = wishRows(choice);
    TileOptions options{false, true, columnChunks == 1,
                        possibleVectors(wish(choice, "vectors", 0), widest, columnChunks == 1), highest};
    TileChoice tile = pickTile(run(), 1, widest, options);
    vectors = tile.vectors;
    // Rows of several filter positions of the first dimension where a run is short.
    if (rank == 2 && run() < kWholeRun)
      for (int64_t wider = std::min<int64_t>(4, (widest + lanes - 1) / lanes); wider > 0; --wider)
        if (wider != 3 && fits(run() * std::min<int64_t>(2, chunkTaps), wider)) {
          vectors = wider;
          break;
        }
    return {{"rows", tile.rows}, {"vectors", vectors}};
  }

  /// Filter positions of the first dimension that a tile takes in, of `taps`.
  int64_t tapsOfTile(int64_t taps) const {
    int64_t best = 1;
    for (int64_t several = 2; several <= taps && rank == 2 && run() < kMostRows; ++several)
      if (taps % several == 0 && fits(several * run(), vectors) && several * run() <= 28)
        best = several;
    return best;
  }

  void overPanels(llvm::function_ref<void(Panel)> body) {
    overColumns(own, shape.features, vectors, [&](Value column, int64_t count, int64_t tail) {
      if (packsPanels())
        return body({column, count, tail, panelBuffer, index(0), count * lanes});
      body({column, count, tail, operandBuffer(1), index(0), shape.features});
    });
  }

  /// panel[image of the group][result][column].
  void packPanel(const Panel &panel) {
    if (!packsPanels())
      return;
    loop(0, block.images, 1, [&](Value image) {
      Value row = add(mul(add(firstImage, image), shape.output[0]), points.begin);
      Value base = add(mul(row, resultsOfPoint() * shape.features), panel.column);
      Value place = mul(image, block.blockPoints * resultsOfPoint() * panel.pitch);
      copyPanel(panel, operandBuffer(1), base, shape.features, place,
                mul(sub(points.end, points.begin), resultsOfPoint()));
    });
  }

  /// `count` filter positions of the first dimension from `first` on.
  void overTaps(const Panel &panel, Value first, int64_t count) {
    int64_t together = tapsOfTile(count);
    loop({first, add(first, count)}, together, [&](Value tap) {
      std::function<void(SmallVector<Value>)> over = [&](SmallVector<Value> taps) {
        int64_t d = taps.size();
        if (d == rank - 1 && isMerged())
          taps.push_back(index(0));
        if (d == rank || int64_t(taps.size()) == rank)
          return overRows(panel, taps, together);
        loop(0, shape.filter[d], 1, [&](Value t) {
          auto inner = taps;
          inner.push_back(t);
          over(inner);
        });
      };
      over({tap});
    });
  }

  void overRows(const Panel &panel, ArrayRef<Value> taps, int64_t together) {
    if (together > 1)
      return emitTile(panel, taps, index(0), run(), together);
    int64_t from = 0,
            rows = pickTile(run(), 1, shape.features, {false, true, false, panel.vectors, highest}).rows;
    for (auto [size, count] : evenTiles(run(), rows)) {
      loop(from, from + size * count, size, [&](Value row) { emitTile(panel, taps, row, size, 1); });
      from += size * count;
    }
  }

  /// `rows` rows from `row` of the run on, at each of `together` filter positions.
  void emitTile(const Panel &panel, ArrayRef<Value> taps, Value row, int64_t rows, int64_t together) {
    IndexBuilder at(*this, getLoc());
    // Results whose windows are not all padding in the first dimension.
    IndexRange range = points;
    const Walk &walk = walks[0];
    if (together == 1) {
      Value place = add(mul(taps[0], walk.tapStep), walk.base);
      range.begin = maximum(range.begin, ceilDivPositive(sub(index(0), place), walk.sourceStride));
      range.end = minimum(range.end, ceilDivPositive(sub(index(shape.input[0]), place), walk.sourceStride));
    }
    SmallVector<Value> position;
    for (int64_t d = 0; d < rank; ++d) {
      Value place = add(mul(taps[d], walks[d].tapStep), walks[d].base);
      position.push_back(d == 0 ? add(place, mul(range.begin, walk.sourceStride)) : place);
    }
    Value sourceAt = imagePlace(block, firstImage, index(0), blockIndex, channelBlock, position);
    Offset sourceBase(add(sourceAt, row));
    Value source = block.copied ? blockBuffer : operandBuffer(0);
    SmallVector<int64_t> steps = block.steps();

    // Where the gradient of the first result is.
    Value begin =
        packsPanels() ? sub(range.begin, points.begin) : add(mul(firstImage, shape.output[0]), range.begin);
    Value gradientAt = mul(begin, resultsOfPoint() * panel.pitch);
    Offset gradientBase(packsPanels() ? gradientAt : add(gradientAt, panel.column));

    SmallVector<ReductionLoop> loops;
    SmallVector<int64_t> sourceSteps, gradientSteps;
    int64_t gradientStep = panel.pitch;
    for (int64_t d = rank; d-- > 0;) {
      Offset count = d == 0 ? offsetOf(sub(range.end, range.begin)) : Offset(shape.output[d]);
      loops.insert(loops.begin(), {count, 1});
      sourceSteps.insert(sourceSteps.begin(), steps[d] * walks[d].sourceStride);
      gradientSteps.insert(gradientSteps.begin(), gradientStep);
      gradientStep *= d == 0 ? (packsPanels() ? block.blockPoints : shape.output[0]) : shape.output[d];
    }
    loops.insert(loops.begin(), {Offset(block.images), 1});
    sourceSteps.insert(sourceSteps.begin(), imageStep(block));
    gradientSteps.insert(gradientSteps.begin(), gradientStep);

    auto move = [&](Offset from, ReductionIndex k, ArrayRef<int64_t> by) {
      for (auto [number, step] : llvm::zip_equal(k, by))
        from = at.add(from, at.mul(number, step));
      return from;
    };
    auto loadA = [&](int64_t r, ReductionIndex k) -> Value {
      int64_t offset = r / rows * steps[0] * walk.tapStep + r % rows;
      return loadScalar(source, at.value(at.add(move(sourceBase, k, sourceSteps), offset)));
    };
    auto loadB = [&](int64_t v, ReductionIndex k) -> Value {
      Offset place = at.add(move(gradientBase, k, gradientSteps), v * lanes);
      int64_t live = v + 1 == panel.vectors && !packsPanels() ? panel.tail : lanes;
      return loadLive(panel.buffer, place, {lanes, live});
    };
    int64_t count = together * rows;
    loops.back().unroll = unrollOf(count * panel.vectors, shape.output.back());
    SmallVector<Value> sums(count * panel.vectors, splat(element, 0, lanes));
    sums = emitMicrokernel(*this, getLoc(), {count, panel.vectors, lanes}, loops, sums, {loadA, loadB}, fma);

    Value base = taps[0];
    for (int64_t d = 1; d < rank; ++d)
      base = add(mul(base, shape.filter[d]), taps[d]);
    base = add(mul(base, shape.channels), mul(channelBlock, block.channels));
    bool linear = block.channels == shape.channels || block.channels % rows == 0 || !isMerged();
    auto filterRow = [&](Value r) {
      if (block.channels == shape.channels || !isMerged())
        return add(base, r);
      return add(add(base, mul(div(r, block.channels), shape.channels)), rem(r, block.channels));
    };
    Value first = linear ? filterRow(row) : Value();
    for (int64_t r = 0; r < count; ++r) {
      Value place = linear ? add(first, r % rows) : filterRow(add(row, r % rows));
      place = add(place, r / rows * shape.channels * nn::elementCount(shape.filter) / shape.filter[0]);
      place = add(mul(place, shape.features), panel.column);
      for (int64_t v = 0; v < panel.vectors; ++v)
        addTo(add(place, v * lanes), v + 1 == panel.vectors ? panel.tail : lanes, sums[r * panel.vectors + v],
              isFirst);
    }
  }

  int64_t rank;
  SmallVector<Walk, 3> walks;
  ImageBlock block;
  int64_t chunkColumns = 0, columnChunks = 1, chunkTaps = 1, tapChunks = 1;
  int64_t vectors = 1, highest = kMostRows; // of a tile, and a limit of its rows
  IndexRange own, points;                   // columns of the chunk, grid points of dimension 0 of the group
  Value firstImage, blockIndex, channelBlock, panelBuffer;
  Value isFirst; // group; null when there is one
};

} // namespace

FailureOr<KernelInfo> emitDenseFilterGrad(ModuleOp module, const ConvSpec &spec, const Target &target) {
  return DenseFilterGradEmitter(module, spec, target).emit(module);
}

} // namespace ortc::cpu
