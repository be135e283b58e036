// Dense convolution and its input gradient.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A blocked implicit GEMM. A group of neighbouring results (rows of an image, or a few small images) is summed block
// by block of the reduction: some channels, some filter positions of the first dimension. A block of the image is
// copied with its border to the workspace, channels of the block side by side. A panel of the filter, a few vectors of
// columns, is copied as well. It stays in the first-level cache while all tiles of the group go over it. Rows of a
// tile are neighbours along the last dimension, of one image or of several. Between blocks sums live in the workspace;
// rows of padding alone are left out. A reduction of one block has all panels packed once, and every tile goes over
// all of them. The input gradient is a walk per phase of the stride; phases with equally many results share code.
#include "compiler/backends/cpu/conv/ConvAlgorithms.h"
#include "compiler/backends/cpu/conv/dense/DenseEmitter.h"

#include "compiler/backends/cpu/contraction/VectorAccess.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

/// Results of a group whose sums wait in the workspace.
static constexpr int64_t kGroupResults = 512;
/// Columns of a chunk when sums wait in the workspace.
static constexpr int64_t kChunkColumns = 128;
/// Chunks that there should be at least, if the columns allow it.
static constexpr int64_t kEnoughChunks = 4;
/// Points with as many channels are copied when a block has but some of them: rows of a tile in few sets of a cache.
static constexpr int64_t kFarChannels = 512;
/// Points of the first dimension that a group may have.
static constexpr int64_t kMostPoints = 1 << 20;
/// Blocks of the only dimension are multiples of the heights of most tiles.
static constexpr int64_t kPointUnit = 168;

namespace {

/// Phases [first, first + phases) of the stride of one dimension, each with `count` grid points.
struct PhaseRange {
  int64_t first, phases, count;
};

/// Values that differ between phases, in one dimension.
struct PhaseValues {
  Value taps, base, filterBase, outBase;
  Value slot; // of its panels, among those of the phases of this dimension and the ones before
};

/// `rows` results from the last of `grid` on, in each of `images` images from `image` of the group on.
struct Tile {
  ArrayRef<Value> grid;
  Value image;
  int64_t images, rows;
};

class DenseWalker : public DenseEmitter {
public:
  DenseWalker(ModuleOp module, const ConvSpec &spec, const Target &target)
      : DenseEmitter(module, spec, target), sides(sidesOf(shape, isa<nn::ConvOp>(spec.op))),
        forward(sides.forward), rank(shape.rank()), result(sides.result), resultColumns(sides.resultChannels),
        walks(sides.walks) {
    for (ArrayRef<Walk> phases : walks) {
      mostTaps.push_back(0);
      for (const Walk &walk : phases)
        mostTaps.back() = std::max(mostTaps.back(), walk.taps);
    }
  }

