//===- WinogradConv.cpp - 3x3 convolution and its input gradient ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles of all images are numbered in one row and cut in groups that, transformed, fit the second-level cache. A group is
// summed block by block of the channels; a panel of a few vectors of columns of the transformed filter stays in the
// first-level cache while all tiles of a group go over it. Filters that several groups of a chunk share are transformed
// once; others panel by panel where they are needed. The input gradient is the convolution of the gradient with the
// filter transposed and turned around.
#include "compiler/codegen/conv/Winograd.h"

#include "dialects/nn/NnDialect.h"

using namespace mlir;

namespace ortc::codegen {

/// Channels of a block, and columns of a chunk.
static constexpr int64_t kBlockChannels = 128, kChunkColumns = 128;
/// Elements of a position's tiles and results in a group.
static constexpr int64_t kGroupElements = 16 << 10;
/// Filters up to this size are transformed once a chunk.
static constexpr int64_t kSharedBytes = 2 << 20;
/// Chunks that there should be at least.
static constexpr int64_t kEnoughChunks = 4;
/// Tiles for which a register tile is chosen: what is left over does not count.
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
    tiles.rows = group, tiles.pitch = channels;
    results.rows = group, results.pitch = chunkColumns;
    panels.rows = channels, panels.pitch = vectors * lanes;
    int64_t slots = isShared ? channelBlocks * chunkPanels() : 1;
    int64_t filterBytes = bytesOf(panels.elements()) * slots, tileBytes = bytesOf(tiles.elements()),
            resultBytes = bytesOf(results.elements());
    int64_t squareBytes = bytesOf(sides.forward ? 0 : 9 * lanes * lanes);
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
      loop(0, channelBlocks, 1, [&](Value block) {
        overOwnPanels([&](const Panel &panel, Value slot) { packPanel(panel, slotOf(block, slot), block); });
      });
    Value first = mul(groupChunk, groupsPerChunk);
    loop({first, minimum(add(first, groupsPerChunk), index(groups))}, 1,
         [&](Value number) { emitGroup(number); });
    return info;
  }

