// Convolution and input gradient with fewer products.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles of all images are numbered in one row and cut in groups that, transformed, fit the second-level
// cache. A group is summed block by block of the channels; a panel of a few vectors of columns of the
// transformed filter stays in the first-level cache while all tiles of a group go over it. Filters that
// several groups of a chunk share are transformed once; others panel by panel where they are needed. The
// input gradient is the convolution of the gradient with the filter transposed and turned around. Phases of a
// strided convolution are inside of a block of the reduction, those of its input gradient are computed one
// after another.
#include "compiler/backends/cpu/conv/ConvAlgorithms.h"
#include "compiler/backends/cpu/conv/winograd/Winograd.h"

#include "dialects/nn/NnDialect.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

/// Channels of a block, and columns of a chunk.
static constexpr int64_t kBlockChannels = 128, kChunkColumns = 128;
/// Elements of a position's tiles and results in a group.
static constexpr int64_t kGroupElements = 16 << 10;
/// Channels of a block with all phases of the stride.
static constexpr int64_t kPhaseChannels = 64;
/// Filters up to this size are transformed once a chunk.
static constexpr int64_t kSharedBytes = 2 << 20;
/// Chunks that there should be at least.
static constexpr int64_t kEnoughChunks = 4;
/// Tiles for which a register tile is chosen; a remainder does not count.
static constexpr int64_t kManyTiles = 168;
/// Tiles that a group may have: all of their positions are in the workspace.
static constexpr int64_t kMostTiles = 1024;

namespace {

class WinogradConv : public WinogradEmitter {
public:
  WinogradConv(ModuleOp module, const ConvSpec &spec, const Target &target)
      : WinogradEmitter(module, spec, target, isa<nn::ConvOp>(spec.op)) {}

  FailureOr<KernelInfo> emit(ModuleOp module) {
    if (failed(choose("winograd ", [&](const KernelChoice *choice) { return plan(choice); })))
      return failure();
    int64_t depth = summedPhases() * channels;
    tiles = {Value(), positions(), group, depth};
    results = {Value(), positions(), group, chunkColumns};
    panels = {Value(), positions(), depth, vectors * lanes};
    int64_t slots = isShared ? resultPhases() * channelBlocks * chunkPanels() : 1;
    int64_t filterBytes = bytesOf(panels.elements()) * slots, tileBytes = bytesOf(tiles.elements()),
            resultBytes = bytesOf(results.elements());
    int64_t squareBytes = bytesOf(sides.forward ? 0 : taps * taps * lanes * lanes);
    int64_t patchBytes = bytesOf(patchElements(channels));
    begin(module, filterBytes + tileBytes + resultBytes + squareBytes + patchBytes);
    panels.buffer = kernel.workspaceView(*this, getLoc(), 0, element, filterBytes / elementBytes);
    placeMatrices(tiles, filterBytes);
    placeMatrices(results, filterBytes + tileBytes);
    int64_t at = filterBytes + tileBytes + resultBytes;
    if (squareBytes)
      square = kernel.workspaceView(*this, getLoc(), at, element, squareBytes / elementBytes);
    patch = kernel.workspaceView(*this, getLoc(), at + squareBytes, element, patchBytes / elementBytes);

    Value columnChunk = rem(kernel.chunk, columnChunks), groupChunk = div(kernel.chunk, columnChunks);
    own.begin = mul(columnChunk, chunkColumns);
    own.end = minimum(add(own.begin, chunkColumns), index(sides.resultChannels));
    if (isShared)
      overResultPhases([&](const WinogradPhase &phase) {
        loop(0, channelBlocks, 1, [&](Value block) {
          overOwnPanels([&](const Panel &panel, Value slot) {
            packPanel(panel, slotOf(phase, block, slot), phase, block);
          });
        });
      });
    Value first = mul(groupChunk, groupsPerChunk);
    loop({first, minimum(add(first, groupsPerChunk), index(groups))}, 1,
         [&](Value number) { emitGroup(number); });
    return info;
  }

private:
  /// The choice: channels of a block, columns of a chunk, tiles of a group, and the register tile. Blocks are summed in
  /// one chain; with several phases in them they decide about its order.
  KernelChoice plan(const KernelChoice *choice) {
    int64_t summed = sides.sourceChannels, columns = sides.resultChannels;
    int64_t wantedColumns = std::max(kChannelUnit, wish(choice, "columns", kChunkColumns));
    columnChunks = (columns + wantedColumns - 1) / wantedColumns;
    chunkColumns = columnChunks == 1 ? columns : ((columns + columnChunks - 1) / columnChunks + 63) / 64 * 64;
    columnChunks = (columns + chunkColumns - 1) / chunkColumns;
    isShared = positions() * phases() * summed * chunkColumns * elementBytes <= kSharedBytes;
    int64_t wantedChannels = wish(choice, "channels", isShared ? kBlockChannels : kBlockChannels / 2);
    if (summedPhases() > 1)
      wantedChannels = kPhaseChannels;
    channels = blockOf(summed, std::max(kChannelUnit, wantedChannels));
    channelBlocks = summed / channels;
    // Fewer groups transform a filter that is not shared less often.
    int64_t wanted = (isShared ? 1 : 2) * kGroupElements / (summedPhases() * channels + chunkColumns);
    TileOptions options{false, false, false, possibleVectors(wish(choice, "vectors", 0), chunkColumns, false),
                        wishRows(choice)};
    TileChoice tile = pickTile(kManyTiles, 1, chunkColumns, options);
    rows = tile.rows, vectors = tile.vectors;
    int64_t all = allTiles();
    groups = (all + wanted - 1) / wanted;
    int64_t even = (all + groups - 1) / groups, most = std::min(all, kMostTiles) + kMostRows;
    group = (std::clamp<int64_t>(wish(choice, "group", even), 1, most) + rows - 1) / rows * rows;
    groups = (all + group - 1) / group;
    int64_t chunks = std::min(groups, std::max<int64_t>(1, kEnoughChunks / columnChunks));
    groupsPerChunk = (groups + chunks - 1) / chunks;
    info.chunks = (groups + groupsPerChunk - 1) / groupsPerChunk * columnChunks;
    isShared &= groupsPerChunk > 1;
    return {{"channels", channels},
            {"columns", chunkColumns},
            {"group", group},
            {"rows", rows},
            {"vectors", vectors}};
  }