  FailureOr<KernelInfo> emit(ModuleOp module) {
    if (failed(choose("", [&](const KernelChoice *choice) { return plan(choice); })))
      return failure();
    skipsPadding = findsPadding();
    int64_t blockBytes = bytesOf(block.copied ? block.elements() : 0), panelBytes = bytesOf(panelElements());
    int64_t partialBytes = bytesOf(isBlocked() ? partialElements() : 0);
    bool rolled = spec.rollEpilogue && !isBlocked();
    int64_t tileBytes = bytesOf(rolled ? mostRows * vectors * lanes : 0);
    begin(module, blockBytes + panelBytes + partialBytes + tileBytes);
    auto view = [&](int64_t at, int64_t bytes) {
      return bytes ? kernel.workspaceView(*this, getLoc(), at, element, bytes / elementBytes) : Value();
    };
    blockBuffer = view(0, blockBytes);
    panelBuffer = view(blockBytes, panelBytes);
    partial = view(blockBytes + panelBytes, partialBytes);
    tileSums = view(blockBytes + panelBytes + partialBytes, tileBytes);

    if (block.copied)
      zeroRun(blockBuffer, index(0), block.elements());
    Value columnChunk = rem(kernel.chunk, columnChunks), groupChunk = div(kernel.chunk, columnChunks);
    if (columnChunks == 1)
      own = {index(0), index(resultColumns)};
    else
      own = {mul(columnChunk, chunkColumns),
             minimum(mul(add(columnChunk, 1), chunkColumns), index(resultColumns))};
    channelBlock = index(0);
    if (!isBlocked() && packsPanels())
      overPhaseRanges({}, [&](ArrayRef<PhaseRange>, ArrayRef<PhaseValues> phase) {
        overPanels(phase, [&](Panel panel) { packPanel(panel, phase, index(0), phase[0].taps); });
      });
    Value first = mul(groupChunk, groupsPerChunk);
    loop({first, minimum(add(first, groupsPerChunk), index(groups))}, 1,
         [&](Value group) { emitGroup(group); });
    return info;
  }

private:
  bool isBlocked() const { return block.channelBlocks * tapBlocks > 1; }
  int64_t tapsInside() const { return nn::elementCount(ArrayRef(mostTaps).drop_front()); }
  /// Results per grid point of the first dimension, of all phases.
  int64_t resultsOfPoint() const {
    return walks[0][0].outStep * nn::elementCount(ArrayRef(result).drop_front());
  }
  int64_t partialPitch() const { return (std::min(chunkColumns, resultColumns) + 15) / 16 * 16; }
  int64_t partialElements() const {
    return block.images * block.blockPoints * resultsOfPoint() * partialPitch();
  }
  bool packsPanels() const { return !forward || resultColumns != vectors * lanes; }
  /// Whether taps of a reduction of one block are left out where they meet rows of nothing but padding: if
  /// they are many.
  bool findsPadding() const {
    if (isBlocked() || rank == 1)
      return false;
    int64_t all = 0, inside = 0;
    for (const Walk &walk : walks[0])
      for (int64_t q = 0; q < walk.count; ++q)
        for (int64_t t = 0; t < walk.taps; ++t) {
          int64_t row = q * walk.sourceStride + walk.base + t * walk.tapStep;
          ++all, inside += row >= 0 && row < block.image[0];
        }
    return inside * 16 < all * 15;
  }
  /// Rows of a panel.
  int64_t panelDepth() const { return tapsPerBlock * tapsInside() * block.channels; }
  int64_t panelElements() const {
    if (!packsPanels())
      return 0;
    if (isBlocked())
      return panelDepth() * vectors * lanes;
    int64_t phases = 1;
    for (ArrayRef<Walk> ofDim : walks)
      phases *= llvm::count_if(ofDim, [](const Walk &walk) { return walk.taps > 0; });
    return phases * phaseElements();
  }
  /// Of all panels of a phase, when all are packed.
  int64_t phaseElements() const {
    return panelDepth() * ((std::min(chunkColumns, resultColumns) + lanes - 1) / lanes * lanes);
  }

  /// The choice: points of the first dimension in a group, columns of a chunk, and the tile.
  KernelChoice plan(const KernelChoice *choice) {
    planBlocks();
    planGroups(choice);
    planTile(choice);
    return {{"group", block.images > 1 ? block.images * block.blockPoints : block.blockPoints},
            {"columns", chunkColumns},
            {"rows", tileRows},
            {"vectors", vectors}};
  }

  /// Cuts the reduction: depends on the shape only, as the order of sums does.
  void planBlocks() {
    int64_t columns = sides.sourceChannels, inside = tapsInside();
    DepthBlocks depth = planDepth(mostTaps[0], inside, columns);
    tapsPerBlock = depth.taps;
    tapBlocks = (mostTaps[0] + tapsPerBlock - 1) / std::max<int64_t>(1, tapsPerBlock);
    SmallVector<SmallVector<Walk, 3>> all = phaseProduct(walks);
    block = planImages(all, sides.source, columns, depth.channels, kFarChannels);
  }

