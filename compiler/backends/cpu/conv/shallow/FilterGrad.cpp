// Filter gradient of few channels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dW = A^T B where a row of the window is a few numbers: rows of a register tile are any neighbours in (filter
// position, channel), so that the whole window meets a vector of the gradient at once. Images are read in
// place. Results whose windows leave the image are few and have code of their own, without the rows that lie
// outside; the gradient is what streams and is fetched ahead. Groups of results are added up in the filter,
// so that no sum is one long chain.
#include "compiler/backends/cpu/conv/ConvAlgorithms.h"
#include "compiler/backends/cpu/conv/dense/DenseEmitter.h"

#include "compiler/backends/cpu/contraction/VectorAccess.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

/// Results of a group.
static constexpr int64_t kGroupResults = 256;
/// Rows of the filter's gradient at most, and of one row of the window: more do well with tiles of a row of the window.
static constexpr int64_t kMostFilterRows = 64, kMostRun = 14;
/// Results of a line at most: they are summed in one go.
static constexpr int64_t kLongestLine = 4096;
/// Kinds of results at most, by the part of the window that lies in the image.
static constexpr int64_t kMostKinds = 9;
/// Columns of a chunk, and rows where columns are cut in such.
static constexpr int64_t kChunkColumns = 16, kEnoughRows = 18;
/// Chunks that there should be, and how many there are at most if rows are cut.
static constexpr int64_t kWantedChunks = 4, kWantedRowChunks = 2;
/// Rows of a tile.
static constexpr int64_t kMostTileRows = 28;
/// Results between the one that is summed and the one whose gradient is fetched.
static constexpr int64_t kFetchAhead = 32;

namespace {

/// Neighbouring results of one dimension whose windows have the filter positions [firstTap, endTap) in the image.
struct ResultKind {
  int64_t begin, end, firstTap, endTap;
};

/// Those of one dimension; none where no window lies in the image as a whole.
SmallVector<ResultKind> kindsOf(const ConvShape &shape, int64_t d) {
  Walk walk = forwardWalk(shape, d);
  auto isInside = [&](int64_t q, int64_t tap) {
    int64_t place = q * walk.sourceStride + walk.base + tap * walk.tapStep;
    return place >= 0 && place < shape.input[d];
  };
  SmallVector<ResultKind> kinds;
  bool anyWhole = false;
  for (int64_t q = 0; q < walk.count; ++q) {
    ResultKind kind{q, q + 1, 0, walk.taps};
    while (kind.firstTap < kind.endTap && !isInside(q, kind.firstTap))
      ++kind.firstTap;
    while (kind.firstTap < kind.endTap && !isInside(q, kind.endTap - 1))
      --kind.endTap;
    anyWhole |= kind.endTap - kind.firstTap == walk.taps;
    if (!kinds.empty() && kinds.back().firstTap == kind.firstTap && kinds.back().endTap == kind.endTap)
      ++kinds.back().end;
    else
      kinds.push_back(kind);
  }
  return anyWhole ? kinds : SmallVector<ResultKind>();
}

class ShallowFilterGrad : public DenseEmitter {
public:
  ShallowFilterGrad(ModuleOp module, const ConvSpec &spec, const Target &target)
      : DenseEmitter(module, spec, target), kinds{kindsOf(shape, 0), kindsOf(shape, 1)},
        walks{forwardWalk(shape, 0), forwardWalk(shape, 1)},
        filterRows(nn::elementCount(shape.filter) * shape.channels) {}

