// One side of a product's tile in shared memory, as the numbers that a core multiplies.
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
  int64_t bytes = ortc::gpu::bytesOf(plan.format.number) * plan.format.partsOf(side);
  return plan.tile.extentOf(side) * plan.tile.depth * bytes;
}

Value SharedTile::swapOf(Value line) {
  bool isShort = lineBytes() < kLineBytes; // two lines lie in 128 bytes
  return isShort ? b.rem(b.div(line, 2), lineBytes() / chunkBytes()) : b.rem(line, kLineBytes / chunkBytes());
}

int64_t SharedTile::swapOf(int64_t line) const {
  return (lineBytes() < kLineBytes ? line / 2 : line) % swapped();
}

Value SharedTile::offsetOf(Value line, Value chunk) {
  Value swapped = arith::XOrIOp::create(b, chunk, swapOf(line));
  if (!plan.tile.isGrouped)
    return b.add(b.mul(line, lineBytes()), b.mul(swapped, chunkBytes()));
  const int64_t chunks = kLineBytes / chunkBytes();
  Value inPanel = b.add(b.mul(line, kLineBytes), b.mul(b.rem(swapped, chunks), chunkBytes()));
  return b.add(inPanel, b.mul(b.div(swapped, chunks), panelBytes()));
}

int64_t SharedTile::movesOf(int64_t elements) const {
  int64_t moves = extent * plan.tile.depth / elements;
  assert(moves % plan.threads() == 0 && "every thread moves as much");
  return moves / plan.threads();
}

SharedTile::Unit SharedTile::unitOf(int64_t move, int64_t elements, int64_t piece) {
  int64_t inLine = lineElements() / elements, threads = plan.threads();
  assert(threads % inLine == 0 && "a move is of whole lines");
  Unit unit{b.add(b.div(thread, inLine), move * (threads / inLine)), {}};
  Value first = b.mul(b.rem(thread, inLine), piece);
  for (int64_t i = 0; i < elements / piece; ++i)
    unit.pieces.push_back(b.add(first, i * inLine * piece));
  return unit;
}

int64_t SharedTile::blockSteps() const {
  int64_t steps = kUnit;
  while (movesOf(kUnit) % steps != 0)
    steps /= 2;
  return steps;
}

SharedTile::TurnedBlock SharedTile::blockOf(int64_t number) {
  int64_t steps = blockSteps(), across = plan.tile.depth / steps;
  Value block = b.add(b.div(thread, across), number * (plan.threads() / across));
  return {b.mul(b.rem(thread, across), steps), b.mul(block, kUnit)};
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
  for (int64_t move = 0; move < movesOf(chunk()); ++move) {
    Unit unit = unitOf(move, chunk(), chunk());
    ElementPlace from = locate(access, start, unit.line, unit.pieces[0]);
    // Where nothing is copied the address still has to be one.
    Value at =
        from.inside ? arith::SelectOp::create(b, from.inside, from.at, b.index(0)).getResult() : from.at;
    Value target = b.advance(to, offsetOf(unit.line, b.div(unit.pieces[0], chunk())));
    copyAsync(b, target, b.pointerTo(from.buffer, at), from.inside);
  }
}

