// Grouped convolution and its input gradient.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both are one walk: rows of a register tile are neighbouring results along the last spatial
// dimension, columns are features, the reduction runs over taps and channels. The input gradient is a walk
// per phase of the stride, over the gradient, with the filter transposed and turned around in the workspace,
// once per chunk. A depthwise convolution has no channels to sum over: a row's operand is a vector of
// channels instead of a broadcast.
#include "compiler/backends/cpu/conv/ConvAlgorithms.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

namespace {

/// Rows of the largest register tile.
constexpr int64_t kMostTileRows = 6;

/// One walk and the filter that it uses.
struct Phase {
  SmallVector<Walk, 3> walks;
  int64_t packedOffset = 0; // of its filter in the packed ones
  bool isEmpty() const {
    return llvm::any_of(walks, [](const Walk &walk) { return walk.isEmpty(); });
  }
};

class ConvWalker : public ConvEmitter {
public:
  ConvWalker(ModuleOp module, const ConvSpec &spec, const Target &target)
      : ConvEmitter(module, spec, target), sides(sidesOf(shape, isa<nn::ConvOp>(spec.op))) {
    int64_t packed = 0;
    for (const SmallVector<Walk, 3> &walks : phaseProduct(sides.walks)) {
      Phase phase{walks, packed};
      int64_t taps = 1;
      for (const Walk &walk : walks)
        taps *= walk.taps;
      packed += taps * shape.groupFeatures() * shape.channels;
      if (llvm::all_of(walks, [](const Walk &walk) { return walk.count > 0; }))
        phases.push_back(phase);
    }
  }

  KernelInfo emit(ModuleOp module) {
    SmallVector<SmallVector<Walk, 3>> walks;
    for (const Phase &phase : phases)
      walks.push_back(phase.walks);
    block = planSource(walks, sides.source, sides.sourceChannels, elementBytes);
    int64_t units = shape.batch * block.blocks, flopsPerUnit = std::max<int64_t>(1, shape.flops() / units);
    int64_t unitsPerChunk =
        std::clamp<int64_t>((target.machine.parallel.convFlops + flopsPerUnit - 1) / flopsPerUnit, 1, units);
    info.chunks = (units + unitsPerChunk - 1) / unitsPerChunk;

    int64_t blockBytes = block.copied ? (block.elements() * elementBytes + 63) / 64 * 64 : 0;
    int64_t packedElements =
        sides.forward ? 0 : nn::elementCount(shape.filter) * shape.groupFeatures() * shape.channels;
    int64_t packedBytes = (packedElements * elementBytes + 63) / 64 * 64;
    int64_t tileElements = spec.rollEpilogue ? kMostTileRows * columns : 0;
    begin(module, blockBytes + packedBytes + tileElements * elementBytes);
    if (tileElements)
      tileSums = kernel.workspaceView(*this, getLoc(), blockBytes + packedBytes, element, tileElements);
    if (block.copied)
      blockBuffer = kernel.workspaceView(*this, getLoc(), 0, element, block.elements());
    weights = operandBuffer(1);
    if (!sides.forward) {
      weights = kernel.workspaceView(*this, getLoc(), blockBytes, element, packedElements);
      packFilter();
    }
    clearBlock(block);
    Value first = mul(kernel.chunk, unitsPerChunk);
    loop({first, minimum(add(first, unitsPerChunk), index(units))}, 1, [&](Value unit) {
      image = div(unit, block.blocks);
      blockIndex = rem(unit, block.blocks);
      fillBlock(block, operandBuffer(0), image, blockIndex);
      for (const Phase &phase : phases)
        emitPhase(phase);
    });
    return info;
  }

private:
  /// packed[phase][taps...][feature of the group][channel] = filter[position of the tap][channel of the
  /// group][feature].
  void packFilter() {
    for (const Phase &phase : phases) {
      if (phase.isEmpty())
        continue;
      std::function<void(int64_t, Value, Value)> overTaps = [&](int64_t d, Value tap, Value position) {
        if (d == shape.rank()) {
          packTap(phase, tap, position);
          return;
        }
        const Walk &walk = phase.walks[d];
        loop(0, walk.taps, 1, [&](Value t) {
          Value at = sub(index(walk.filterBase), mul(t, walk.filterStep));
          overTaps(d + 1, add(mul(tap, walk.taps), t), add(mul(position, shape.filter[d]), at));
        });
      };
      overTaps(0, index(0), index(0));
    }
  }