  KernelInfo emit(ModuleOp module) {
    planGroups();
    planChunks();
    begin(module, 0);
    Value rowChunk = rem(kernel.chunk, rowChunks), columnChunk = div(kernel.chunk, rowChunks);
    IndexRange own{mul(columnChunk, chunkColumns),
                   minimum(mul(add(columnChunk, 1), chunkColumns), index(shape.features))};
    if (columnChunks == 1)
      own = {index(0), index(shape.features)};
    int64_t groups = shape.batch / images * blocks;
    loop(0, groups, 1, [&](Value group) {
      isFirst =
          groups == 1 ? Value() : arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, group, index(0));
      firstImage = mul(div(group, blocks), images);
      Value begin = mul(rem(group, blocks), blockPoints);
      points = {begin, minimum(add(begin, blockPoints), index(shape.output[0]))};
      overColumns(own, shape.features, vectors, [&](Value column, int64_t count, int64_t tail) {
        Panel panel{column, count, tail, operandBuffer(1), index(0), shape.features};
        int64_t from = 0;
        for (int64_t chunk = 0; chunk < rowChunks; ++chunk) {
          int64_t size = filterRows / rowChunks + (chunk < filterRows % rowChunks);
          guarded(arith::CmpIPredicate::eq, rowChunk, index(chunk), [&] { overTiles(panel, from, size); });
          from += size;
        }
      });
    });
    return info;
  }

private:
  /// Rows of the filter's gradient that a chunk has at most.
  int64_t chunkRows() const { return (filterRows + rowChunks - 1) / rowChunks; }

  void planGroups() {
    int64_t points = shape.output[0], wanted = std::max<int64_t>(1, kGroupResults / shape.output[1]);
    images = std::clamp<int64_t>(wanted / points, 1, shape.batch);
    while (shape.batch % images)
      --images;
    blocks = (points + wanted - 1) / wanted;
    blockPoints = (points + blocks - 1) / blocks;
    blocks = (points + blockPoints - 1) / blockPoints;
  }

  void planChunks() {
    int64_t wanted = std::clamp<int64_t>(shape.flops() / target.machine.parallel.convFlops, 1, kWantedChunks);
    wanted = (wanted + shape.parts - 1) / shape.parts;
    if (filterRows >= kEnoughRows)
      columnChunks = std::clamp<int64_t>(shape.features / kChunkColumns, 1, wanted);
    chunkColumns = shape.features;
    if (columnChunks > 1)
      chunkColumns = ((shape.features + columnChunks - 1) / columnChunks + kChunkColumns - 1) /
                     kChunkColumns * kChunkColumns;
    columnChunks = (shape.features + chunkColumns - 1) / chunkColumns;
    if (columnChunks == 1 && filterRows >= kEnoughRows)
      rowChunks = std::min(wanted, kWantedRowChunks);
    info.chunks = columnChunks * rowChunks;
    int64_t widest = columnChunks == 1 ? shape.features : kChunkColumns;
    vectors = pickTile(chunkRows(), 1, widest, tileOptions(0)).vectors;
  }

  TileOptions tileOptions(int64_t given) const {
    return {false, true, columnChunks == 1, given, kMostTileRows};
  }

  void overTiles(const Panel &panel, int64_t from, int64_t count) {
    int64_t rows = pickTile(count, 1, panel.vectors * lanes, tileOptions(panel.vectors)).rows;
    bool fetches = true;
    for (auto [size, tiles] : evenTiles(count, rows))
      for (int64_t i = 0; i < tiles; ++i, from += size) {
        emitTile(panel, from, size, fetches);
        fetches = false;
      }
  }

  /// Filter position of a row of the filter's gradient, in dimension d.
  int64_t tapOf(int64_t row, int64_t d) const {
    int64_t position = row / shape.channels;
    return d == 0 ? position / shape.filter[1] : position % shape.filter[1];
  }