/// Whether parts are the stored numbers themselves.
bool SharedTile::isStoredAsItIs() const {
  if (!layout.narrow || parts() != 1 || plan.format.number == MatrixNumber::f32)
    return false;
  return plan.format.number == MatrixNumber::f16 ? layout.narrow.isF16() : layout.narrow.isBF16();
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
    SmallVector<Value> elements;
    if (isTurned()) {
      TurnedBlock block = blockOf(move / blockSteps());
      for (int64_t i = 0; i < kUnit; i += run)
        loadRun(access, start, b.add(block.step, move % blockSteps()), b.add(block.element, i), run,
                elements);
      units.push_back(b.runOf(elements));
      continue;
    }
    Unit unit = unitOf(move, kUnit, pieceOf());
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

/// The two bf16 numbers of an i32 as f32.
std::pair<Value, Value> extendPair(ThreadBuilder &b, Value pair) {
  Value low = arith::ShLIOp::create(b, pair, b.constant32(16));
  Value high = arith::AndIOp::create(b, pair, b.constant32(-65536));
  return {arith::BitcastOp::create(b, b.getF32Type(), low),
          arith::BitcastOp::create(b, b.getF32Type(), high)};
}

SmallVector<Value> SharedTile::takeParts(SmallVectorImpl<Value> &elements, bool isLast) {
  SmallVector<Value> pairs;
  for (size_t i = 0; i < elements.size(); i += 2) {
    pairs.push_back(plan.core->roundPair(b, elements[i], elements[i + 1]));
    if (isLast)
      continue;
    auto [low, high] = extendPair(b, pairs.back());
    elements[i] = arith::SubFOp::create(b, elements[i], low);
    elements[i + 1] = arith::SubFOp::create(b, elements[i + 1], high);
  }
  return pairs;
}

void SharedTile::storeRun(Value stagePlace, Value line, Value element, SmallVector<Value> rest) {
  Value offset = offsetOf(line, b.div(element, chunk()));
  Value target = b.advance(stagePlace, b.add(offset, b.mul(b.rem(element, chunk()), numberBytes())));
  if (plan.format.number == MatrixNumber::f32)
    for (Value &each : rest)
      each = plan.core->roundFull(b, each);
  if (isStoredAsItIs() || plan.format.number == MatrixNumber::f32) {
    b.storeRun(b.runOf(rest), target);
    return;
  }
  for (int64_t part = 0; part < parts(); ++part)
    b.storeRun(b.runOf(takeParts(rest, part + 1 == parts())), b.advance(target, part * partBytes()));
}

void SharedTile::storeTurned(ValueRange units, Value stagePlace) {
  int64_t steps = blockSteps();
  for (int64_t number = 0; number < static_cast<int64_t>(units.size()) / steps; ++number) {
    TurnedBlock block = blockOf(number);
    SmallVector<SmallVector<Value>> ofStep;
    for (Value unit : units.slice(number * steps, steps))
      ofStep.push_back(b.elementsOf(unit));
    for (int64_t i = 0; i < kUnit; ++i) {
      SmallVector<Value> neighbours;
      for (ArrayRef<Value> elements : ofStep)
        neighbours.push_back(elements[i]);
      storeRun(stagePlace, b.add(block.element, i), block.step, std::move(neighbours));
    }
  }
}

void SharedTile::store(ValueRange units, Value stage) {
  Value to = placeOf(stage);
  if (isTurned())
    return storeTurned(units, to);
  for (auto [move, vector] : llvm::enumerate(units)) {
    Unit unit = unitOf(move, kUnit, pieceOf());
    SmallVector<Value> elements = b.elementsOf(vector);
    for (auto [number, element] : llvm::enumerate(unit.pieces))
      storeRun(to, unit.line, element,
               SmallVector<Value>(ArrayRef<Value>(elements).slice(number * pieceOf(), pieceOf())));
  }
}

Value SharedTile::placeOf(Value stage) { return b.advance(place, b.mul(stage, stageBytesOf(plan))); }

void SharedTile::prepareFragments(Value firstOfWarp) {
  if (isReadByNumber())
    return prepareNumbers(firstOfWarp);
  const MatrixCore &core = *plan.core;
  auto [line, lineChunk] = core.placeOf(b, b.rem(thread, core.lanes), side, isAlongDepth());
  if (isAlongDepth())
    line = b.add(line, firstOfWarp);
  else
    lineChunk = b.add(lineChunk, b.div(firstOfWarp, chunk()));
  // The warp's first chunk is a multiple of all chunks of a fragment, so that they are added by xor.
  Value start = b.mul(line, lineBytes());
  Value swapped = arith::XOrIOp::create(b, lineChunk, swapOf(line));
  int64_t neighbours = isAlongDepth() ? plan.tile.depth : plan.tile.warpExtentOf(side);
  for (int64_t i = 0; i < neighbours / kFragment; ++i)
    for (int64_t read = 0; read < core.reads; ++read) {
      int64_t further = kFragment / chunk() * i + read;
      Value at = further == 0 ? swapped : arith::XOrIOp::create(b, swapped, b.index(further)).getResult();
      fragments.push_back(b.add(start, b.mul(at, chunkBytes())));
    }
}

SmallVector<Value> SharedTile::loadFragment(Value stagePlace, int64_t number, int64_t step, int64_t part) {
  if (isReadByNumber())
    return loadNumbers(stagePlace, number, step, part);
  const MatrixCore &core = *plan.core;
  int64_t further = (isAlongDepth() ? number : step) * kFragment * lineBytes();
  SmallVector<Value> pointers;
  for (int64_t read = 0; read < core.reads; ++read) {
    Value offset = fragments[(isAlongDepth() ? step : number) * core.reads + read];
    pointers.push_back(b.advance(b.advance(stagePlace, offset), further + part * partBytes()));
  }
  return core.load(b, plan.format.number, pointers, isAlongDepth());
}

/// A lane's first step is a multiple of its steps, and a warp's first number one of what a line's swap moves: so swaps
/// of what a lane does not change are added by xor.
void SharedTile::prepareNumbers(Value firstOfWarp) {
  auto [number, depthChunk] = plan.core->placeOf(b, b.rem(thread, plan.core->lanes), side, true);
  Value line = b.mul(depthChunk, chunk());
  Value start = b.add(b.mul(line, lineBytes()), b.mul(firstOfWarp, numberBytes()));
  Value inLine = arith::XOrIOp::create(b, b.mul(number, numberBytes()), b.mul(swapOf(line), chunkBytes()));
  for (int64_t i = 0; i < swapped(); ++i) {
    Value at = i == 0 ? inLine : arith::XOrIOp::create(b, inLine, b.index(i * chunkBytes())).getResult();
    fragments.push_back(b.add(start, at));
  }
}

SmallVector<Value> SharedTile::loadNumbers(Value stagePlace, int64_t number, int64_t step, int64_t part) {
  const MatrixCore &core = *plan.core;
  const int64_t inLine = number * kFragment * numberBytes(), run = swapped() * chunkBytes();
  SmallVector<Value> pointers;
  for (int64_t i = 0; i < core.reads * chunk(); ++i) {
    Value offset = fragments[swapOf(i) ^ (inLine % run / chunkBytes())];
    int64_t further = inLine / run * run + (step * kFragment + i) * lineBytes() + part * partBytes();
    pointers.push_back(b.advance(b.advance(stagePlace, offset), further));
  }
  return core.load(b, plan.format.number, pointers, /*isAlongDepth=*/false);
}

} // namespace ortc::gpu
