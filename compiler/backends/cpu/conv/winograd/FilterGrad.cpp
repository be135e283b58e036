// Filter gradients with fewer products.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles of all images are numbered in one row and cut in groups that, transformed, fit the second-level cache. For each
// position of a tile, rows of the product are channels, columns features, and the reduction runs over the tiles of a
// group; groups are added up one after another, so that no sum is one long chain. At the end the sums become the
// filter's gradient, and an epilogue (the update of the filter) works on it there. Every phase of a stride has taps
// of its own.
#include "compiler/backends/cpu/conv/ConvAlgorithms.h"
#include "compiler/backends/cpu/conv/winograd/Winograd.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

/// Channels and columns of a chunk.
static constexpr int64_t kChunkChannels = 64, kChunkColumns = 128;
/// Columns of chunks are multiples.
static constexpr int64_t kColumnUnit = 32;
/// Elements of a position's tiles in a group, of source and gradient.
static constexpr int64_t kGroupElements = 12 << 10;
/// Operands of an epilogue are fetched so many channels ahead.
static constexpr int64_t kFetchedAhead = 4;
static constexpr int64_t kLineBytes = 64;

namespace {

class WinogradFilterGrad : public WinogradEmitter {
public:
  WinogradFilterGrad(ModuleOp module, const ConvSpec &spec, const Target &target)
      : WinogradEmitter(module, spec, target, /*forward=*/true) {}

  FailureOr<KernelInfo> emit(ModuleOp module) {
    if (failed(choose("winograd ", [&](const KernelChoice *choice) { return plan(choice); })))
      return failure();
    int64_t tileBytes = bytesOf(tiles.elements()), gradientBytes = bytesOf(gradients.elements()),
            sumBytes = bytesOf(sums.elements()), patchBytes = bytesOf(patchElements(channels));
    begin(module, tileBytes + gradientBytes + sumBytes + patchBytes);
    placeMatrices(tiles, 0);
    placeMatrices(gradients, tileBytes);
    placeMatrices(sums, tileBytes + gradientBytes);
    patch = kernel.workspaceView(*this, getLoc(), tileBytes + gradientBytes + sumBytes, element,
                                 patchBytes / elementBytes);
    Value columnChunk = rem(kernel.chunk, columnChunks);
    Value others = div(kernel.chunk, columnChunks);
    int64_t channelChunks = shape.channels / channels;
    firstChannel = mul(rem(others, channelChunks), channels);
    phase = phaseOf(div(others, channelChunks));
    own.begin = mul(columnChunk, chunkColumns);
    own.end = minimum(add(own.begin, chunkColumns), index(shape.features));
    if (groups > 1)
      zeroRun(sums.buffer, index(0), sums.elements());
    loop(0, groups, 1, [&](Value number) { addGroup(number); });
    finish();
    return info;
  }

private:
  /// Groups decide about the order of sums: the choice is the register tile.
  KernelChoice plan(const KernelChoice *choice) {
    channels = blockOf(shape.channels, kChunkChannels);
    columnChunks = (shape.features + kChunkColumns - 1) / kChunkColumns;
    if (shape.parts * phases() * columnChunks * (shape.channels / channels) == 1) { // for a second worker
      if (shape.features > kColumnUnit)
        columnChunks = 2;
      else if (channels % (2 * kChannelUnit) == 0)
        channels /= 2;
    }
    chunkColumns =
        ((shape.features + columnChunks - 1) / columnChunks + kColumnUnit - 1) / kColumnUnit * kColumnUnit;
    columnChunks = (shape.features + chunkColumns - 1) / chunkColumns;
    info.chunks = phases() * (shape.channels / channels) * columnChunks;
    // A panel divides a chunk's columns.
    int64_t widest =
        columnChunks == 1 || chunkColumns % (kMostVectors * lanes) == 0 ? chunkColumns : kColumnUnit;
    TileOptions options{false, true, false, possibleVectors(wish(choice, "vectors", 0), widest, false),
                        wishRows(choice)};
    TileChoice tile = pickTile(channels, 1, widest, options);
    rows = tile.rows, vectors = tile.vectors;
    int64_t all = allTiles(), wanted = kGroupElements / (channels + chunkColumns);
    groups = (all + wanted - 1) / wanted;
    group = (all + groups - 1) / groups;
    groups = (all + group - 1) / group;
    tiles = {Value(), positions(), group, channels};
    gradients = {Value(), positions(), group, chunkColumns};
    sums = {Value(), positions(), channels, chunkColumns};
    return {{"rows", rows}, {"vectors", vectors}};
  }

  void addGroup(Value number) {
    Value first = mul(number, group);
    Value count =
        allTiles() % group == 0 ? index(group) : minimum(index(group), sub(index(allTiles()), first));
    loop({index(0), count}, 1, [&](Value tile) {
      transformSourceTile(tiles, tile, index(0), add(first, tile), phase, firstChannel, channels);
      transformGradientTile(tile, positionOf(add(first, tile)));
    });
    overPositions([&](Value position) {
      overColumns(own, shape.features, vectors, [&](Value column, int64_t width, int64_t) {
        int64_t from = 0;
        for (auto [size, number] : evenTiles(channels, rows)) {
          loop(from, from + size * number, size,
               [&](Value row) { addProduct(position, row, size, sub(column, own.begin), width, count); });
          from += size * number;
        }
      });
    });
  }

  /// The positions of a tile that taps of this phase need.
  void overPositions(llvm::function_ref<void(Value)> body) {
    auto end = [&](int64_t d) {
      return hasShortPhases(d) ? sub(index(side()), firstTap(d, phase)) : index(side());
    };
    loop({index(0), end(0)}, 1,
         [&](Value i) { loop({index(0), end(1)}, 1, [&](Value j) { body(add(mul(i, side()), j)); }); });
  }

