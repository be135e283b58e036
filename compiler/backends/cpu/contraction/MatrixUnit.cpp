// Tiles for the matrix unit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/contraction/MatrixUnit.h"

#include "compiler/backends/cpu/contraction/Microkernel.h"
#include "compiler/backends/cpu/contraction/Packing.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <array>

using namespace mlir;

namespace ortc::cpu {

using namespace emit;

namespace {

constexpr int64_t kLanes = 16;

/// Packs tiles: see SplitSource.
class TilePacker {
public:
  TilePacker(OpBuilder &builder, Location loc, const SplitSource &source)
      : b(builder), loc(loc), index(builder, loc), source(source) {}

  /// The tile whose first line and k are these; `place` is that of its first part among the packed words.
  /// With `isWhole` all of it exists.
  void pack(Value line, Value k, Value packed, Value place, bool isWhole);

private:
  using Vectors = SmallVector<Value>;
  VectorType words() { return VectorType::get({kLanes}, b.getI32Type()); }
  VectorType floats() { return VectorType::get({kLanes}, b.getF32Type()); }
  VectorType loaded() { return isNarrow() ? VectorType::get({kLanes}, b.getIntegerType(16)) : floats(); }
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value splat(int32_t value) {
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(words(), b.getI32IntegerAttr(value)));
  }
  Value load(Value line, Value k, bool isWhole);
  void storeVector(Value first, Value second, Value packed, Value place);
  std::array<Value, kFloatParts> split(Value number);
  Value pair(Value first, Value second);
  bool isNarrow() const { return source.parts == 1; }
  bool loadsLines() const { return source.depthStride == 1; }

  OpBuilder &b;
  Location loc;
  IndexBuilder index;
  const SplitSource &source;
};

/// 16 neighbours in memory from a line and k on; what does not exist is zero.
Value TilePacker::load(Value line, Value k, bool isWhole) {
  Value lineOffset = arith::MulIOp::create(b, loc, line, constant(source.lineStride));
  Value depthOffset = arith::MulIOp::create(b, loc, k, constant(source.depthStride));
  Value at = arith::AddIOp::create(b, loc, arith::AddIOp::create(b, loc, lineOffset, depthOffset),
                                   index.value(source.at));
  if (isWhole) {
    // Short runs far apart: the processor does not foresee those of the next step.
    if (!loadsLines())
      fetchRun(b, loc, source.buffer, index.add(Offset(at), kTileDepth * source.depthStride), kLanes);
    return vector::LoadOp::create(b, loc, loaded(), source.buffer, at);
  }
  // Lanes run along k or along the lines; the other one is there or not.
  Value across = loadsLines() ? line : k, acrossEnd = loadsLines() ? source.lines : source.depth;
  Value along = loadsLines() ? k : line, alongEnd = loadsLines() ? source.depth : source.lines;
  Value left = arith::SubIOp::create(b, loc, alongEnd, along);
  Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, across, acrossEnd);
  Value count = arith::SelectOp::create(b, loc, exists, left, constant(0));
  count = arith::MinSIOp::create(b, loc, count, constant(kLanes)); // fits 32 bits
  Value live = arith::IndexCastOp::create(b, loc, b.getI32Type(), count);
  SmallVector<int32_t> numbers;
  for (int32_t lane = 0; lane < kLanes; ++lane)
    numbers.push_back(lane);
  Value lanes =
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(words(), ArrayRef<int32_t>(numbers)));
  Value mask = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, lanes,
                                     vector::BroadcastOp::create(b, loc, words(), live));
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(loaded()));
  return vector::MaskedLoadOp::create(b, loc, loaded(), source.buffer, at, mask, zero);
}

/// The parts of f32 numbers, each a bf16 number in the upper half of a word. The first two are rounded, so
/// that errors of products that are left out have no sign in common; the last one is what remains, which
/// fits.
std::array<Value, kFloatParts> TilePacker::split(Value number) {
  std::array<Value, kFloatParts> parts;
  for (int64_t part = 0; part < kFloatParts; ++part) {
    Value bits = arith::BitcastOp::create(b, loc, words(), number);
    if (part + 1 < kFloatParts) {
      bits = arith::AddIOp::create(b, loc, bits, splat(0x8000));
      bits = arith::AndIOp::create(b, loc, bits, splat(static_cast<int32_t>(0xffff0000)));
      number = arith::SubFOp::create(b, loc, number, arith::BitcastOp::create(b, loc, floats(), bits));
    }
    parts[part] = bits;
  }
  return parts;
}

/// Words of two bf16 numbers.
Value TilePacker::pair(Value first, Value second) {
  Value low = arith::ExtUIOp::create(b, loc, words(), first),
        high = arith::ExtUIOp::create(b, loc, words(), second);
  return arith::OrIOp::create(b, loc, low, arith::ShLIOp::create(b, loc, high, splat(16)));
}