  void planGroups(const KernelChoice *choice) {
    int64_t points = 0;
    for (const Walk &walk : walks[0])
      points = std::max(points, walk.count);
    int64_t wantedPoints = std::max<int64_t>(1, (isBlocked() ? 1 : 2) * kGroupResults / resultsOfPoint());
    wantedPoints = std::clamp<int64_t>(wish(choice, "group", wantedPoints), 1, kMostPoints);
    cutGroups(block, shape.batch, points, wantedPoints, isBlocked() ? shape.batch : shape.batch / 4,
              rank == 1 ? kPointUnit : 1, elementBytes);
    groups = shape.batch / block.images * block.blocks;
    columnChunks = isBlocked() ? (resultColumns + kChunkColumns - 1) / kChunkColumns : 1;
    int64_t wanted = std::clamp<int64_t>(shape.flops() / target.machine.parallel.convFlops, 1, kEnoughChunks);
    if (groups * columnChunks < wanted)
      columnChunks = std::min((wanted + groups - 1) / groups, (resultColumns + 63) / 64);
    int64_t wantedColumns = wish(choice, "columns", 0);
    if (wantedColumns > 0)
      columnChunks = (resultColumns + wantedColumns - 1) / wantedColumns;
    chunkColumns = columnChunks == 1 ? resultColumns
                                     : ((resultColumns + columnChunks - 1) / columnChunks + 63) / 64 * 64;
    columnChunks = (resultColumns + chunkColumns - 1) / chunkColumns;
    int64_t flops = std::max<int64_t>(1, shape.flops() / (groups * columnChunks));
    groupsPerChunk = std::clamp<int64_t>((target.machine.parallel.convFlops + flops - 1) / flops, 1, groups);
    if (!isBlocked()) { // every chunk packs its panels
      int64_t results = std::max<int64_t>(1, shape.batch * nn::elementCount(result) / groups);
      int64_t several =
          std::min((kGroupResults + results - 1) / results, groups * columnChunks / kEnoughChunks);
      groupsPerChunk = std::max(groupsPerChunk, several);
    }
    info.chunks = (groups + groupsPerChunk - 1) / groupsPerChunk * columnChunks;
  }

  /// Rows and vectors of the register tile.
  void planTile(const KernelChoice *choice) {
    const Walk &last = walks.back()[0];
    // Many points that lie far apart share few sets of a cache.
    int64_t step = block.steps().back() * last.sourceStride;
    vectors = 0;
    highest = wishRows(choice, step >= kFarChannels ? 6 : kMostRows);
    vectors = possibleVectors(wish(choice, "vectors", 0), resultColumns, columnChunks == 1);
    vectors = pickTile(last.count, block.images, resultColumns, tileOptions()).vectors;
    mostRows = tileRows = 1;
    for (const Walk &walk : walks.back()) {
      if (walk.count == 0)
        continue; // fewer results than phases
      for (auto [size, count] : heights(walk.count)) {
        mostRows = std::max(mostRows, size * pairsFor(walk.count));
        tileRows = std::max(tileRows, size);
      }
    }
  }
  TileOptions tileOptions() const {
    return {rank == 1 && block.blocks > 1, rank > 1, columnChunks == 1, vectors, highest};
  }
  int64_t pairsFor(int64_t count) {
    return pickTile(count, block.images, resultColumns, tileOptions()).images;
  }
  SmallVector<std::pair<int64_t, int64_t>, 2> heights(int64_t count) {
    int64_t rows = pickTile(count, block.images, resultColumns, tileOptions()).rows;
    if (rank > 1)
      return evenTiles(count, rows);
    SmallVector<std::pair<int64_t, int64_t>, 2> sizes{{rows, count / rows}};
    if (count % rows)
      sizes.push_back({count % rows, 1});
    return sizes;
  }

  void emitGroup(Value group) {
    firstImage = mul(div(group, block.blocks), block.images);
    blockIndex = rem(group, block.blocks);
    if (isBlocked())
      zeroRun(partial, index(0), partialElements());
    loop(0, block.channelBlocks, 1, [&](Value part) {
      channelBlock = part;
      fillImages(block, operandBuffer(0), firstImage, blockIndex, part);
      overPhaseRanges(
          {}, [&](ArrayRef<PhaseRange> ranges, ArrayRef<PhaseValues> phase) { emitPhase(ranges, phase); });
    });
    if (isBlocked())
      finishGroup();
  }

  using PhaseBody = llvm::function_ref<void(ArrayRef<PhaseRange>, ArrayRef<PhaseValues>)>;