  void packTap(const Phase &phase, Value tap, Value position) {
    int64_t channels = shape.groupChannels(), features = shape.groupFeatures();
    Value to = add(mul(tap, features * shape.channels), phase.packedOffset),
          from = mul(position, channels * shape.features);
    if (shape.isDepthwise())
      return copyRun(operandBuffer(1), from, weights, to, shape.channels);
    loop(0, shape.groups, 1, [&](Value g) {
      halves(channels, lanes, [&](Value c, int64_t channelCount) {
        halves(features, lanes, [&](Value k, int64_t featureCount) {
          int64_t side = std::min(channelCount, featureCount);
          loop(0, channelCount, side, [&](Value cc) {
            loop(0, featureCount, side, [&](Value kk) {
              Value channel = add(c, cc), feature = add(k, kk);
              Value first = add(add(from, mul(channel, shape.features)), add(mul(g, features), feature));
              Value place = add(add(to, mul(feature, shape.channels)), add(mul(g, channels), channel));
              transposeSquare(first, place, side);
            });
          });
        });
      });
    });
  }

  /// [0, count) in pieces of `step`, a power of two, then of half of it, and so on: body(begin, size).
  void halves(int64_t count, int64_t step, llvm::function_ref<void(Value, int64_t)> body) {
    for (int64_t from = 0; from < count; step /= 2) {
      int64_t end = from + (count - from) / step * step;
      loop(from, end, step, [&](Value i) { body(i, step); });
      from = end;
    }
  }

  /// `side` rows of the filter, from element `from` on, as columns of the packed filter.
  void transposeSquare(Value from, Value to, int64_t side) {
    if (side == 1) {
      memref::StoreOp::create(*this, loadScalar(operandBuffer(1), from), weights, ValueRange{to});
      return;
    }
    SmallVector<Value> rows;
    for (int64_t i = 0; i < side; ++i)
      rows.push_back(load(operandBuffer(1), add(from, i * shape.features), side));
    for (auto [i, row] : llvm::enumerate(emitTranspose(*this, getLoc(), rows)))
      store(row, weights, add(to, static_cast<int64_t>(i) * shape.channels));
  }

  void emitPhase(const Phase &phase) {
    Value begin = mul(blockIndex, block.blockPoints);
    Value end = minimum(add(begin, block.blockPoints), index(phase.walks[0].count));
    if (shape.rank() == 1) {
      // The only dimension is both the blocked and the tiled one: its blocks may end anywhere.
      emitRow(phase, {}, IndexRange{begin, end});
      return;
    }
    loop({begin, end}, 1, [&](Value q) { overGrid(phase, {q}); });
  }

  void overGrid(const Phase &phase, SmallVector<Value> grid) {
    int64_t d = grid.size();
    if (d == shape.rank() - 1) {
      emitRow(phase, grid, std::nullopt);
      return;
    }
    loop(0, phase.walks[d].count, 1, [&](Value q) {
      auto inner = grid;
      inner.push_back(q);
      overGrid(phase, inner);
    });
  }

  /// All results of one row along the last dimension, or those in `range`.
  void emitRow(const Phase &phase, ArrayRef<Value> grid, std::optional<IndexRange> range) {
    auto overColumns = [&](Value group, int64_t count) {
      tiles(count, columns,
            [&](Value column, int64_t width) { emitTiles(phase, grid, range, group, column, width); });
    };
    if (shape.isDepthwise())
      overColumns(index(0), sides.resultChannels);
    else
      loop(0, shape.groups, 1, [&](Value group) { overColumns(group, sides.groupResult); });
  }

  void emitTiles(const Phase &phase, ArrayRef<Value> grid, std::optional<IndexRange> range, Value group,
                 Value column, int64_t width) {
    int64_t vectors = (width + lanes - 1) / lanes,
            most = std::max<int64_t>(
                1, std::min<int64_t>(kMostTileRows, target.machine.tiles.accumulators / vectors));
    if (range) {
      // Whole tiles, then single rows.
      Value whole = add(range->begin, mul(div(sub(range->end, range->begin), most), most));
      loop({range->begin, whole}, most,
           [&](Value q) { emitTile(phase, grid, q, most, group, column, width); });
      if (most > 1)
        loop({whole, range->end}, 1, [&](Value q) { emitTile(phase, grid, q, 1, group, column, width); });
      return;
    }
    int64_t from = 0;
    for (auto [size, count] : evenTiles(phase.walks.back().count, most)) {
      loop(from, from + size * count, size,
           [&](Value q) { emitTile(phase, grid, q, size, group, column, width); });
      from += size * count;
    }
  }