/// Stores a vector of pairs for each part.
void TilePacker::storeVector(Value first, Value second, Value packed, Value place) {
  if (isNarrow()) {
    vector::StoreOp::create(b, loc, pair(first, second), packed, place);
    return;
  }
  auto low = split(first), high = split(second);
  for (int64_t part = 0; part < kFloatParts; ++part) {
    Value word = arith::ShRUIOp::create(b, loc, low[part], splat(16));
    word = arith::OrIOp::create(b, loc, word, high[part]);
    Value at = arith::AddIOp::create(b, loc, place, constant(part * 2 * kTileWords));
    vector::StoreOp::create(b, loc, word, packed, at);
  }
}

void TilePacker::pack(Value line, Value k, Value packed, Value place, bool isWhole) {
  auto plus = [&](Value value, int64_t more) { return arith::AddIOp::create(b, loc, value, constant(more)); };
  auto storePlace = [&](Value vector) {
    return arith::AddIOp::create(b, loc, place, arith::MulIOp::create(b, loc, vector, constant(kLanes)));
  };
  bool isDirect = loadsLines() != source.isColumns;
  if (isDirect) {
    // Vectors in memory are those of the tile.
    auto loop = scf::ForOp::create(b, loc, constant(0), constant(kTileLines), constant(1));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar();
    Value at = arith::AddIOp::create(b, loc, loadsLines() ? line : k, i);
    Value first = loadsLines() ? load(at, k, isWhole) : load(line, at, isWhole);
    Value second = loadsLines() ? load(at, plus(k, kLanes), isWhole) : load(line, plus(at, kLanes), isWhole);
    storeVector(first, second, packed, storePlace(i));
    return;
  }
  auto loadHalf = [&](int64_t half, int64_t i) {
    return loadsLines() ? load(plus(line, i), plus(k, half * kLanes), isWhole)
                        : load(line, plus(k, half * kLanes + i), isWhole);
  };
  if (isNarrow()) { // words change places as a whole
    Vectors pairs;
    for (int64_t i = 0; i < kLanes; ++i)
      pairs.push_back(pair(loadHalf(0, i), loadHalf(1, i)));
    for (auto [i, word] : llvm::enumerate(emitTranspose(b, loc, pairs))) {
      Value at = storePlace(constant(static_cast<int64_t>(i)));
      vector::StoreOp::create(b, loc, word, packed, at);
    }
    return;
  }
  Vectors halves[2];
  for (int64_t half = 0; half < 2; ++half) {
    for (int64_t i = 0; i < kLanes; ++i)
      halves[half].push_back(loadHalf(half, i));
    halves[half] = emitTranspose(b, loc, halves[half]);
  }
  for (int64_t i = 0; i < kLanes; ++i)
    storeVector(halves[0][i], halves[1][i], packed, storePlace(constant(i)));
}

} // namespace

void emitSplitPanels(OpBuilder &builder, Location loc, const SplitSource &source, Value packed, Value panels,
                     Value steps, int64_t panelWords) {
  auto constant = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
  auto times = [&](Value a, int64_t factor) -> Value {
    return arith::MulIOp::create(builder, loc, a, constant(factor));
  };
  auto plus = [&](Value a, Value b) -> Value { return arith::AddIOp::create(builder, loc, a, b); };
  Value zero = constant(0), one = constant(1);
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Value> at;
  for (Value end : {panels, steps, constant(2)}) {
    auto loop = scf::ForOp::create(builder, loc, zero, end, one);
    builder.setInsertionPointToStart(loop.getBody());
    at.push_back(loop.getInductionVar());
  }
  Value line = plus(times(at[0], kPanelLines), times(at[2], kTileLines));
  Value place =
      plus(plus(times(at[0], panelWords), times(at[1], stepWordsOf(source.parts))), times(at[2], kTileWords));
  Value k = times(at[1], kTileDepth);
  auto fits = [&](Value end, int64_t size, Value all) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, plus(end, constant(size)), all);
  };
  Value isWhole = arith::AndIOp::create(builder, loc, fits(line, kTileLines, source.lines),
                                        fits(k, kTileDepth, source.depth));
  auto branch = scf::IfOp::create(builder, loc, isWhole, /*withElseRegion=*/true);
  for (bool whole : {true, false}) {
    builder.setInsertionPointToStart(whole ? &branch.getThenRegion().front()
                                           : &branch.getElseRegion().front());
    TilePacker(builder, loc, source).pack(line, k, packed, place, whole);
  }
}

} // namespace ortc::cpu