  /// Phases in a block of the reduction, and phases of results.
  int64_t summedPhases() const { return sides.forward ? phases() : 1; }
  int64_t resultPhases() const { return sides.forward ? 1 : phases(); }
  void overResultPhases(llvm::function_ref<void(const WinogradPhase &)> body) {
    loop(0, resultPhases(), 1, [&](Value number) { body(phaseOf(number)); });
  }
  /// The phases in a block, with their places in a row of it: of the reduction, or the given one of the results.
  void overSummedPhases(const WinogradPhase &ofResults,
                        llvm::function_ref<void(const WinogradPhase &, Value)> body) {
    if (!sides.forward)
      return body(ofResults, index(0));
    loop(0, summedPhases(), 1, [&](Value number) { body(phaseOf(number), mul(number, channels)); });
  }

  int64_t chunkPanels() const { return (chunkColumns + vectors * lanes - 1) / (vectors * lanes); }
  /// Where the panel `slot` of the channel block `block` begins.
  Value slotOf(const WinogradPhase &phase, Value block, Value slot) {
    if (!isShared)
      return index(0);
    Value number = sides.forward ? block : add(mul(phase.number, channelBlocks), block);
    return mul(add(mul(number, chunkPanels()), slot), bytesOf(panels.elements()) / elementBytes);
  }

  /// The panels of this chunk's columns, with their numbers.
  void overOwnPanels(llvm::function_ref<void(const Panel &, Value)> body) {
    overColumns(own, sides.resultChannels, vectors, [&](Value column, int64_t count, int64_t tail) {
      body({column, count, tail, panels.buffer, Value(), panels.pitch},
           div(sub(column, own.begin), vectors * lanes));
    });
  }

  /// Transforms the filter between the channels of `block` and the columns of a panel.
  void packPanel(const Panel &panel, Value at, const WinogradPhase &ofResults, Value block) {
    int64_t plane = shape.channels * shape.features;
    Value first = mul(block, channels);
    auto put = [&](ArrayRef<Value> window, Value row, Value vector) {
      Value place = add(add(at, mul(row, panels.pitch)), mul(vector, lanes));
      for (auto [i, value] : llvm::enumerate(transformFilter(window)))
        store(value, panels.buffer, add(place, static_cast<int64_t>(i) * panels.step()));
    };
    /// `get` of the plane of a tap's position in the window, zero behind its end.
    auto tapOf = [&](const WinogradPhase &phase, int64_t t, llvm::function_ref<Value(Value)> get) {
      auto [y, hasRow] = windowPosition(0, phase, index(t / taps));
      auto [x, hasColumn] = windowPosition(1, phase, index(t % taps));
      Value value = get(mul(add(mul(y, shape.filter[1]), x), plane));
      Value exists = both(hasRow, hasColumn);
      return exists ? Value(arith::SelectOp::create(*this, exists, value, splat(element, 0, lanes))) : value;
    };
    overSummedPhases(ofResults, [&](const WinogradPhase &phase, Value place) {
      if (sides.forward) {
        loop(0, channels, 1, [&](Value channel) {
          loop(0, panel.vectors, 1, [&](Value vector) {
            Square window;
            Value from = add(add(mul(add(first, channel), shape.features), panel.column), mul(vector, lanes));
            for (int64_t t = 0; t < taps * taps; ++t)
              window.push_back(
                  tapOf(phase, t, [&](Value tap) { return load(operandBuffer(1), add(from, tap), lanes); }));
            put(window, add(place, channel), vector);
          });
        });
        return;
      }
      loop(0, panel.vectors, 1, [&](Value vector) {
        Value column = add(panel.column, mul(vector, lanes));
        loop(0, channels, lanes, [&](Value channel) {
          transposeTaps(phase, add(mul(column, shape.features), add(first, channel)));
          loop(0, lanes, 1, [&](Value i) {
            Square window;
            for (int64_t t = taps * taps; t-- > 0;)
              window.push_back(tapOf(phase, t, [&](Value) {
                return load(square, add(mul(i, lanes), t * lanes * lanes), lanes);
              }));
            put(window, add(channel, i), vector);
          });
        });
      });
    });
  }

