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

Value SharedTile::swizzleOf(Value line) {
  bool isShort = lineBytes() < kLineBytes; // two lines lie in 128 bytes
  return isShort ? b.rem(b.div(line, 2), lineBytes() / chunkBytes()) : b.rem(line, kLineBytes / chunkBytes());
}

int64_t SharedTile::swizzleOf(int64_t line) const {
  return (lineBytes() < kLineBytes ? line / 2 : line) % swizzledChunks();
}

Value SharedTile::offsetOf(Value line, Value chunk) {
  Value swizzled = arith::XOrIOp::create(b, chunk, swizzleOf(line));
  if (!plan.tile.isGrouped)
    return b.add(b.mul(line, lineBytes()), b.mul(swizzled, chunkBytes()));
  const int64_t chunks = kLineBytes / chunkBytes();
  Value inPanel = b.add(b.mul(line, kLineBytes), b.mul(b.rem(swizzled, chunks), chunkBytes()));
  return b.add(inPanel, b.mul(b.div(swizzled, chunks), panelBytes()));
}

Value SharedTile::targetOf(Value stagePlace, Value line, int64_t further, Value element) {
  // Chunks of lines that are a multiple of this apart are swizzled alike.
  const int64_t period = (lineBytes() < kLineBytes ? 2 * lineBytes() : kLineBytes) / chunkBytes();
  int64_t bytes = 0;
  if (further % period == 0)
    bytes = further * (plan.tile.isGrouped ? kLineBytes : lineBytes());
  else
    line = b.add(line, further);
  Value inChunk = b.mul(b.rem(element, chunk()), numberBytes());
  Value target = b.advance(stagePlace, b.add(offsetOf(line, b.div(element, chunk())), inChunk));
  return b.advance(target, bytes);
}

int64_t SharedTile::movesOf(int64_t elements) const {
  int64_t moves = extent * plan.tile.depth / elements;
  assert(moves % plan.threads() == 0 && "every thread moves as much");
  return moves / plan.threads();
}

SharedTile::Origin SharedTile::originOf(int64_t elements, int64_t piece) {
  int64_t inLine = lineElements() / elements;
  assert(plan.threads() % inLine == 0 && "a move is of whole lines");
  return {b.div(thread, inLine), b.mul(b.rem(thread, inLine), piece)};
}

SharedTile::Unit SharedTile::unitOf(int64_t move, int64_t elements, int64_t piece) const {
  int64_t inLine = lineElements() / elements;
  Unit unit{move * (plan.threads() / inLine), {}};
  for (int64_t i = 0; i < elements / piece; ++i)
    unit.pieces.push_back(i * inLine * piece);
  return unit;
}

int64_t SharedTile::blockSteps() const {
  int64_t steps = kUnit;
  while (movesOf(kUnit) % steps != 0)
    steps /= 2;
  return steps;
}

SharedTile::Origin SharedTile::originOfBlocks() {
  int64_t steps = blockSteps(), across = plan.tile.depth / steps;
  return {b.mul(b.rem(thread, across), steps), b.mul(b.div(thread, across), kUnit)};
}

int64_t SharedTile::elementOfBlock(int64_t number) const {
  return number * (plan.threads() / (plan.tile.depth / blockSteps())) * kUnit;
}

ElementPlace SharedTile::locate(const Walk &walk, int64_t line, int64_t element) {
  Value atLine = b.add(walk.origin.line, line), atElement = b.add(walk.origin.element, element);
  Value index = b.add(firstIndex, layout.isAlongDepth ? atLine : atElement);
  Value step = layout.isAlongDepth ? atElement : atLine;
  return walk.access.locate(b, side, index, {walk.start, step, plan.tile.depth});
}

Value SharedTile::limit(const Walk &walk, int64_t line, int64_t element, Value inside) {
  int64_t size = side == Side::row ? shape.rows : shape.columns;
  Value atLine = b.add(walk.origin.line, line), atElement = b.add(walk.origin.element, element);
  if (size % extent != 0) {
    Value index = b.add(firstIndex, layout.isAlongDepth ? atLine : atElement);
    inside = b.both(inside, b.less(index, size));
  }
  if (shape.depth % plan.tile.depth != 0) { // all parts except the last are whole stages
    Value step = b.add(walk.start, layout.isAlongDepth ? atElement : atLine);
    inside = b.both(inside, b.less(step, shape.depth));
  }
  return inside;
}