  /// Ranges of phases of all dimensions, then the phases in them.
  void overPhaseRanges(SmallVector<PhaseRange> ranges, PhaseBody body) {
    int64_t d = ranges.size();
    if (d == rank)
      return overPhases(ranges, {}, body);
    int64_t phases = walks[d].size();
    for (int64_t first = 0, next; first < phases; first = next) {
      for (next = first + 1; next < phases && walks[d][next].count == walks[d][first].count;)
        ++next;
      if (walks[d][first].count == 0)
        continue;
      auto inner = ranges;
      inner.push_back({first, next - first, walks[d][first].count});
      overPhaseRanges(inner, body);
    }
  }

  void overPhases(ArrayRef<PhaseRange> ranges, SmallVector<PhaseValues> phase, PhaseBody body) {
    int64_t d = phase.size();
    if (d == rank)
      return body(ranges, phase);
    SmallVector<int64_t> slots; // number of phases before with anything to sum
    int64_t used = 0;
    for (const Walk &walk : walks[d]) {
      slots.push_back(used);
      used += walk.taps > 0;
    }
    loop(ranges[d].first, ranges[d].first + ranges[d].phases, 1, [&](Value number) {
      auto pick = [&](int64_t Walk::*field) {
        SmallVector<int64_t> values;
        for (const Walk &walk : walks[d])
          values.push_back(walk.*field);
        return pickByPhase(number, values);
      };
      auto inner = phase;
      Value slot = d == 0 ? index(0) : mul(phase.back().slot, used);
      inner.push_back({pick(&Walk::taps), pick(&Walk::base), pick(&Walk::filterBase), pick(&Walk::outBase),
                       add(slot, pickByPhase(number, slots))});
      overPhases(ranges, inner, body);
    });
  }

  Value pickByPhase(Value number, ArrayRef<int64_t> values) {
    if (auto constant = constantOf(number))
      return index(values[*constant]);
    Value value = index(values[0]);
    for (size_t phase = 1; phase < values.size(); ++phase) {
      if (values[phase] == values[phase - 1])
        continue;
      Value later = arith::CmpIOp::create(*this, arith::CmpIPredicate::uge, number, index(phase));
      value = arith::SelectOp::create(*this, later, index(values[phase]), value);
    }
    return value;
  }

  void emitPhase(ArrayRef<PhaseRange> ranges, ArrayRef<PhaseValues> phase) {
    if (!isBlocked())
      return overTiles(ranges, phase, index(0), phase[0].taps, [&](const Tile &tile) {
        overPanels(phase, [&](Panel panel) { emitTile(phase, tile, index(0), phase[0].taps, panel); });
      });
    loop(0, tapBlocks, 1, [&](Value tapBlock) {
      Value firstTap = mul(tapBlock, tapsPerBlock);
      Value taps = tapBlocks == 1
                       ? phase[0].taps
                       : maximum(index(0), minimum(index(tapsPerBlock), sub(phase[0].taps, firstTap)));
      overPanels(phase, [&](Panel panel) {
        packPanel(panel, phase, firstTap, taps);
        overTiles(ranges, phase, firstTap, taps,
                  [&](const Tile &tile) { emitTile(phase, tile, firstTap, taps, panel); });
      });
    });
  }

  /// The panels of this chunk's columns.
  void overPanels(ArrayRef<PhaseValues> phase, llvm::function_ref<void(Panel)> body) {
    overColumns(own, resultColumns, vectors, [&](Value column, int64_t count, int64_t tail) {
      if (!packsPanels())
        return body({column, count, tail, operandBuffer(1), index(0), resultColumns});
      Value place = index(0);
      if (!isBlocked())
        place = add(mul(phase.back().slot, phaseElements()), mul(sub(column, own.begin), panelDepth()));
      body({column, count, tail, panelBuffer, place, count * lanes});
    });
  }

  /// panel[tap...][reduced channel of the block][column], as much of it as the walk needs.
  void packPanel(const Panel &panel, ArrayRef<PhaseValues> phase, Value firstTap, Value taps) {
    if (!packsPanels())
      return;
    std::function<void(int64_t, Value, Value)> overTaps = [&](int64_t d, Value tap, Value position) {
      if (d == rank) {
        packTap(panel, tap, position);
        return;
      }
      loop({index(0), d == 0 ? taps : phase[d].taps}, 1, [&](Value t) {
        Value number = d == 0 ? add(firstTap, t) : t;
        Value at = sub(phase[d].filterBase, mul(number, walks[d][0].filterStep));
        overTaps(d + 1, add(mul(tap, d == 0 ? tapsPerBlock : mostTaps[d]), t),
                 add(mul(position, shape.filter[d]), at));
      });
    };
    overTaps(0, index(0), index(0));
  }