  /// `square` gets the taps of a phase between `lanes` channels of the result and as many of the source; `from`: of the
  /// first of both in a plane of the filter.
  void transposeTaps(const WinogradPhase &phase, Value from) {
    int64_t plane = shape.channels * shape.features;
    loop(0, taps, 1, [&](Value i) {
      loop(0, taps, 1, [&](Value j) {
        Value y = windowPosition(0, phase, i).first, x = windowPosition(1, phase, j).first;
        Value at = add(from, mul(add(mul(y, shape.filter[1]), x), plane));
        SmallVector<Value> lines;
        for (int64_t lane = 0; lane < lanes; ++lane)
          lines.push_back(load(operandBuffer(1), add(at, lane * shape.features), lanes));
        Value to = mul(add(mul(i, taps), j), lanes * lanes);
        for (auto [number, line] : llvm::enumerate(emitTranspose(*this, getLoc(), lines)))
          store(line, square, add(to, static_cast<int64_t>(number) * lanes));
      });
    });
  }

  void emitGroup(Value number) {
    Value first = mul(number, group);
    Value count = groups == 1 ? index(allTiles()) : minimum(index(group), sub(index(allTiles()), first));
    if (sharesTiles())
      transformTiles(phaseOf(index(0)), index(0), first, count);
    overResultPhases([&](const WinogradPhase &phase) {
      if (channelBlocks > 1 ||
          (!sides.forward && (hasShortPhases(0) || hasShortPhases(1)))) // some sums stay zero
        zeroRun(results.buffer, index(0), results.elements());
      loop(0, channelBlocks, 1, [&](Value block) { addBlock(phase, block, first, count); });
      loop({index(0), count}, 1, [&](Value tile) { finishTile(tile, positionOf(add(first, tile)), phase); });
    });
  }

  void addBlock(const WinogradPhase &phase, Value block, Value first, Value count) {
    if (!sharesTiles())
      transformTiles(phase, block, first, count);
    overOwnPanels([&](const Panel &panel, Value slot) {
      Value at = slotOf(phase, block, slot);
      if (!isShared)
        packPanel(panel, at, phase, block);
      overPositions(phase, [&](Value i, Value j) {
        loop({index(0), count}, rows, [&](Value row) { emitProduct(panel, at, i, j, row); });
      });
    });
  }

  /// Whether all phases of the results have the same transformed tiles.
  bool sharesTiles() const {
    return !sides.forward && hasShortPhases(0) && hasShortPhases(1) && channelBlocks == 1;
  }

  void transformTiles(const WinogradPhase &ofResults, Value block, Value first, Value count) {
    loop({index(0), count}, 1, [&](Value tile) {
      overSummedPhases(ofResults, [&](const WinogradPhase &phase, Value place) {
        transformSourceTile(tiles, tile, place, add(first, tile), phase, mul(block, channels), channels);
      });
    });
    clearRows(count);
  }

  /// The positions of a tile that hold more than zeros: towards the input, the filter is turned around.
  void overPositions(const WinogradPhase &phase, llvm::function_ref<void(Value, Value)> body) {
    auto range = [&](int64_t d) -> IndexRange {
      if (sides.forward || !hasShortPhases(d))
        return {index(0), index(side())};
      Value tap = firstTap(d, phase);
      return {maximum(tap, index(0)), add(minimum(tap, index(0)), side())};
    };
    loop(range(0), 1, [&](Value i) { loop(range(1), 1, [&](Value j) { body(i, j); }); });
  }

