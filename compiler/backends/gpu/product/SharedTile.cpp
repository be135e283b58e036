// One side of a product's tile in shared memory, as numbers of 16 bits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/product/SharedTile.h"

#include "compiler/backends/emit/StorageConversion.h"
#include "compiler/backends/gpu/product/TensorCore.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace ortc::gpu {

SharedTile::SharedTile(ThreadBuilder &b, const ProductShape &shape, const MatrixPlan &plan, Side side,
                       Value place, Value firstIndex)
    : b(b), shape(shape), plan(plan), side(side), layout(shape.layoutOf(side)),
      extent(plan.tile.extentOf(side)), place(place), firstIndex(firstIndex), thread(b.thread()) {}

int64_t SharedTile::bytesOf(const MatrixPlan &plan, Side side) {
  return plan.tile.extentOf(side) * plan.tile.depth * 2 * plan.format.partsOf(side);
}

Value SharedTile::swapOf(Value line) {
  bool isShort = lineBytes() < 128; // two lines lie in 128 bytes
  return isShort ? b.rem(b.div(line, 2), lineBytes() / kChunkBytes) : b.rem(line, kChunk);
}

Value SharedTile::offsetOf(Value line, Value chunk) {
  Value swapped = arith::XOrIOp::create(b, chunk, swapOf(line));
  return b.add(b.mul(line, lineBytes()), b.mul(swapped, kChunkBytes));
}

int64_t SharedTile::movesOf(int64_t elements) const {
  int64_t moves = extent * plan.tile.depth / elements;
  assert(moves % plan.tile.threads() == 0 && "every thread moves as much");
  return moves / plan.tile.threads();
}

SharedTile::Unit SharedTile::unitOf(int64_t move, int64_t elements, int64_t piece) {
  int64_t inLine = lineElements() / elements, threads = plan.tile.threads();
  assert(threads % inLine == 0 && "a move is of whole lines");
  Unit unit{b.add(b.div(thread, inLine), move * (threads / inLine)), {}};
  Value first = b.mul(b.rem(thread, inLine), piece);
  for (int64_t i = 0; i < elements / piece; ++i)
    unit.pieces.push_back(b.add(first, i * inLine * piece));
  return unit;
}

ElementPlace SharedTile::locate(ProductAccess &access, Value start, Value line, Value element) {
  Value index = b.add(firstIndex, layout.isAlongDepth ? line : element);
  Value step = layout.isAlongDepth ? element : line;
  int64_t size = side == Side::row ? shape.rows : shape.columns;
  ElementPlace found = access.locate(b, side, index, {start, step, plan.tile.depth});
  Value isThere = found.inside;
  if (size % extent != 0)
    isThere = b.both(isThere, b.less(index, size));
  if (shape.depth % plan.tile.depth != 0) // parts are whole stages but for the last
    isThere = b.both(isThere, b.less(b.add(start, step), shape.depth));
  return {found.buffer, found.at, isThere};
}

void SharedTile::copy(ProductAccess &access, Value start, Value stage) {
  Value to = placeOf(stage);
  for (int64_t move = 0; move < movesOf(kChunk); ++move) {
    Unit unit = unitOf(move, kChunk, kChunk);
    ElementPlace from = locate(access, start, unit.line, unit.pieces[0]);
    // Where nothing is copied the address still has to be one.
    Value at =
        from.inside ? arith::SelectOp::create(b, from.inside, from.at, b.index(0)).getResult() : from.at;
    Value target = b.advance(to, offsetOf(unit.line, b.div(unit.pieces[0], kChunk)));
    copyAsync(b, target, b.pointerTo(from.buffer, at), from.inside);
  }
}

/// Whether parts are the stored numbers themselves.
bool SharedTile::isStoredAsItIs() const {
  if (!layout.narrow || parts() != 1)
    return false;
  return plan.format.isHalf ? layout.narrow.isF16() : layout.narrow.isBF16();
}

Type SharedTile::unitElement() { return isStoredAsItIs() ? Type(b.getI16Type()) : Type(b.getF32Type()); }

void SharedTile::loadRun(ProductAccess &access, Value start, Value line, Value element, int64_t run,
                         SmallVectorImpl<Value> &elements) {
  ElementPlace from = locate(access, start, line, element);
  auto load = [&]() -> SmallVector<Value> {
    Type stored = cast<MemRefType>(from.buffer.getType()).getElementType();
    SmallVector<Value> loaded;
    if (run == 1)
      loaded.push_back(b.loadScalar(from.buffer, from.at));
    else
      loaded = b.elementsOf(b.loadRun(b.pointerTo(from.buffer, from.at), stored, run));
    if (layout.narrow && !isStoredAsItIs())
      for (Value &each : loaded)
        each = extendToF32(b, b.getLoc(), each, layout.narrow);
    return loaded;
  };
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(unitElement()));
  llvm::append_range(elements,
                     from.inside ? b.guarded(from.inside, SmallVector<Value>(run, zero), load) : load());
}