  void packTap(const Panel &panel, Value tap, Value position) {
    Value place = add(panel.base, mul(tap, block.channels * panel.pitch));
    Value from = mul(position, shape.channels * shape.features), reduced = mul(channelBlock, block.channels);
    if (forward) {
      Value base = add(add(from, mul(reduced, shape.features)), panel.column);
      copyPanel(panel, operandBuffer(1), base, shape.features, place, index(block.channels));
    } else {
      Value base = add(add(from, mul(panel.column, shape.features)), reduced);
      transposePanel(panel, operandBuffer(1), base, shape.features, place, block.channels);
    }
  }

  void overTiles(ArrayRef<PhaseRange> ranges, ArrayRef<PhaseValues> phase, Value firstTap, Value taps,
                 llvm::function_ref<void(const Tile &)> body) {
    Value begin = mul(blockIndex, block.blockPoints);
    Value end = minimum(add(begin, block.blockPoints), index(ranges[0].count));
    int64_t images = pairsFor(ranges.back().count);
    if (rank == 1) {
      loop(0, block.images, 1, [&](Value image) {
        auto sizes = heights(ranges[0].count);
        int64_t size = sizes[0].first, whole = ranges[0].count / size * size;
        loop({begin, minimum(end, index(whole))}, size, [&](Value q) { body({q, image, 1, size}); });
        if (whole < ranges[0].count)
          guarded(arith::CmpIPredicate::ugt, end, index(whole),
                  [&] { body({index(whole), image, 1, ranges[0].count - whole}); });
      });
      return;
    }
    if (isBlocked()) {
      // Without the rows of padding.
      const Walk &walk = walks[0][0];
      Value lowest = add(phase[0].base, mul(firstTap, walk.tapStep));
      Value highest = add(lowest, mul(sub(taps, index(1)), walk.tapStep));
      begin = maximum(begin, ceilDivPositive(sub(index(0), highest), walk.sourceStride));
      end = minimum(end, ceilDivPositive(sub(index(block.image[0]), lowest), walk.sourceStride));
    }
    loop(0, block.images, images, [&](Value image) {
      loop({begin, end}, 1, [&](Value q) {
        overGrid(ranges, {q}, [&](ArrayRef<Value> grid) {
          int64_t from = 0;
          for (auto [size, count] : heights(ranges.back().count)) {
            loop(from, from + size * count, size, [&](Value last) {
              SmallVector<Value> at(grid);
              at.push_back(last);
              body({at, image, images, size});
            });
            from += size * count;
          }
        });
      });
    });
  }

  void overGrid(ArrayRef<PhaseRange> ranges, SmallVector<Value> grid,
                llvm::function_ref<void(ArrayRef<Value>)> body) {
    int64_t d = grid.size();
    if (d == rank - 1)
      return body(grid);
    loop(0, ranges[d].count, 1, [&](Value q) {
      auto inner = grid;
      inner.push_back(q);
      overGrid(ranges, inner, body);
    });
  }