  void transformGradientTile(Value tile, const TilePosition &place) {
    loop(own, lanes, [&](Value column) {
      Square values;
      for (int64_t i = 0; i < kWinogradTile; ++i)
        for (int64_t j = 0; j < kWinogradTile; ++j)
          values.push_back(loadGradient(place, i, j, column));
      storeSquare(gradients, tile, sub(column, own.begin), transformGradient(values));
    });
  }

  /// Zero where the tile reaches over an odd edge.
  Value loadGradient(const TilePosition &place, int64_t i, int64_t j, Value column) {
    Value y = add(place.row, i), x = add(place.column, j), exists;
    for (auto [number, at, size] : {std::tuple{i, y, shape.output[0]}, {j, x, shape.output[1]}}) {
      if (number == 0 || size % kWinogradTile == 0)
        continue;
      Value here = arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, at, index(size));
      exists = exists ? Value(arith::AndIOp::create(*this, exists, here)) : here;
    }
    Value point = add(mul(add(mul(place.image, shape.output[0]), y), shape.output[1]), x);
    auto get = [&] { return load(operandBuffer(1), add(mul(point, shape.features), column), lanes); };
    if (!exists)
      return get();
    Value zero = splat(element, 0, lanes);
    auto branch = scf::IfOp::create(*this, zero.getType(), exists, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(&branch.getThenRegion().front());
    scf::YieldOp::create(*this, get());
    setInsertionPointToStart(&branch.getElseRegion().front());
    scf::YieldOp::create(*this, zero);
    return branch.getResult(0);
  }

  void addProduct(Value position, Value row, int64_t height, Value column, int64_t width, Value count) {
    IndexBuilder at(*this, getLoc());
    Offset source(add(mul(position, tiles.step()), row));
    Offset gradient(add(mul(position, gradients.step()), column));
    auto loadA = [&](int64_t r, ReductionIndex k) -> Value {
      return loadScalar(tiles.buffer, at.value(at.add(at.add(source, at.mul(k[0], tiles.pitch)), r)));
    };
    auto loadB = [&](int64_t v, ReductionIndex k) -> Value {
      Offset place = at.add(at.add(gradient, at.mul(k[0], gradients.pitch)), v * lanes);
      return load(gradients.buffer, at.value(place), lanes);
    };
    SmallVector<Value> products(height * width, splat(element, 0, lanes));
    products =
        emitMicrokernel(*this, getLoc(), {height, width, lanes},
                        {{offsetOf(count), unrollOf(height * width, group)}}, products, {loadA, loadB}, fma);
    Value place = add(add(mul(position, sums.step()), mul(row, sums.pitch)), column);
    for (auto [i, product] : llvm::enumerate(products)) {
      int64_t number = i;
      Value to = add(place, number / width * sums.pitch + number % width * lanes);
      if (groups > 1)
        product = arith::AddFOp::create(*this, load(sums.buffer, to, lanes), product);
      store(product, sums.buffer, to);
    }
  }

  /// Filters take the place of their sums, then go to memory one tap after the other: in long runs, with what
  /// is done to them before.
  void finish() {
    loop(0, channels, 1, [&](Value channel) {
      loop(own, lanes, [&](Value column) {
        Value at = sub(column, own.begin);
        storeSquare(sums, channel, at, transformFilterSums(loadSquare(sums, channel, at)));
      });
    });
    loop(0, taps, 1, [&](Value i) {
      auto [y, hasRow] = windowPosition(0, phase, i);
      loop(0, taps, 1, [&](Value j) {
        auto [x, hasColumn] = windowPosition(1, phase, j);
        Value tap = mul(add(mul(i, taps), j), sums.step());
        auto put = [&] { storeTap(tap, y, x); };
        if (Value exists = both(hasRow, hasColumn))
          guarded(arith::CmpIPredicate::ne, exists, arith::ConstantOp::create(*this, getBoolAttr(false)),
                  put);
        else
          put();
      });
    });
  }

  /// Stores the filter gradient of all channels of the chunk at position (y, x) of the window, which lies at
  /// `tap` of `sums`.
  void storeTap(Value tap, Value y, Value x) {
    auto positionOf = [&](Value channel, Value column) {
      SmallVector<Value> position{y, x, add(firstChannel, channel), column};
      if (shape.parts > 1)
        position.insert(position.begin(), index(0)); // of what the part has of the result
      return position;
    };
    loop(0, channels, 1, [&](Value channel) {
      // A run is too short for the processor to see what comes.
      if (spec.epilogue)
        loop(own, kLineBytes / elementBytes,
             [&](Value column) { fetchResult(positionOf(add(channel, kFetchedAhead), column)); });
      Value from = add(tap, mul(channel, sums.pitch));
      loop(own, lanes, [&](Value column) {
        storeResult(positionOf(channel, column), load(sums.buffer, add(from, sub(column, own.begin)), lanes));
      });
    });
  }

  int64_t channels = 0, chunkColumns = 0, columnChunks = 1;
  int64_t group = 0, groups = 1; // tiles of a group
  int64_t rows = 1, vectors = 1; // of a register tile
  IndexRange own;                // columns of the chunk
  Value firstChannel;
  WinogradPhase phase;
  PositionMatrices tiles, gradients, sums;
};

} // namespace

FailureOr<KernelInfo> emitWinogradFilterGrad(ModuleOp module, const ConvSpec &spec, const Target &target) {
  return WinogradFilterGrad(module, spec, target).emit(module);
}

} // namespace ortc::cpu