  /// `rows` results from grid position `last` on, `width` features from `column` of `group` on.
  void emitTile(const Phase &phase, ArrayRef<Value> outer, Value last, int64_t rows, Value group,
                Value column, int64_t width) {
    SmallVector<Value> grid(outer);
    grid.push_back(last);
    SmallVector<int64_t> widths;
    for (int64_t at = 0; at < width; at += lanes)
      widths.push_back(std::min(lanes, width - at));
    SmallVector<Value> sums;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t w : widths)
        sums.push_back(splat(element, 0, w));
    // among all groups
    Value firstColumn = add(mul(group, shape.isDepthwise() ? 0 : sides.groupResult), column);
    if (!phase.isEmpty())
      sums = reduce(phase, grid, rows, group, firstColumn, widths, sums);
    storeTile(phase, grid, rows, firstColumn, widths, sums);
  }

  SmallVector<Value> reduce(const Phase &phase, ArrayRef<Value> grid, int64_t rows, Value group,
                            Value firstColumn, ArrayRef<int64_t> widths, SmallVector<Value> sums) {
    int64_t rank = shape.rank(), reduced = sides.groupSource;
    bool depthwise = shape.isDepthwise();
    const Walk &lastWalk = phase.walks.back();
    SmallVector<ReductionLoop> loops;
    for (int64_t d = 0; d < rank - 1; ++d)
      loops.push_back({Offset(phase.walks[d].taps), 1});
    auto unroll = [](int64_t count) { return std::min<int64_t>(count, 4); };
    if (depthwise) {
      loops.push_back({Offset(lastWalk.taps), unroll(lastWalk.taps)});
    } else {
      loops.push_back({Offset(lastWalk.taps), 1});
      loops.push_back({Offset(reduced), unroll(reduced)});
    }

    // Where tap 0 of row 0 reads.
    SmallVector<Value> position;
    for (int64_t d = 0; d < rank; ++d) {
      Value at = add(mul(grid[d], phase.walks[d].sourceStride),
                     phase.walks[d].base + (block.copied ? block.origin[d] : 0));
      if (d == 0 && block.copied)
        at = sub(at, mul(blockIndex, block.blockPoints * block.rowStep));
      position.push_back(at);
    }
    Value sourceBase = sourceOffset(block, image, position);
    sourceBase = add(sourceBase, depthwise ? firstColumn : mul(group, reduced));
    SmallVector<int64_t> tapStrides(rank); // in source elements
    int64_t stride = sides.sourceChannels;
    for (int64_t d = rank - 1; d >= 0; --d) {
      tapStrides[d] = stride * phase.walks[d].tapStep;
      stride *= block.sizes[d];
    }
    int64_t rowStride = lastWalk.sourceStride * sides.sourceChannels;
    Value sourceBuffer = block.copied ? blockBuffer : operandBuffer(0);

    /// Elements of the source from tap 0 to the tap and channel of `k`.
    auto sourceStep = [&](ReductionIndex k) {
      Value at = sourceBase;
      for (int64_t d = 0; d < rank - 1; ++d)
        at = add(at, mul(offsetValue(k[d]), tapStrides[d]));
      at = add(at, mul(offsetValue(k[rank - 1]), tapStrides[rank - 1]));
      return depthwise ? at : add(at, offsetValue(k[rank]));
    };
    /// Row of the filter matrix [taps, channels] that `k` uses.
    auto filterRow = [&](ReductionIndex k) {
      Value at = index(0);
      for (int64_t d = 0; d < rank - 1; ++d)
        at = add(mul(at, phase.walks[d].taps), offsetValue(k[d]));
      at = add(mul(at, lastWalk.taps), offsetValue(k[rank - 1]));
      return depthwise ? at : add(mul(at, reduced), offsetValue(k[rank]));
    };
    Value filterBase = add(firstColumn, phase.packedOffset);

    // Vectors of one tile differ in width only in the last column: one microkernel each width.
    SmallVector<Value> result(sums.size());
    int64_t vectors = widths.size();
    auto run = [&](int64_t firstVector, int64_t count, int64_t width) {
      SmallVector<Value> init;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t v = 0; v < count; ++v)
          init.push_back(sums[r * vectors + firstVector + v]);
      auto loadA = [&](int64_t row, ReductionIndex k) -> Value {
        Value at = add(sourceStep(k), row * rowStride);
        return depthwise ? Value() : loadScalar(sourceBuffer, at);
      };
      auto loadB = [&](int64_t v, ReductionIndex k) {
        Value at = add(mul(filterRow(k), sides.resultChannels), filterBase);
        return load(weights, add(at, (firstVector + v) * lanes), width);
      };
      SmallVector<Value> out;
      if (depthwise) {
        out = depthwiseReduce(
            loops, rows, count, init,
            [&](int64_t row, int64_t v, ReductionIndex k) {
              return load(sourceBuffer, add(sourceStep(k), row * rowStride + (firstVector + v) * lanes),
                          width);
            },
            loadB);
      } else {
        out = emitMicrokernel(*this, getLoc(), {rows, count, width}, loops, init, {loadA, loadB}, fma);
      }
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t v = 0; v < count; ++v)
          result[r * vectors + firstVector + v] = out[r * count + v];
    };
    int64_t whole = llvm::count(widths, lanes);
    if (whole)
      run(0, whole, lanes);
    if (whole < vectors)
      run(whole, 1, widths.back());
    return result;
  }

  /// As emitMicrokernel, with a vector of channels for each row and column instead of a broadcast.
  SmallVector<Value> depthwiseReduce(ArrayRef<ReductionLoop> loops, int64_t rows, int64_t vectors,
                                     SmallVector<Value> sums,
                                     llvm::function_ref<Value(int64_t, int64_t, ReductionIndex)> loadA,
                                     llvm::function_ref<Value(int64_t, ReductionIndex)> loadB) {
    SmallVector<Value> result(sums.size());
    for (int64_t v = 0; v < vectors; ++v) {
      SmallVector<Value> init;
      for (int64_t r = 0; r < rows; ++r)
        init.push_back(sums[r * vectors + v]);
      auto rowOperand = [&](int64_t row, ReductionIndex k) { return loadA(row, v, k); };
      auto column = [&](int64_t, ReductionIndex k) { return loadB(v, k); };
      int64_t width = cast<VectorType>(init[0].getType()).getDimSize(0);
      auto out = emitMicrokernel(*this, getLoc(), {rows, 1, width}, loops, init, {rowOperand, column}, fma);
      for (int64_t r = 0; r < rows; ++r)
        result[r * vectors + v] = out[r];
    }
    return result;
  }

  /// `row` results behind the first of a tile, `vector` vectors behind its first column.
  void storeVector(const Phase &phase, ArrayRef<Value> grid, Value row, Value firstColumn, int64_t vector,
                   Value sums) {
    SmallVector<Value> position{image};
    for (int64_t d = 0, rank = shape.rank(); d < rank; ++d) {
      Value q = d == rank - 1 ? add(grid[d], row) : grid[d];
      position.push_back(add(mul(q, phase.walks[d].outStep), phase.walks[d].outBase));
    }
    position.push_back(add(firstColumn, vector * lanes));
    storeResult(position, sums);
  }

  void storeTile(const Phase &phase, ArrayRef<Value> grid, int64_t rows, Value firstColumn,
                 ArrayRef<int64_t> widths, ArrayRef<Value> sums) {
    int64_t vectors = widths.size();
    if (!spec.rollEpilogue || rows == 1) {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t v = 0; v < vectors; ++v)
          storeVector(phase, grid, index(r), firstColumn, v, sums[r * vectors + v]);
      return;
    }
    for (int64_t i = 0; i < rows * vectors; ++i)
      store(sums[i], tileSums, index(i * lanes));
    loop(0, rows, 1, [&](Value r) {
      for (int64_t v = 0; v < vectors; ++v)
        storeVector(phase, grid, r, firstColumn, v,
                    load(tileSums, add(mul(r, vectors * lanes), v * lanes), widths[v]));
    });
  }

  ConvSides sides;
  SmallVector<Phase> phases;
  SourceBlock block;
  Value weights, image, blockIndex;
  Value tileSums; // of a rolled epilogue
};

} // namespace

KernelInfo emitGroupedConv(ModuleOp module, const ConvSpec &spec, const Target &target) {
  return ConvWalker(module, spec, target).emit(module);
}

} // namespace ortc::cpu