  void emitTile(ArrayRef<PhaseValues> phase, const Tile &tile, Value firstTap, Value taps,
                const Panel &panel) {
    auto [grid, image, images, rows] = tile;
    int64_t count = images * rows;
    IndexBuilder at(*this, getLoc());
    Value panelStart = panel.base;
    if (skipsPadding) {
      // The taps on rows of the image.
      Value top = add(mul(grid[0], walks[0][0].sourceStride), phase[0].base);
      int64_t step = walks[0][0].tapStep;
      firstTap = ceilDivPositive(sub(index(0), top), step);
      taps = sub(minimum(taps, ceilDivPositive(sub(index(block.image[0]), top), step)), firstTap);
      if (packsPanels())
        panelStart = add(panelStart, mul(firstTap, tapsInside() * block.channels * panel.pitch));
    }
    // The source at the first tap, and how it moves.
    SmallVector<Value> position;
    for (int64_t d = 0; d < rank; ++d)
      position.push_back(add(mul(grid[d], walks[d][0].sourceStride), phase[d].base));
    position[0] = add(position[0], mul(firstTap, walks[0][0].tapStep));
    Offset sourceBase(imagePlace(block, firstImage, image, blockIndex, channelBlock, position));
    Value source = block.copied ? blockBuffer : operandBuffer(0);
    SmallVector<int64_t> steps = block.steps();
    int64_t rowStep = steps.back() * walks.back()[0].sourceStride;

    // Loops over taps, then channels; the last taps and the channels are one run where they are contiguous.
    SmallVector<ReductionLoop> loops;
    SmallVector<int64_t> sourceSteps, panelSteps;
    int64_t panelChannels = packsPanels() ? block.channels : shape.channels;
    auto lastTaps = constantOf(rank == 1 ? taps : phase.back().taps);
    bool merged = lastTaps && walks.back()[0].tapStep == 1 && steps.back() == block.channels &&
                  panelChannels == block.channels;
    int64_t panelStep = panelChannels * panel.pitch;
    for (int64_t d = rank; d-- > 0;) {
      if (!merged || d != rank - 1) {
        loops.insert(loops.begin(), {offsetOf(d == 0 ? taps : phase[d].taps), 1});
        sourceSteps.insert(sourceSteps.begin(), steps[d] * walks[d][0].tapStep);
        panelSteps.insert(panelSteps.begin(), panelStep);
      }
      panelStep *= mostTaps[d];
    }
    int64_t run = block.channels * (merged ? *lastTaps : 1);
    loops.push_back({run, unrollOf(count * panel.vectors, run)});
    sourceSteps.push_back(1);
    panelSteps.push_back(panel.pitch);

    Offset panelBase = offsetOf(panelStart);
    if (!packsPanels()) {
      // The filter itself, from the block's first tap and channel on.
      Value tap = mul(firstTap, tapsInside());
      panelBase = Offset(mul(add(mul(tap, shape.channels), mul(channelBlock, block.channels)), panel.pitch));
    }
    auto move = [&](Offset from, ReductionIndex k, ArrayRef<int64_t> by) {
      for (auto [number, step] : llvm::zip_equal(k, by))
        from = at.add(from, at.mul(number, step));
      return from;
    };
    auto loadA = [&](int64_t row, ReductionIndex k) -> Value {
      int64_t offset = row / tile.rows * imageStep(block) + row % tile.rows * rowStep;
      Offset place = at.add(move(sourceBase, k, sourceSteps), offset);
      return loadScalar(source, at.value(place));
    };
    auto loadB = [&](int64_t v, ReductionIndex k) -> Value {
      Offset place = at.add(move(panelBase, k, panelSteps), v * lanes);
      return load(panel.buffer, at.value(place), lanes);
    };

    Value sumsAt = isBlocked() ? partialPlace(phase, grid, image, panel.column) : Value();
    auto sumPlace = [&](int64_t row, int64_t v) {
      int64_t pitch = partialPitch(), ofImage = block.blockPoints * resultsOfPoint() * pitch;
      return add(sumsAt,
                 row / tile.rows * ofImage + row % tile.rows * walks.back()[0].outStep * pitch + v * lanes);
    };
    SmallVector<Value> sums;
    for (int64_t i = 0; i < count * panel.vectors; ++i)
      sums.push_back(isBlocked() ? load(partial, sumPlace(i / panel.vectors, i % panel.vectors), lanes)
                                 : splat(element, 0, lanes));
    sums = emitMicrokernel(*this, getLoc(), {count, panel.vectors, lanes}, loops, sums, {loadA, loadB}, fma);
    if (isBlocked()) {
      for (auto [i, sum] : llvm::enumerate(sums))
        store(sum, partial, sumPlace(i / panel.vectors, i % panel.vectors));
      return;
    }
    finishTile(phase, tile, panel, sums);
  }

