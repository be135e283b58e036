// Narrow groups: convolution and its input gradient.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lines of results one after another, tiles of a line one after another, in each all channels: sources and results
// are streams. A tile loads each source position of a line once for all the taps that use it.
#include "compiler/backends/cpu/contraction/Microkernel.h"
#include "compiler/backends/cpu/conv/ConvAlgorithms.h"
#include "compiler/backends/cpu/conv/narrow/NarrowGroups.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"

#include <map>

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

namespace {

/// The taps of an outer dimension that hit the image from one result.
struct Window {
  Value first, begin, end; // source position of tap 0; range of taps
  Value filterBase;
  int64_t tapStep, filterStep;
};

class NarrowWalker : public ConvEmitter {
public:
  NarrowWalker(ModuleOp module, const ConvSpec &spec, const Target &target)
      : ConvEmitter(module, spec, target), sides(sidesOf(shape, isa<nn::ConvOp>(spec.op))),
        rank(shape.rank()), source(sides.source), result(sides.result), summed(sides.groupSource),
        results(sides.groupResult) {}

  KernelInfo emit(ModuleOp module) {
    int64_t lines = shape.batch * nn::elementCount(ArrayRef(result).drop_back());
    // A byte takes about as long as eight operations.
    int64_t bytes =
        nn::elementCount(source) * sides.sourceChannels + nn::elementCount(result) * sides.resultChannels;
    int64_t work = std::max(shape.flops(), 8 * bytes * shape.batch * elementBytes);
    int64_t perChunk = std::clamp<int64_t>(
        2 * target.machine.parallel.convFlops / std::max<int64_t>(1, work / lines), 1, lines);
    info.chunks = (lines + perChunk - 1) / perChunk;

    // Pieces that lie as far apart as all channels are long are no stream that a processor sees.
    fetches = bytesRead + bytesWritten > target.machine.l2Bytes;
    bool packs = !sides.forward && summed * results > 1;
    int64_t packed = packs ? nn::elementCount(shape.filter) * summed * sides.resultChannels : 0;
    int64_t packedBytes = (packed * elementBytes + 63) / 64 * 64;
    int64_t tileElements = spec.rollEpilogue ? mostResults() * lanes : 0;
    begin(module, packedBytes + tileElements * elementBytes);
    weights = operandBuffer(1);
    if (packs) {
      weights = kernel.workspaceView(*this, getLoc(), 0, element, packed);
      packFilter();
    }
    if (tileElements)
      tileSums = kernel.workspaceView(*this, getLoc(), packedBytes, element, tileElements);
    Value first = mul(kernel.chunk, perChunk);
    loop({first, minimum(add(first, perChunk), index(lines))}, 1, [&](Value line) { emitLine(line); });
    return info;
  }

private:
  /// Results of a tile: eight sums in flight hide the latency of two fma a cycle.
  int64_t mostResults() const { return std::max<int64_t>(8, sides.walks.back().size()); }

  /// packed[tap][feature of the group][channel] = filter[tap][channel of the group][feature].
  void packFilter() {
    int64_t channels = shape.groupChannels(), features = shape.groupFeatures();
    loop(0, nn::elementCount(shape.filter), 1, [&](Value tap) {
      Value from = mul(tap, channels * shape.features), to = mul(tap, features * shape.channels);
      if (channels == features && lanes % channels == 0 && shape.channels % lanes == 0) {
        loop(0, shape.channels, lanes, [&](Value c) {
          SmallVector<Value> rows;
          for (int64_t i = 0; i < channels; ++i)
            rows.push_back(load(operandBuffer(1), add(add(from, i * shape.features), c), lanes));
          for (auto [i, row] : llvm::enumerate(emitTranspose(*this, getLoc(), rows)))
            store(row, weights, add(add(to, static_cast<int64_t>(i) * shape.channels), c));
        });
        return;
      }
      loop(0, shape.groups, 1, [&](Value group) {
        Value here = add(from, mul(group, features)), there = add(to, mul(group, channels));
        for (int64_t c = 0; c < channels; ++c)
          for (int64_t k = 0; k < features; ++k)
            memref::StoreOp::create(*this, loadScalar(operandBuffer(1), add(here, c * shape.features + k)),
                                    weights, ValueRange{add(there, k * shape.channels + c)});
      });
    });
  }