  /// Rows [from, from + rows) of the filter's gradient.
  void emitTile(const Panel &panel, int64_t from, int64_t rows, bool fetches) {
    SmallVector<Value> sums(rows * panel.vectors, splat(element, 0, lanes));
    sums = fold({index(0), index(images)}, 1, sums, [&](Value i, ValueRange values) {
      SmallVector<Value> sums(values);
      Value image = add(firstImage, i);
      for (const ResultKind &kind : kinds[0]) {
        IndexRange own{maximum(points.begin, index(kind.begin)), minimum(points.end, index(kind.end))};
        sums = fold(own, 1, sums, [&](Value q, ValueRange values) {
          SmallVector<Value> sums(values);
          for (const ResultKind &inner : kinds[1])
            sumLine(panel, {image, q}, kind, inner, {from, rows, fetches}, sums);
          return sums;
        });
      }
      return sums;
    });
    Value place = add(index(from * shape.features), panel.column);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < panel.vectors; ++v)
        addTo(add(place, r * shape.features + v * lanes), v + 1 == panel.vectors ? panel.tail : lanes,
              sums[r * panel.vectors + v], isFirst);
  }

  struct Line {
    Value image, point;
  };
  struct Tile {
    int64_t from, rows;
    bool fetches;
  };

  /// Adds the results of kind `inner` of a line to the sums of those rows that lie in the image.
  void sumLine(const Panel &panel, Line line, const ResultKind &outer, const ResultKind &inner, Tile tile,
               SmallVector<Value> &sums) {
    SmallVector<int64_t> live;
    for (int64_t row = tile.from; row < tile.from + tile.rows; ++row)
      if (int64_t tap = tapOf(row, 0), last = tapOf(row, 1);
          tap >= outer.firstTap && tap < outer.endTap && last >= inner.firstTap && last < inner.endTap)
        live.push_back(row - tile.from);
    if (live.empty())
      return;
    IndexBuilder at(*this, getLoc());
    Value top =
        add(add(mul(line.image, shape.input[0]), walks[0].base), mul(line.point, walks[0].sourceStride));
    Offset source(mul(add(mul(top, shape.input[1]), walks[1].base), shape.channels));
    Offset gradient(add(mul(add(mul(line.image, shape.output[0]), line.point), shape.output[1] * panel.pitch),
                        panel.column));
    auto loadA = [&](int64_t r, ReductionIndex k) -> Value {
      int64_t row = tile.from + live[r];
      int64_t place = tapOf(row, 0) * walks[0].tapStep * shape.input[1] + tapOf(row, 1) * walks[1].tapStep;
      Offset point = at.mul(at.add(k[0], inner.begin), walks[1].sourceStride * shape.channels);
      return loadScalar(operandBuffer(0), at.value(at.add(at.add(source, point),
                                                          place * shape.channels + row % shape.channels)));
    };
    auto loadB = [&](int64_t v, ReductionIndex k) -> Value {
      Offset place = at.add(at.add(gradient, at.mul(at.add(k[0], inner.begin), panel.pitch)), v * lanes);
      if (tile.fetches && v * lanes * elementBytes % 64 == 0)
        fetch(panel.buffer, at.value(at.add(place, kFetchAhead * panel.pitch)), /*writes=*/false);
      return loadLive(panel.buffer, place, {lanes, v + 1 == panel.vectors ? panel.tail : lanes});
    };
    sumRows(live, panel.vectors, sums, {inner.end - inner.begin, 1}, {loadA, loadB});
  }

  SmallVector<ResultKind> kinds[2];
  Walk walks[2];
  int64_t filterRows;
  int64_t images = 1, blocks = 1,
          blockPoints = 1; // of a group, of an image, points of dimension 0 of a group
  int64_t chunkColumns = 0, columnChunks = 1, rowChunks = 1, vectors = 1;
  IndexRange points; // of dimension 0 of the group
  Value firstImage, isFirst;
};

} // namespace

bool isShallowFilterGrad(const ConvShape &shape) {
  if (shape.rank() != 2 || shape.groups > 1 || shape.output[1] > kLongestLine)
    return false;
  int64_t run = shape.filter[1] * shape.channels;
  size_t kinds = kindsOf(shape, 0).size() * kindsOf(shape, 1).size();
  return run <= kMostRun && shape.filter[0] * run <= kMostFilterRows && kinds > 0 && kinds <= kMostKinds;
}

KernelInfo emitShallowFilterGrad(ModuleOp module, const ConvSpec &spec, const Target &target) {
  return ShallowFilterGrad(module, spec, target).emit(module);
}

} // namespace ortc::cpu