/// Distances within a tile are bytes of 32 bits.
std::optional<ElementStrides> SharedTile::stridesOf(const ProductAccess &access) const {
  auto strides = access.stridesOf(side, plan.tile.depth);
  if (!strides)
    return std::nullopt;
  int64_t farthest = extent * std::abs(strides->index) + plan.tile.depth * std::abs(strides->step);
  return farthest < int64_t(1) << 28 ? strides : std::nullopt;
}

SharedTile::Walk SharedTile::walkFrom(ProductAccess &access, Value start, const Origin &origin) {
  Walk walk{access, start, origin};
  if ((walk.strides = stridesOf(access))) {
    ElementPlace first = locate(walk, 0, 0);
    walk.pointer = b.pointerTo(first.buffer, first.at), walk.inside = first.inside;
    walk.stored = cast<MemRefType>(first.buffer.getType()).getElementType();
  }
  return walk;
}

SharedTile::Walk SharedTile::walkOfCopies(ProductAccess &access, Value start, const Origin &origin) {
  Walk walk{access, start, origin};
  const int64_t size = side == Side::row ? shape.rows : shape.columns;
  const bool haveOneCondition = layout.isAlongDepth ? size % extent == 0 : shape.depth % plan.tile.depth == 0;
  if (haveOneCondition && (walk.strides = stridesOf(access))) {
    ElementPlace first = locate(walk, 0, 0);
    walk.inside = limit(walk, 0, 0, first.inside);
    Value at = walk.inside ? b.choose(walk.inside, first.at, b.index(0)) : first.at;
    walk.pointer = b.pointerTo(first.buffer, at);
    walk.stored = cast<MemRefType>(first.buffer.getType()).getElementType();
  }
  return walk;
}

SharedTile::Place SharedTile::placeIn(const Walk &walk, int64_t line, int64_t element) {
  if (!walk.strides) {
    ElementPlace found = locate(walk, line, element);
    return {b.pointerTo(found.buffer, found.at), limit(walk, line, element, found.inside),
            cast<MemRefType>(found.buffer.getType()).getElementType()};
  }
  auto [index, step] = *walk.strides;
  int64_t further = layout.isAlongDepth ? line * index + element * step : line * step + element * index;
  int64_t bytes = walk.stored.getIntOrFloatBitWidth() / 8;
  return {b.advance(walk.pointer, further * bytes), limit(walk, line, element, walk.inside), walk.stored};
}

void SharedTile::copy(ProductAccess &access, Value start, Value stage) {
  Value to = placeOf(stage);
  Origin origin = originOf(chunk(), chunk());
  Walk walk = walkOfCopies(access, start, origin);
  for (int64_t move = 0; move < movesOf(chunk()); ++move) {
    Unit unit = unitOf(move, chunk(), chunk());
    Value target = targetOf(to, origin.line, unit.line, origin.element);
    if (walk.strides) {
      copyAsync(b, target, placeIn(walk, unit.line, 0).pointer, walk.inside);
      continue;
    }
    ElementPlace from = locate(walk, unit.line, 0);
    Value inside = limit(walk, unit.line, 0, from.inside);
    Value at = inside ? b.choose(inside, from.at, b.index(0)) : from.at;
    copyAsync(b, target, b.pointerTo(from.buffer, at), inside);
  }
}

void copyStage(ThreadBuilder &b, ProductAccess &access, IndexRange range, Value stage, SharedTile &rows,
               SharedTile &columns) {
  b.guarded(b.less(range.begin, range.end), [&] {
    rows.copy(access, range.begin, stage);
    columns.copy(access, range.begin, stage);
  });
  closeCopies(b);
}

/// Whether parts are the stored numbers themselves.
bool SharedTile::isStoredAsItIs() const {
  if (!layout.narrow || parts() != 1 || plan.format.number == MatrixNumber::f32)
    return false;
  return plan.format.number == MatrixNumber::f16 ? layout.narrow.isF16() : layout.narrow.isBF16();
}

Type SharedTile::unitElement() { return isStoredAsItIs() ? Type(b.getI16Type()) : Type(b.getF32Type()); }

