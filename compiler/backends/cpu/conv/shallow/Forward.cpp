// Dense convolution of few channels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// First layers: a row of the window is one short run of the image, and all of the window is summed in one go.
// Images and filter are read in place: tiles whose windows leave the image in the last dimension have code of
// their own, without the products that lie outside; so are rows of the window outside the image left out.
#include "compiler/backends/cpu/conv/ConvAlgorithms.h"
#include "compiler/backends/cpu/conv/dense/DenseEmitter.h"

#include "compiler/backends/cpu/contraction/VectorAccess.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

/// Products of a row of the window at most, and of the window.
static constexpr int64_t kMostRun = 24, kMostDepth = 256;
/// Vectors with which features that fill no whole ones are worth it, too: shorter ones have no masked loads, and no
/// figures say that it is with longer ones.
static constexpr int64_t kTailBits = 256;
/// Results of a line, at most, whose windows leave the image there.
static constexpr int64_t kMostBorder = 6;
/// Rows of a tile whose neighbours read the same numbers: these stay in registers, too.
static constexpr int64_t kMostSharedRows = 8;

namespace {

/// Neighbouring tiles of a line: `count` of `rows` results from `first` on.
struct TilesOfLine {
  int64_t first, rows, count;
  bool isInside; // all windows lie in the image in the last dimension
};

bool isInside(const ConvShape &shape, int64_t from, int64_t rows) {
  Walk walk = forwardWalk(shape, 1);
  return from * walk.sourceStride + walk.base >= 0 &&
         (from + rows - 1) * walk.sourceStride + walk.base + (walk.taps - 1) * walk.tapStep < shape.input[1];
}

class ShallowConv : public DenseEmitter {
public:
  ShallowConv(ModuleOp module, const ConvSpec &spec, const Target &target)
      : DenseEmitter(module, spec, target), walks{forwardWalk(shape, 0), forwardWalk(shape, 1)} {}

  KernelInfo emit(ModuleOp module) {
    int64_t mostRows = shape.channels * shape.strides[1] == 1 ? kMostSharedRows : kMostRows;
    TileChoice tile = pickTile(shape.output[1], 1, shape.features, {false, true, true, 0, mostRows});
    vectors = tile.vectors;
    int64_t lines = shape.batch * shape.output[0], flops = std::max<int64_t>(1, shape.flops() / lines);
    int64_t linesOfChunk =
        std::clamp<int64_t>((target.machine.parallel.convFlops + flops - 1) / flops, 1, lines);
    info.chunks = (lines + linesOfChunk - 1) / linesOfChunk;
    int64_t tileBytes = spec.rollEpilogue ? bytesOf(tile.rows * vectors * lanes) : 0;
    begin(module, tileBytes);
    if (tileBytes)
      tileSums = kernel.workspaceView(*this, getLoc(), 0, element, tileBytes / elementBytes);
    Value first = mul(kernel.chunk, linesOfChunk);
    loop({first, minimum(add(first, linesOfChunk), index(lines))}, 1, [&](Value line) {
      image = div(line, shape.output[0]), point = rem(line, shape.output[0]);
      for (const TilesOfLine &tiles : tilesOf(tile.rows))
        loop(tiles.first, tiles.first + tiles.count * tiles.rows, tiles.rows, [&](Value at) {
          overColumns({index(0), index(shape.features)}, shape.features, vectors,
                      [&](Value column, int64_t count, int64_t tail) {
                        emitTile({column, count, tail, operandBuffer(1), column, shape.features}, at, tiles);
                      });
        });
    });
    return info;
  }

private:
  /// Neighbouring tiles of one height inside the image share their code.
  SmallVector<TilesOfLine> tilesOf(int64_t most) const {
    SmallVector<TilesOfLine> all;
    int64_t from = 0;
    for (auto [rows, count] : evenTiles(shape.output[1], most))
      for (int64_t i = 0; i < count; ++i, from += rows) {
        bool inside = isInside(shape, from, rows);
        if (inside && !all.empty() && all.back().isInside && all.back().rows == rows)
          ++all.back().count;
        else
          all.push_back({from, rows, 1, inside});
      }
    return all;
  }