  /// Rows of the last register tile behind the last tile of the group: nobody looks at what comes out of them.
  void clearRows(Value count) {
    loop({count, mul(ceilDivPositive(count, rows), rows)}, 1, [&](Value row) {
      loop(0, positions(), 1, [&](Value position) {
        zeroRun(tiles.buffer, add(mul(position, tiles.step()), mul(row, tiles.pitch)), tiles.pitch);
      });
    });
  }

  /// The last position along a dimension knows only phases of two taps, which are first.
  Value phasesAt(int64_t d, Value position) {
    if (!hasShortPhases(d))
      return index(stride);
    Value isLast = arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, position, index(taps));
    return arith::SelectOp::create(*this, isLast, index(1), index(stride));
  }

  void emitProduct(const Panel &panel, Value panelAt, Value i, Value j, Value row) {
    IndexBuilder at(*this, getLoc());
    Value position = add(mul(i, side()), j);
    Offset source(add(mul(position, tiles.step()), mul(row, tiles.pitch)));
    Offset filter(add(panelAt, mul(position, panels.step())));
    Value result =
        add(add(mul(position, results.step()), mul(row, results.pitch)), sub(panel.column, own.begin));
    int64_t count = rows * panel.vectors;
    SmallVector<ReductionLoop> loops;
    if (summedPhases() > 1)
      loops = {{offsetOf(phasesAt(0, i)), 1}, {offsetOf(phasesAt(1, j)), 1}};
    loops.push_back({Offset(channels), unrollOf(count, channels)});
    auto depthOf = [&](ReductionIndex k) {
      if (k.size() == 1)
        return k[0];
      Offset phase = at.add(at.mul(k[0], stride), k[1]);
      return at.add(at.mul(phase, channels), k[2]);
    };
    auto loadA = [&](int64_t r, ReductionIndex k) -> Value {
      return loadScalar(tiles.buffer, at.value(at.add(at.add(source, depthOf(k)), r * tiles.pitch)));
    };
    auto loadB = [&](int64_t v, ReductionIndex k) -> Value {
      return load(panels.buffer,
                  at.value(at.add(at.add(filter, at.mul(depthOf(k), panels.pitch)), v * lanes)), lanes);
    };
    auto place = [&](int64_t i) {
      return add(result, i / panel.vectors * results.pitch + i % panel.vectors * lanes);
    };
    SmallVector<Value> sums;
    for (int64_t i = 0; i < count; ++i)
      sums.push_back(channelBlocks > 1 ? load(results.buffer, place(i), lanes) : splat(element, 0, lanes));
    sums = emitMicrokernel(*this, getLoc(), {rows, panel.vectors, lanes}, loops, sums, {loadA, loadB}, fma);
    for (auto [i, sum] : llvm::enumerate(sums))
      store(sum, results.buffer, place(i));
  }

  void finishTile(Value tile, const TilePosition &place, const WinogradPhase &phase) {
    loop(own, lanes, [&](Value column) {
      Square values = transformResults(loadSquare(results, tile, sub(column, own.begin)));
      for (int64_t i = 0; i < kWinogradTile; ++i)
        whereInside(0, add(place.row, i), i, phase, [&](Value y) {
          for (int64_t j = 0; j < kWinogradTile; ++j)
            whereInside(1, add(place.column, j), j, phase, [&](Value x) {
              storeResult({place.image, y, x, column}, values[i * kWinogradTile + j]);
            });
        });
    });
  }

  /// `body` of the position of result `number` of a tile, `at` of its phase: the last tile along an odd
  /// dimension has one, and the last phase may end before others.
  void whereInside(int64_t d, Value at, int64_t number, const WinogradPhase &phase,
                   llvm::function_ref<void(Value)> body) {
    int64_t step = sides.forward ? 1 : stride, size = sides.result[d];
    if (step > 1)
      at = add(mul(at, step), phase.remainders[d]);
    if (size % step == 0 && (number == 0 || size / step % kWinogradTile == 0))
      return body(at);
    guarded(arith::CmpIPredicate::slt, at, index(size), [&] { body(at); });
  }

  int64_t channels = 0, channelBlocks = 1; // of a block of the reduction
  int64_t chunkColumns = 0, columnChunks = 1;
  int64_t group = 0, groups = 1, groupsPerChunk = 1; // tiles of a group
  int64_t rows = 1, vectors = 1;                     // of a register tile
  bool isShared = false;                             // transformed filters, by the groups of a chunk
  IndexRange own;                                    // columns of the chunk
  PositionMatrices tiles, results, panels;
  Value square; // of taps that are transposed
};

} // namespace

FailureOr<KernelInfo> emitWinogradConv(ModuleOp module, const ConvSpec &spec, const Target &target) {
  return WinogradConv(module, spec, target).emit(module);
}

} // namespace ortc::cpu