  void emitLine(Value line) {
    position.assign(rank - 1, Value());
    Value rest = line;
    for (int64_t d = rank - 2; d >= 0; --d) {
      position[d] = rem(rest, result[d]);
      rest = div(rest, result[d]);
    }
    image = rest;
    windows.clear();
    for (int64_t d = 0; d < rank - 1; ++d)
      windows.push_back(windowAt(d, position[d]));
    int64_t period = sides.walks.back().size();
    for (const LineTiles &run :
         tileLine(sides.walks.back(), result.back(), source.back(), period, mostResults()))
      loop(0, run.count, 1, [&](Value i) {
        overVectors([&](Value channel, int64_t width) { emitTile(run, i, channel, width); });
      });
  }

  Window windowAt(int64_t d, Value at) {
    ArrayRef<Walk> phases = sides.walks[d];
    int64_t stride = phases.size();
    Value phase = rem(at, stride), q = div(at, stride);
    auto choose = [&](auto field) {
      Value chosen = index(field(phases[0]));
      if (llvm::all_of(phases, [&](const Walk &walk) { return field(walk) == field(phases[0]); }))
        return chosen;
      for (int64_t i = 1; i < stride; ++i) {
        Value here = arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, phase, index(i));
        chosen = arith::SelectOp::create(*this, here, index(field(phases[i])), chosen);
      }
      return chosen;
    };
    int64_t step = phases[0].tapStep;
    Window window;
    window.tapStep = step;
    window.filterStep = phases[0].filterStep;
    window.filterBase = choose([](const Walk &walk) { return walk.filterBase; });
    window.first = add(mul(q, phases[0].sourceStride), choose([](const Walk &walk) { return walk.base; }));
    window.begin = ceilDivPositive(sub(index(0), window.first), step);
    window.end = minimum(choose([](const Walk &walk) { return walk.taps; }),
                         ceilDivPositive(sub(index(source[d]), window.first), step));
    return window;
  }

  /// The channels of a result, one vector after another. A last one that is not full begins earlier, and computes some
  /// results twice, where the result shares memory with nothing.
  void overVectors(llvm::function_ref<void(Value, int64_t)> body) {
    int64_t rest = sides.resultChannels % lanes;
    bool overlaps = llvm::all_of(spec.buffers, [](const KernelBuffer &buffer) { return buffer.distinct; });
    if (rest == 0 || sides.resultChannels < lanes || !overlaps)
      return tiles(sides.resultChannels, lanes, body);
    loop(0, sides.resultChannels, lanes,
         [&](Value channel) { body(minimum(channel, index(sides.resultChannels - lanes)), lanes); });
  }

  void emitTile(const LineTiles &run, Value i, Value channel, int64_t width) {
    LaneMap map(width, results, summed);
    Value sourceChannel = map.sourceChannel(*this, channel);
    SmallVector<Value> sums(run.tile.size, splat(element, 0, width));
    sums = overTaps(0, image, index(0), sums, [&](Value sourceLine, Value filterLine, ValueRange init) {
      Value from = add(mul(sourceLine, source.back()), mul(i, run.sourceStep));
      from = add(mul(from, sides.sourceChannels), sourceChannel);
      Value filter = add(mul(filterLine, shape.filter.back() * summed * sides.resultChannels), channel);
      return addLine(run.tile, from, filter, map, init);
    });
    Value first = add(mul(i, run.tile.size), run.tile.first);
    if (fetches)
      fetchAhead(run.tile, i, run.sourceStep, sourceChannel, first, channel);
    storeTile(first, channel, sums);
  }

  /// Fetches what a later tile reads of the last source lines, the others being in a cache, and where its results will
  /// be. Lines follow each other, so the end of one leads on to the next.
  void fetchAhead(const LineTile &tile, Value i, int64_t sourceStep, Value sourceChannel, Value first,
                  Value channel) {
    if (tile.uses.empty())
      return;
    Value line = image;
    for (int64_t d = 0; d < rank - 1; ++d) {
      const Window &window = windows[d];
      Value last = add(window.first, mul(sub(window.end, index(1)), window.tapStep));
      line = add(mul(line, source[d]), last);
    }
    Value from = add(mul(line, source.back()), mul(i, sourceStep));
    from = add(mul(from, sides.sourceChannels), sourceChannel);
    ArrayRef<Walk> phases = sides.walks.back();
    int64_t tileBytes = tile.size * sides.resultChannels * elementBytes;
    int64_t tilesBetween = (kFetchDistance + tileBytes - 1) / tileBytes - 1;
    int64_t read = tile.size / static_cast<int64_t>(phases.size()) * phases[0].sourceStride;
    int64_t next = tile.uses.back().position + 1 + tilesBetween * read;
    for (int64_t line : rank > 1 ? newLines(sides.walks[rank - 2][0]) : SmallVector<int64_t>{0})
      for (int64_t at = 0; at < read; ++at)
        fetch(operandBuffer(0), add(from, (next + at - line * source.back()) * sides.sourceChannels),
              /*writes=*/false);
    SmallVector<Value> at{image};
    llvm::append_range(at, position);
    at.push_back(first);
    at.push_back(channel);
    for (int64_t r = 0; r < tile.size; ++r) {
      at[rank] = add(first, (tilesBetween + 1) * tile.size + r);
      fetchResult(at);
    }
  }