SmallVector<Value> SharedTile::load(ProductAccess &access, Value start) {
  int64_t run = std::min(layout.run, kUnit);
  SmallVector<Value> units;
  for (int64_t move = 0; move < movesOf(kUnit); ++move) {
    Unit unit = unitOf(move, kUnit, pieceOf());
    SmallVector<Value> elements;
    for (Value piece : unit.pieces)
      for (int64_t i = 0; i < pieceOf(); i += run)
        loadRun(access, start, unit.line, b.add(piece, i), run, elements);
    units.push_back(b.runOf(elements));
  }
  return units;
}

SmallVector<Value> SharedTile::zeros() {
  auto type = VectorType::get({kUnit}, unitElement());
  Value zero = LLVM::ZeroOp::create(b, type);
  return SmallVector<Value>(movesOf(kUnit), zero);
}

SmallVector<Value> SharedTile::takeParts(SmallVectorImpl<Value> &elements, bool isLast) {
  SmallVector<Value> pairs;
  for (size_t i = 0; i < elements.size(); i += 2) {
    pairs.push_back(roundPair(b, elements[i], elements[i + 1]));
    if (isLast)
      continue;
    auto [low, high] = extendPair(b, pairs.back());
    elements[i] = arith::SubFOp::create(b, elements[i], low);
    elements[i + 1] = arith::SubFOp::create(b, elements[i + 1], high);
  }
  return pairs;
}

void SharedTile::store(ValueRange units, Value stage) {
  Value to = placeOf(stage);
  for (auto [move, vector] : llvm::enumerate(units)) {
    Unit unit = unitOf(move, kUnit, pieceOf());
    SmallVector<Value> elements = b.elementsOf(vector);
    for (auto [number, element] : llvm::enumerate(unit.pieces)) {
      Value offset = offsetOf(unit.line, b.div(element, kChunk));
      Value target = b.advance(to, b.add(offset, b.mul(b.rem(element, kChunk), 2)));
      SmallVector<Value> rest(ArrayRef<Value>(elements).slice(number * pieceOf(), pieceOf()));
      if (isStoredAsItIs()) {
        b.storeRun(b.runOf(rest), target);
        continue;
      }
      for (int64_t part = 0; part < parts(); ++part)
        b.storeRun(b.runOf(takeParts(rest, part + 1 == parts())), b.advance(target, part * partBytes()));
    }
  }
}

Value SharedTile::placeOf(Value stage) { return b.advance(place, b.mul(stage, stageBytesOf(plan))); }

void SharedTile::prepareFragments(Value firstOfWarp) {
  Value lane = b.rem(thread, kWarp), low = b.rem(lane, 8);
  Value third = b.rem(b.div(lane, 8), 2), fourth = b.div(lane, 16);
  // Rows of matrices of rows go before their depth, and columns of such of columns after it; transposed the other way.
  bool isLineFirst = (side == Side::row) == layout.isAlongDepth;
  Value line = b.add(low, b.mul(isLineFirst ? third : fourth, 8));
  Value chunk = isLineFirst ? fourth : third;
  if (layout.isAlongDepth)
    line = b.add(line, firstOfWarp);
  else
    chunk = b.add(chunk, b.div(firstOfWarp, kChunk));
  // 16 neighbours are two chunks: the warp's first chunk is a multiple of all of them, so that they are added by xor.
  Value start = b.mul(line, lineBytes());
  Value swapped = arith::XOrIOp::create(b, chunk, swapOf(line));
  int64_t neighbours = layout.isAlongDepth ? plan.tile.depth : plan.tile.warpExtentOf(side);
  for (int64_t i = 0; i < neighbours / 16; ++i) {
    Value at = i == 0 ? swapped : arith::XOrIOp::create(b, swapped, b.index(2 * i)).getResult();
    fragments.push_back(b.add(start, b.mul(at, kChunkBytes)));
  }
}

SmallVector<Value> SharedTile::loadFragment(Value stagePlace, int64_t number, int64_t step, int64_t part) {
  Value offset = fragments[layout.isAlongDepth ? step : number];
  int64_t further = (layout.isAlongDepth ? number : step) * 16 * lineBytes();
  Value from = b.advance(b.advance(stagePlace, offset), further + part * partBytes());
  return loadMatrices(b, from, !layout.isAlongDepth);
}

} // namespace ortc::gpu