  void emitTile(const Panel &panel, Value first, const TilesOfLine &tiles) {
    IndexBuilder at(*this, getLoc());
    int64_t run = shape.filter[1] * shape.channels, rows = tiles.rows;
    int64_t pointStep = walks[1].sourceStride * shape.channels;
    // The rows of the window that lie in the image.
    Value top = add(mul(point, walks[0].sourceStride), walks[0].base);
    Value firstTap = ceilDivPositive(sub(index(0), top), walks[0].tapStep);
    Value endTap =
        minimum(index(walks[0].taps), ceilDivPositive(sub(index(shape.input[0]), top), walks[0].tapStep));
    top = add(mul(image, shape.input[0]), top);
    Value left = add(mul(first, walks[1].sourceStride), walks[1].base);
    Offset source(mul(add(mul(top, shape.input[1]), left), shape.channels));
    Offset filter(panel.base);

    int64_t lineStep = walks[0].tapStep * shape.input[1] * shape.channels;
    // Rows of the tile that have a product at position k of the run: all of them in [commonBegin, commonEnd).
    auto hasProduct = [&](int64_t row, int64_t k) {
      int64_t place = (tiles.first + row) * walks[1].sourceStride + walks[1].base + k / shape.channels;
      return tiles.isInside || (place >= 0 && place < shape.input[1]);
    };
    int64_t commonBegin = 0, commonEnd = run;
    while (commonBegin < run && !hasProduct(0, commonBegin))
      ++commonBegin;
    while (commonEnd > commonBegin && !hasProduct(rows - 1, commonEnd - 1))
      --commonEnd;
    SmallVector<Value> sums(rows * panel.vectors, splat(element, 0, lanes));
    sums = fold({firstTap, endTap}, 1, sums, [&](Value tap, ValueRange values) {
      SmallVector<Value> sums(values);
      Offset from = at.add(source, at.mul(Offset(tap), lineStep));
      Offset row = at.add(filter, at.mul(Offset(tap), run * panel.pitch));
      auto part = [&](int64_t begin, int64_t end, bool unrolls) {
        SmallVector<int64_t> live;
        for (int64_t r = 0; r < rows; ++r)
          if (hasProduct(r, begin))
            live.push_back(r);
        if (live.empty())
          return;
        auto loadA = [&](int64_t r, ReductionIndex k) -> Value {
          return loadScalar(operandBuffer(0),
                            at.value(at.add(at.add(from, k[0]), begin + live[r] * pointStep)));
        };
        auto loadB = [&](int64_t v, ReductionIndex k) -> Value {
          Offset place = at.add(at.add(row, at.mul(at.add(k[0], begin), panel.pitch)), v * lanes);
          return loadLive(panel.buffer, place, {lanes, v + 1 == panel.vectors ? panel.tail : lanes});
        };
        int64_t count = live.size() * panel.vectors;
        sumRows(live, panel.vectors, sums, {end - begin, unrolls ? unrollOf(count, end - begin) : 1},
                {loadA, loadB});
      };
      for (int64_t k = 0; k < commonBegin; k += shape.channels)
        part(k, k + shape.channels, false);
      if (commonBegin < commonEnd)
        part(commonBegin, commonEnd, true);
      for (int64_t k = commonEnd; k < run; k += shape.channels)
        part(k, k + shape.channels, false);
      return sums;
    });
    finish(panel, first, rows, sums);
  }

  void finish(const Panel &panel, Value first, int64_t rows, ArrayRef<Value> sums) {
    auto storeOne = [&](Value row, int64_t v, Value sum) {
      storeResult({image, point, add(first, row), add(panel.column, v * lanes)}, sum,
                  v + 1 == panel.vectors ? panel.tail : lanes);
    };
    if (!tileSums || rows == 1) {
      for (auto [i, sum] : llvm::enumerate(sums))
        storeOne(index(i / panel.vectors), i % panel.vectors, sum);
      return;
    }
    for (auto [i, sum] : llvm::enumerate(sums))
      store(sum, tileSums, index(i * lanes));
    loop(0, rows, 1, [&](Value row) {
      for (int64_t v = 0; v < panel.vectors; ++v)
        storeOne(row, v, load(tileSums, mul(add(mul(row, panel.vectors), v), lanes), lanes));
    });
  }

  Walk walks[2];
  int64_t vectors = 1;
  Value image, point; // of the line
  Value tileSums;
};

} // namespace

bool isShallowConv(const ConvSpec &spec, const ConvShape &shape, const Target &target) {
  if (shape.rank() != 2 || shape.groups > 1 || shape.dilations[1] != 1)
    return false;
  // The dense kernel multiplies a border of zeros, which shows where weights are not finite: no choice for a machine
  // where all give the same bits.
  if (shape.features % 8 != 0 && (target.isa.vectorBits != kTailBits || spec.numerics == Numerics::Portable))
    return false;
  int64_t run = shape.filter[1] * shape.channels;
  int64_t border = 0;
  for (int64_t q = 0; q < shape.output[1]; ++q)
    border += !isInside(shape, q, 1);
  return run <= kMostRun && shape.filter[0] * run <= kMostDepth && border <= kMostBorder;
}

KernelInfo emitShallowConv(ModuleOp module, const ConvSpec &spec, const Target &target) {
  return ShallowConv(module, spec, target).emit(module);
}

} // namespace ortc::cpu