void SharedTile::loadRun(const Walk &walk, int64_t line, int64_t element, int64_t run,
                         SmallVectorImpl<Value> &elements) {
  Place from = placeIn(walk, line, element);
  auto load = [&]() -> SmallVector<Value> {
    SmallVector<Value> loaded;
    if (run == 1)
      loaded.push_back(b.loadFrom(from.pointer, from.stored));
    else
      loaded = b.elementsOf(b.loadRun(from.pointer, from.stored, run));
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
  Walk walk = walkFrom(access, start, isTransposed() ? originOfBlocks() : originOf(kUnit, pieceOf()));
  SmallVector<Value> units;
  for (int64_t move = 0; move < movesOf(kUnit); ++move) {
    SmallVector<Value> elements;
    if (isTransposed()) {
      for (int64_t i = 0; i < kUnit; i += run)
        loadRun(walk, move % blockSteps(), elementOfBlock(move / blockSteps()) + i, run, elements);
      units.push_back(b.runOf(elements));
      continue;
    }
    Unit unit = unitOf(move, kUnit, pieceOf());
    for (int64_t piece : unit.pieces)
      for (int64_t i = 0; i < pieceOf(); i += run)
        loadRun(walk, unit.line, piece + i, run, elements);
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
static std::pair<Value, Value> extendPair(ThreadBuilder &b, Value pair) {
  Value low = arith::ShLIOp::create(b, pair, b.constant32(16));
  Value high = arith::AndIOp::create(b, pair, b.constant32(-65536));
  return {arith::BitcastOp::create(b, b.getF32Type(), low),
          arith::BitcastOp::create(b, b.getF32Type(), high)};
}

Value takeParts(ThreadBuilder &b, const MatrixCore &core, Value &low, Value &high, bool areLast) {
  Value pair = core.roundPair(b, low, high);
  if (!areLast) {
    auto [lowPart, highPart] = extendPair(b, pair);
    low = arith::SubFOp::create(b, low, lowPart);
    high = arith::SubFOp::create(b, high, highPart);
  }
  return pair;
}

void SharedTile::storeRun(Value target, SmallVector<Value> rest) {
  if (plan.format.number == MatrixNumber::f32)
    for (Value &each : rest)
      each = plan.core->roundFull(b, each);
  if (isStoredAsItIs() || plan.format.number == MatrixNumber::f32) {
    b.storeRun(b.runOf(rest), target);
    return;
  }
  for (int64_t part = 0; part < parts(); ++part) {
    SmallVector<Value> pairs;
    for (size_t i = 0; i < rest.size(); i += 2)
      pairs.push_back(takeParts(b, *plan.core, rest[i], rest[i + 1], part + 1 == parts()));
    b.storeRun(b.runOf(pairs), b.advance(target, part * partBytes()));
  }
}

void SharedTile::storeTransposed(ValueRange units, Value stagePlace) {
  int64_t steps = blockSteps();
  Origin origin = originOfBlocks();
  for (int64_t number = 0; number < static_cast<int64_t>(units.size()) / steps; ++number) {
    SmallVector<SmallVector<Value>> ofStep;
    for (Value unit : units.slice(number * steps, steps))
      ofStep.push_back(b.elementsOf(unit));
    for (int64_t i = 0; i < kUnit; ++i) {
      SmallVector<Value> neighbours;
      for (ArrayRef<Value> elements : ofStep)
        neighbours.push_back(elements[i]);
      Value line = b.add(origin.element, i); // of the tile
      storeRun(targetOf(stagePlace, line, elementOfBlock(number), origin.line), std::move(neighbours));
    }
  }
}

void SharedTile::store(ValueRange units, Value stage) {
  Value to = placeOf(stage);
  if (isTransposed())
    return storeTransposed(units, to);
  Origin origin = originOf(kUnit, pieceOf());
  for (auto [move, vector] : llvm::enumerate(units)) {
    Unit unit = unitOf(move, kUnit, pieceOf());
    SmallVector<Value> elements = b.elementsOf(vector);
    for (auto [number, element] : llvm::enumerate(unit.pieces))
      storeRun(targetOf(to, origin.line, unit.line, b.add(origin.element, element)),
               SmallVector<Value>(ArrayRef<Value>(elements).slice(number * pieceOf(), pieceOf())));
  }
}

Value SharedTile::placeOf(Value stage) { return b.advance(place, stage); }

Value SharedTile::nextStage(ThreadBuilder &b, const MatrixPlan &plan, Value stage) {
  if (plan.tile.stages == 1)
    return stage;
  Value following = b.add(stage, plan.stageBytes()), end = b.index(plan.tile.stages * plan.stageBytes());
  Value isEnd = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, following, end);
  return b.choose(isEnd, b.index(0), following);
}

void SharedTile::prepareFragments(Value firstOfWarp) {
  if (isReadByNumber())
    return prepareNumbers(firstOfWarp);
  const MatrixCore &core = *plan.core;
  auto [line, lineChunk] = core.placeOf(b, b.rem(thread, core.lanes), side, areLinesAlongDepth());
  if (areLinesAlongDepth())
    line = b.add(line, firstOfWarp);
  else
    lineChunk = b.add(lineChunk, b.div(firstOfWarp, chunk()));
  // The warp's first chunk is a multiple of all chunks of a fragment, so that they are added by xor.
  Value start = b.mul(line, lineBytes());
  Value swizzled = arith::XOrIOp::create(b, lineChunk, swizzleOf(line));
  int64_t neighbours = areLinesAlongDepth() ? plan.tile.depth : plan.tile.warpExtentOf(side);
  for (int64_t i = 0; i < neighbours / kFragment; ++i)
    for (int64_t read = 0; read < core.reads; ++read) {
      int64_t further = kFragment / chunk() * i + read;
      Value at = further == 0 ? swizzled : arith::XOrIOp::create(b, swizzled, b.index(further)).getResult();
      fragments.push_back(b.add(start, b.mul(at, chunkBytes())));
    }
}

SmallVector<Value> SharedTile::loadFragment(Value stagePlace, int64_t number, int64_t step, int64_t part) {
  if (isReadByNumber())
    return loadNumbers(stagePlace, number, step, part);
  const MatrixCore &core = *plan.core;
  int64_t further = (areLinesAlongDepth() ? number : step) * kFragment * lineBytes();
  SmallVector<Value> pointers;
  for (int64_t read = 0; read < core.reads; ++read) {
    Value offset = fragments[(areLinesAlongDepth() ? step : number) * core.reads + read];
    pointers.push_back(b.advance(b.advance(stagePlace, offset), further + part * partBytes()));
  }
  return core.load(b, plan.format.number, pointers, areLinesAlongDepth());
}

/// A lane's first step is a multiple of its steps, and a warp's first number one of what a line's swizzle moves: so
/// swizzles of what a lane does not change are added by xor.
void SharedTile::prepareNumbers(Value firstOfWarp) {
  auto [number, depthChunk] = plan.core->placeOf(b, b.rem(thread, plan.core->lanes), side, true);
  Value line = b.mul(depthChunk, chunk());
  Value start = b.add(b.mul(line, lineBytes()), b.mul(firstOfWarp, numberBytes()));
  Value inLine = arith::XOrIOp::create(b, b.mul(number, numberBytes()), b.mul(swizzleOf(line), chunkBytes()));
  for (int64_t i = 0; i < swizzledChunks(); ++i) {
    Value at = i == 0 ? inLine : arith::XOrIOp::create(b, inLine, b.index(i * chunkBytes())).getResult();
    fragments.push_back(b.add(start, at));
  }
}

SmallVector<Value> SharedTile::loadNumbers(Value stagePlace, int64_t number, int64_t step, int64_t part) {
  const MatrixCore &core = *plan.core;
  const int64_t inLine = number * kFragment * numberBytes(), run = swizzledChunks() * chunkBytes();
  SmallVector<Value> pointers;
  for (int64_t i = 0; i < core.reads * chunk(); ++i) {
    Value offset = fragments[swizzleOf(i) ^ (inLine % run / chunkBytes())];
    int64_t further = inLine / run * run + (step * kFragment + i) * lineBytes() + part * partBytes();
    pointers.push_back(b.advance(b.advance(stagePlace, offset), further));
  }
  return core.load(b, plan.format.number, pointers, /*isAlongDepth=*/false);
}

} // namespace ortc::gpu