  using LineBody = llvm::function_ref<SmallVector<Value>(Value, Value, ValueRange)>;
  SmallVector<Value> overTaps(int64_t d, Value sourceLine, Value filterLine, ValueRange sums, LineBody body) {
    if (d == rank - 1)
      return body(sourceLine, filterLine, sums);
    const Window &window = windows[d];
    return fold({window.begin, window.end}, 1, sums, [&](Value t, ValueRange carried) {
      Value from = add(window.first, mul(t, window.tapStep));
      Value tap = window.filterStep == -1 ? add(window.filterBase, t)
                                          : sub(window.filterBase, mul(t, window.filterStep));
      return overTaps(d + 1, add(mul(sourceLine, source[d]), from),
                      add(mul(filterLine, shape.filter[d]), tap), carried, body);
    });
  }

  /// Adds what one source line, from element `from` on, contributes to the sums of a tile.
  SmallVector<Value> addLine(const LineTile &tile, Value from, Value filter, const LaneMap &map,
                             ValueRange init) {
    SmallVector<Value> sums(init);
    for (int64_t first = 0; first < summed; first += kNarrowChannels) {
      int64_t count = std::min(summed, kNarrowChannels);
      std::map<std::pair<int64_t, int64_t>, Value> taps;
      auto tapVector = [&](int64_t tap, int64_t c) {
        Value &value = taps[{tap, c}];
        if (!value)
          value = load(weights, add(filter, (tap * summed + c) * sides.resultChannels), map.width);
        return value;
      };
      for (size_t begin = 0, end; begin < tile.uses.size(); begin = end) {
        int64_t at = tile.uses[begin].position;
        for (end = begin; end < tile.uses.size() && tile.uses[end].position == at;)
          ++end;
        Value channels = load(operandBuffer(0), add(from, at * sides.sourceChannels), map.span);
        for (int64_t c = first; c < first + count; ++c) {
          Value spread = map.spread(*this, channels, c);
          for (const LineTile::Use &use : ArrayRef(tile.uses).slice(begin, end - begin))
            sums[use.result] = multiplyAdd(spread, tapVector(use.tap, c), sums[use.result]);
        }
      }
    }
    return sums;
  }

  void storeTile(Value first, Value channel, ArrayRef<Value> sums) {
    SmallVector<Value> at{image};
    llvm::append_range(at, position);
    at.push_back(first);
    at.push_back(channel);
    if (!spec.rollEpilogue || sums.size() == 1) {
      for (auto [r, value] : llvm::enumerate(sums)) {
        at[rank] = add(first, static_cast<int64_t>(r));
        storeResult(at, value);
      }
      return;
    }
    int64_t width = cast<VectorType>(sums[0].getType()).getDimSize(0);
    for (auto [r, value] : llvm::enumerate(sums))
      store(value, tileSums, index(static_cast<int64_t>(r) * lanes));
    loop(0, static_cast<int64_t>(sums.size()), 1, [&](Value r) {
      at[rank] = add(first, r);
      storeResult(at, load(tileSums, mul(r, lanes), width));
    });
  }

  ConvSides sides;
  int64_t rank;
  SmallVector<int64_t, 3> source, result;
  bool fetches = false;    // memory ahead
  int64_t summed, results; // channels of a group that are summed over, results of a group
  Value weights, tileSums; // the latter of a rolled epilogue
  Value image;             // of the line being emitted, as what follows
  SmallVector<Value> position;
  SmallVector<Window, 2> windows;
};

} // namespace

KernelInfo emitNarrowConv(ModuleOp module, const ConvSpec &spec, const Target &target) {
  return NarrowWalker(module, spec, target).emit(module);
}

} // namespace ortc::cpu
