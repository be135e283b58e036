// Transforms of tiles and filters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/conv/winograd/Winograd.h"

using namespace mlir;

namespace ortc::cpu {

using namespace kernels;

WinogradEmitter::WinogradEmitter(ModuleOp module, const ConvSpec &spec, const Target &target, bool forward)
    : DenseEmitter(module, spec, target), sides(sidesOf(shape, forward)), stride(shape.strides[0]),
      taps(stride == 1 ? 3 : 2) {}

Value WinogradEmitter::half(Value a) {
  int64_t width = cast<VectorType>(a.getType()).getDimSize(0);
  return arith::MulFOp::create(*this, a, splat(element, 0.5, width));
}

WinogradEmitter::Square WinogradEmitter::bothWays(ArrayRef<Value> square,
                                                  llvm::function_ref<Line(ArrayRef<Value>)> line) {
  int64_t side = 1;
  while (side * side < static_cast<int64_t>(square.size()))
    ++side;
  SmallVector<Line, 4> columns;
  for (int64_t c = 0; c < side; ++c) {
    Line column;
    for (int64_t r = 0; r < side; ++r)
      column.push_back(square[r * side + c]);
    columns.push_back(line(column));
  }
  Square result;
  for (size_t r = 0; r < columns[0].size(); ++r) {
    Line row;
    for (int64_t c = 0; c < side; ++c)
      row.push_back(columns[c][r]);
    llvm::append_range(result, line(row));
  }
  return result;
}

WinogradEmitter::Square WinogradEmitter::transformSource(ArrayRef<Value> tile) {
  return bothWays(tile, [&](ArrayRef<Value> d) {
    if (taps == 2)
      return Line{minus(d[0], d[1]), d[1], minus(d[2], d[1])};
    return Line{minus(d[0], d[2]), plus(d[1], d[2]), minus(d[2], d[1]), minus(d[1], d[3])};
  });
}

WinogradEmitter::Square WinogradEmitter::transformGradient(ArrayRef<Value> tile) {
  return bothWays(tile, [&](ArrayRef<Value> x) {
    if (taps == 2)
      return Line{x[0], plus(x[0], x[1]), x[1]};
    return Line{x[0], plus(x[0], x[1]), minus(x[0], x[1]), x[1]};
  });
}

WinogradEmitter::Square WinogradEmitter::transformFilter(ArrayRef<Value> filter) {
  return bothWays(filter, [&](ArrayRef<Value> g) {
    if (taps == 2)
      return Line{g[0], plus(g[0], g[1]), g[1]};
    Value ends = plus(g[0], g[2]);
    return Line{g[0], half(plus(ends, g[1])), half(minus(ends, g[1])), g[2]};
  });
}

WinogradEmitter::Square WinogradEmitter::transformResults(ArrayRef<Value> sums) {
  return bothWays(sums, [&](ArrayRef<Value> m) {
    if (taps == 2)
      return Line{plus(m[0], m[1]), plus(m[1], m[2])};
    return Line{plus(m[0], plus(m[1], m[2])), minus(minus(m[1], m[2]), m[3])};
  });
}

WinogradEmitter::Square WinogradEmitter::transformFilterSums(ArrayRef<Value> sums) {
  return bothWays(sums, [&](ArrayRef<Value> m) {
    if (taps == 2)
      return Line{plus(m[0], m[1]), plus(m[1], m[2])};
    Value middle = half(plus(m[1], m[2]));
    return Line{plus(m[0], middle), half(minus(m[1], m[2])), minus(middle, m[3])};
  });
}

// Of the gradient, result stride * q + remainder meets window position t at q + (remainder + low - t) / stride.
Value WinogradEmitter::firstTap(int64_t d, const WinogradPhase &phase) {
  Value remainder = phase.remainders[d];
  if (sides.forward)
    return remainder;
  // Tiles of all phases have the same source: the only tap of a short phase is the first one or the second.
  if (hasShortPhases(d))
    return sub(remainder, index(shape.low[d] % stride));
  return rem(add(remainder, shape.low[d]), stride);
}

std::pair<Value, Value> WinogradEmitter::windowPosition(int64_t d, const WinogradPhase &phase, Value tap) {
  Value at = add(firstTap(d, phase), mul(tap, stride));
  if (!hasShortPhases(d))
    return {at, Value()};
  int64_t size = shape.filter[d];
  // nothing negative is
  Value exists = arith::CmpIOp::create(*this, arith::CmpIPredicate::ult, at, index(size));
  return {maximum(minimum(at, index(size - 1)), index(0)), exists};
}

Value WinogradEmitter::both(Value a, Value b) {
  return a && b ? Value(arith::AndIOp::create(*this, a, b)) : a ? a : b;
}

int64_t WinogradEmitter::blockOf(int64_t all, int64_t most) {
  int64_t block = std::min(all, most) / kChannelUnit * kChannelUnit;
  while (all % block)
    block -= kChannelUnit;
  return block;
}

int64_t WinogradEmitter::tilesOf(int64_t d) const {
  int64_t step = sides.forward ? 1 : stride, results = (sides.result[d] + step - 1) / step;
  return (results + kWinogradTile - 1) / kWinogradTile;
}

TilePosition WinogradEmitter::positionOf(Value tile) {
  int64_t across = tilesOf(1), ofImage = tilesOf(0) * across;
  Value inImage = rem(tile, ofImage);
  return {div(tile, ofImage), mul(div(inImage, across), kWinogradTile),
          mul(rem(inImage, across), kWinogradTile)};
}

void WinogradEmitter::storeSquare(const PositionMatrices &to, Value row, Value column,
                                  ArrayRef<Value> values) {
  Value at = add(mul(row, to.pitch), column);
  for (auto [i, value] : llvm::enumerate(values))
    store(value, to.buffer, add(at, static_cast<int64_t>(i) * to.step()));
}

WinogradEmitter::Square WinogradEmitter::loadSquare(const PositionMatrices &from, Value row, Value column) {
  Square values;
  Value at = add(mul(row, from.pitch), column);
  for (int64_t i = 0; i < positions(); ++i)
    values.push_back(load(from.buffer, add(at, i * from.step()), lanes));
  return values;
}

void WinogradEmitter::placeMatrices(PositionMatrices &matrices, int64_t byteOffset) {
  matrices.buffer = kernel.workspaceView(*this, getLoc(), byteOffset, element, matrices.elements());
}

// A tile that reaches over the border is gathered first.
void WinogradEmitter::transformSourceTile(const PositionMatrices &to, Value row, Value column, Value tile,
                                          const WinogradPhase &phase, Value first, int64_t count) {
  TilePosition place = positionOf(tile);
  Value buffer = operandBuffer(0);
  int64_t step = sides.forward ? stride : 1; // between positions of a phase
  auto edge = [&](int64_t d, Value at) {
    if (sides.forward)
      return sub(add(mul(at, stride), phase.remainders[d]), index(shape.low[d]));
    Value last = hasShortPhases(d) ? index((shape.low[d] + 1) / stride)
                                   : div(add(phase.remainders[d], shape.low[d]), stride);
    return sub(add(at, last), index(taps - 1));
  };
  Value top = edge(0, place.row), left = edge(1, place.column);
  int64_t rowStep = sides.source[1] * sides.sourceChannels, columnStep = sides.sourceChannels;
  Value image = mul(place.image, sides.source[0] * rowStep);
  auto transform = [&](Value from, Value at, int64_t stepDown, int64_t stepAcross) {
    loop(0, count, lanes, [&](Value channel) {
      Square values;
      Value start = add(at, channel);
      for (int64_t i = 0; i < positions(); ++i)
        values.push_back(load(from, add(start, i / side() * stepDown + i % side() * stepAcross), lanes));
      storeSquare(to, row, add(column, channel), transformSource(values));
    });
  };
  auto isInside = [&](Value at, int64_t reach, int64_t size) {
    using arith::CmpIPredicate;
    Value after = arith::CmpIOp::create(*this, CmpIPredicate::sge, at, index(0));
    Value before = arith::CmpIOp::create(*this, CmpIPredicate::sle, at, index(size - reach));
    return Value(arith::AndIOp::create(*this, after, before));
  };
  int64_t reach = (side() - 1) * step + 1;
  Value whole = arith::AndIOp::create(*this, isInside(top, reach, sides.source[0]),
                                      isInside(left, reach, sides.source[1]));
  auto branch = scf::IfOp::create(*this, whole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(&branch.getThenRegion().front());
  Value start = add(add(image, add(mul(top, rowStep), mul(left, columnStep))), first);
  transform(buffer, start, step * rowStep, step * columnStep);
  setInsertionPointToStart(&branch.getElseRegion().front());
  loop(0, side(), 1, [&](Value i) {
    loop(0, side(), 1, [&](Value j) {
      Value y = add(top, mul(i, step)), x = add(left, mul(j, step)), at = mul(add(mul(i, side()), j), count);
      Value exists =
          arith::AndIOp::create(*this, isInside(y, 1, sides.source[0]), isInside(x, 1, sides.source[1]));
      auto pixel = scf::IfOp::create(*this, exists, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard inner(*this);
      setInsertionPointToStart(&pixel.getThenRegion().front());
      copyRun(buffer, add(add(image, add(mul(y, rowStep), mul(x, columnStep))), first), patch, at, count);
      setInsertionPointToStart(&pixel.getElseRegion().front());
      zeroRun(patch, at, count);
    });
  });
  transform(patch, index(0), side() * count, count);
}

} // namespace ortc::cpu