private:
  /// The choice: channels of a block, columns of a chunk, tiles of a group, and the register tile. Blocks are summed in
  /// one chain.
  KernelChoice plan(const KernelChoice *choice) {
    int64_t summed = sides.sourceChannels, columns = sides.resultChannels;
    int64_t wantedColumns = std::max(kChannelUnit, wish(choice, "columns", kChunkColumns));
    columnChunks = (columns + wantedColumns - 1) / wantedColumns;
    chunkColumns = columnChunks == 1 ? columns : ((columns + columnChunks - 1) / columnChunks + 63) / 64 * 64;
    columnChunks = (columns + chunkColumns - 1) / chunkColumns;
    isShared = kTilePositions * summed * chunkColumns * elementBytes <= kSharedBytes;
    int64_t wantedChannels = wish(choice, "channels", isShared ? kBlockChannels : kBlockChannels / 2);
    channels = blockOf(summed, std::max(kChannelUnit, wantedChannels));
    channelBlocks = summed / channels;
    // Fewer groups transform a filter that is not shared less often.
    int64_t wanted = (isShared ? 1 : 2) * kGroupElements / (channels + chunkColumns);
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

  int64_t chunkPanels() const { return (chunkColumns + vectors * lanes - 1) / (vectors * lanes); }
  /// Where the panel `slot` of the channel block `block` begins.
  Value slotOf(Value block, Value slot) {
    if (!isShared)
      return index(0);
    return mul(add(mul(block, chunkPanels()), slot), bytesOf(panels.elements()) / elementBytes);
  }

  /// The panels of this chunk's columns, with their numbers.
  void overOwnPanels(llvm::function_ref<void(const Panel &, Value)> body) {
    overColumns(own, sides.resultChannels, vectors, [&](Value column, int64_t count, int64_t tail) {
      body({column, count, tail, panels.buffer, Value(), panels.pitch},
           div(sub(column, own.begin), vectors * lanes));
    });
  }

  /// Transforms the filter between the channels of `block` and the columns of a panel.
  void packPanel(const Panel &panel, Value at, Value block) {
    int64_t plane = shape.channels * shape.features;
    Value first = mul(block, channels);
    auto put = [&](ArrayRef<Value> taps, Value channel, Value vector) {
      Value place = add(add(at, mul(channel, panels.pitch)), mul(vector, lanes));
      for (auto [i, value] : llvm::enumerate(transformFilter(taps)))
        store(value, panels.buffer, add(place, static_cast<int64_t>(i) * panels.step()));
    };
    if (sides.forward) {
      loop(0, channels, 1, [&](Value channel) {
        loop(0, panel.vectors, 1, [&](Value vector) {
          Square taps;
          Value from = add(add(mul(add(first, channel), shape.features), panel.column), mul(vector, lanes));
          for (int64_t t = 0; t < 9; ++t)
            taps.push_back(load(operandBuffer(1), add(from, t * plane), lanes));
          put(taps, channel, vector);
        });
      });
      return;
    }
    loop(0, panel.vectors, 1, [&](Value vector) {
      Value column = add(panel.column, mul(vector, lanes));
      loop(0, channels, lanes, [&](Value channel) {
        loop(0, 9, 1, [&](Value t) {
          Value from = add(add(mul(t, plane), mul(column, shape.features)), add(first, channel));
          SmallVector<Value> lines;
          for (int64_t i = 0; i < lanes; ++i)
            lines.push_back(load(operandBuffer(1), add(from, i * shape.features), lanes));
          for (auto [i, line] : llvm::enumerate(emitTranspose(*this, getLoc(), lines)))
            store(line, square, add(mul(t, lanes * lanes), static_cast<int64_t>(i) * lanes));
        });
        loop(0, lanes, 1, [&](Value i) {
          Square taps;
          for (int64_t t = 9; t-- > 0;)
            taps.push_back(load(square, add(mul(i, lanes), t * lanes * lanes), lanes));
          put(taps, add(channel, i), vector);
        });
      });
    });
  }

  void emitGroup(Value number) {
    Value first = mul(number, group);
    Value count = groups == 1 ? index(allTiles()) : minimum(index(group), sub(index(allTiles()), first));
    if (channelBlocks > 1)
      zeroRun(results.buffer, index(0), results.elements());
    loop(0, channelBlocks, 1, [&](Value block) {
      loop({index(0), count}, 1, [&](Value tile) {
        transformSourceTile(tiles, tile, add(first, tile), mul(block, channels), channels);
      });
      clearRows(count);
      overOwnPanels([&](const Panel &panel, Value slot) {
        Value at = slotOf(block, slot);
        if (!isShared)
          packPanel(panel, at, block);
        loop(0, kTilePositions, 1, [&](Value position) {
          loop({index(0), count}, rows, [&](Value row) { emitProduct(panel, at, position, row); });
        });
      });
    });
    loop({index(0), count}, 1, [&](Value tile) { finishTile(tile, positionOf(add(first, tile))); });
  }

  /// Rows of the last register tile behind the last tile of the group: nobody looks at what comes out of them.
  void clearRows(Value count) {
    loop({count, mul(ceilDivPositive(count, rows), rows)}, 1, [&](Value row) {
      loop(0, kTilePositions, 1, [&](Value position) {
        zeroRun(tiles.buffer, add(mul(position, tiles.step()), mul(row, tiles.pitch)), channels);
      });
    });
  }

  void emitProduct(const Panel &panel, Value panelAt, Value position, Value row) {
    IndexBuilder at(*this, getLoc());
    Offset source(add(mul(position, tiles.step()), mul(row, tiles.pitch)));
    Offset filter(add(panelAt, mul(position, panels.step())));
    Value result =
        add(add(mul(position, results.step()), mul(row, results.pitch)), sub(panel.column, own.begin));
    auto loadA = [&](int64_t r, ReductionIndex k) -> Value {
      return loadScalar(tiles.buffer, at.value(at.add(at.add(source, k[0]), r * tiles.pitch)));
    };
    auto loadB = [&](int64_t v, ReductionIndex k) -> Value {
      return load(panels.buffer, at.value(at.add(at.add(filter, at.mul(k[0], panels.pitch)), v * lanes)),
                  lanes);
    };
    auto place = [&](int64_t i) {
      return add(result, i / panel.vectors * results.pitch + i % panel.vectors * lanes);
    };
    int64_t count = rows * panel.vectors;
    SmallVector<Value> sums;
    for (int64_t i = 0; i < count; ++i)
      sums.push_back(channelBlocks > 1 ? load(results.buffer, place(i), lanes) : splat(element, 0, lanes));
    sums = emitMicrokernel(*this, getLoc(), {rows, panel.vectors, lanes},
                           {{Offset(channels), unrollOf(count, channels)}}, sums, {loadA, loadB}, fma);
    for (auto [i, sum] : llvm::enumerate(sums))
      store(sum, results.buffer, place(i));
  }

  void finishTile(Value tile, const TilePosition &place) {
    loop(own, lanes, [&](Value column) {
      Square values = transformResults(loadSquare(results, tile, sub(column, own.begin)));
      for (int64_t i = 0; i < kTileSide; ++i)
        whereInside(0, add(place.row, i), i, [&](Value y) {
          for (int64_t j = 0; j < kTileSide; ++j)
            whereInside(1, add(place.column, j), j, [&](Value x) {
              storeResult({place.image, y, x, column}, values[i * kTileSide + j]);
            });
        });
    });
  }

  /// The last tile along an odd dimension has one result.
  void whereInside(int64_t d, Value at, int64_t number, llvm::function_ref<void(Value)> body) {
    if (number == 0 || sides.result[d] % kTileSide == 0)
      return body(at);
    guarded(arith::CmpIPredicate::slt, at, index(sides.result[d]), [&] { body(at); });
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

} // namespace ortc::codegen