  /// The waiting sums of the first result of a tile.
  Value partialPlace(ArrayRef<PhaseValues> phase, ArrayRef<Value> grid, Value image, Value column) {
    Value at = mul(image, block.blockPoints * walks[0][0].outStep);
    for (int64_t d = 0; d < rank; ++d) {
      Value q = d == 0 ? sub(grid[0], mul(blockIndex, block.blockPoints)) : grid[d];
      Value place = add(mul(q, walks[d][0].outStep), phase[d].outBase);
      at = d == 0 ? add(at, place) : add(mul(at, result[d]), place);
    }
    return add(mul(at, partialPitch()), sub(column, own.begin));
  }

  void finishTile(ArrayRef<PhaseValues> phase, const Tile &tile, const Panel &panel, ArrayRef<Value> sums) {
    int64_t rows = tile.rows;
    auto finish = [&](Value row, int64_t ofImage, int64_t v, Value sum) {
      SmallVector<Value> position{add(add(firstImage, tile.image), ofImage)};
      for (int64_t d = 0; d < rank; ++d) {
        Value q = d == rank - 1 ? add(tile.grid[d], row) : tile.grid[d];
        position.push_back(add(mul(q, walks[d][0].outStep), phase[d].outBase));
      }
      position.push_back(add(panel.column, v * lanes));
      storeResult(position, sum, v + 1 == panel.vectors ? panel.tail : lanes);
    };
    int64_t width = panel.vectors;
    if (!tileSums || rows == 1) {
      for (auto [i, sum] : llvm::enumerate(sums)) {
        int64_t row = i / width;
        finish(index(row % rows), row / rows, i % width, sum);
      }
      return;
    }
    for (auto [i, sum] : llvm::enumerate(sums))
      store(sum, tileSums, index(i * lanes));
    for (int64_t ofImage = 0; ofImage < tile.images; ++ofImage)
      loop(0, rows, 1, [&](Value row) {
        for (int64_t v = 0; v < width; ++v)
          finish(row, ofImage, v,
                 load(tileSums, mul(add(mul(add(row, ofImage * rows), width), v), lanes), lanes));
      });
  }

  /// The epilogue of all results of a group whose sums are complete.
  void finishGroup() {
    Value begin = mul(blockIndex, block.blockPoints * walks[0][0].outStep);
    Value end = minimum(add(begin, block.blockPoints * walks[0][0].outStep), index(result[0]));
    std::function<void(SmallVector<Value>, Value)> over = [&](SmallVector<Value> position, Value at) {
      int64_t d = position.size() - 1;
      if (d == rank)
        return finishPoint(position, mul(at, partialPitch()));
      IndexRange range = d == 0 ? IndexRange{begin, end} : IndexRange{index(0), index(result[d])};
      loop(range, 1, [&](Value i) {
        auto inner = position;
        inner.push_back(i);
        int64_t size = d == 0 ? block.blockPoints * walks[0][0].outStep : result[d];
        over(inner, add(mul(at, size), d == 0 ? sub(i, begin) : i));
      });
    };
    loop(0, block.images, 1, [&](Value image) { over({add(firstImage, image)}, image); });
  }

  void finishPoint(SmallVector<Value> position, Value at) {
    overColumns(own, resultColumns, 1, [&](Value column, int64_t, int64_t live) {
      auto place = position;
      place.push_back(column);
      storeResult(place, load(partial, add(at, sub(column, own.begin)), lanes), live);
    });
  }

  const ConvSides sides;
  bool forward;
  int64_t rank;
  ArrayRef<int64_t> result;
  int64_t resultColumns;
  ArrayRef<SmallVector<Walk>> walks;
  SmallVector<int64_t, 3> mostTaps; // of all phases
  ImageBlock block;
  bool skipsPadding = false;
  int64_t tapsPerBlock = 1, tapBlocks = 1; // of the first dimension
  int64_t groups = 1, groupsPerChunk = 1, chunkColumns = 0, columnChunks = 1;
  int64_t vectors = 0, mostRows = 1;         // of a tile
  int64_t highest = kMostRows, tileRows = 1; // of one image: a limit, and what comes of it
  IndexRange own;                            // columns of the chunk
  Value firstImage, blockIndex, channelBlock;
  Value panelBuffer, partial, tileSums;
};

} // namespace

FailureOr<KernelInfo> emitDenseConv(ModuleOp module, const ConvSpec &spec, const Target &target) {
  return DenseWalker(module, spec, target).emit(module);
}

} // namespace ortc::cpu
