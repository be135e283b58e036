// The operations between the contractions of attention, on a tile of the scores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/attention/TileValues.h"

#include "dialects/nn/Elementwise.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace ortc::attention {

using nn::TensorBuilder;

void TileValues::begin(std::pair<int64_t, int64_t> leads, Range tileRows, Range tileKeys) {
  shape = {leads.first, leads.second, tileRows.size, tileKeys.size};
  rows = tileRows;
  keys = tileKeys;
  known.clear();
  ++tiles;
}

RankedTensorType TileValues::typeLike(Value value) const {
  return RankedTensorType::get(shape, TensorBuilder::elementOf(value));
}

Value TileValues::makeInput(TensorBuilder &b, const TileInput &input) {
  Value inside = input.value;
  const int64_t rank = TensorBuilder::rankOf(inside);
  for (auto [axis, range] : {std::pair(rank - 2, rows), std::pair(rank - 1, keys)})
    if (TensorBuilder::shapeOf(inside)[axis] != 1)
      inside = b.sliceAxis(inside, axis, range.first, range.size);
  if (input.factors.empty())
    return b.broadcast(inside, shape, {0, 1, 2, 3});
  nn::Shape full = input.factors, where = input.where;
  for (int64_t size : {rows.size, keys.size}) {
    where.push_back(full.size());
    full.push_back(size);
  }
  return b.reshape(b.broadcast(inside, full, where), shape);
}

/// The counter of an iteration is that of all iterations before, its key that of the tile.
Value TileValues::makeRandom(TensorBuilder &b, Value value) {
  auto op = value.getDefiningOp<nn::RandomOp>();
  Value step = b.add(b.mulScalar(op.getStep(), static_cast<double>(iterations)), index);
  auto tileKey = static_cast<uint32_t>(op.getKey() + tiles * 0x9E3779B9);
  auto random = nn::RandomOp::create(b, typeLike(value), step, tileKey);
  known[op.getFirst()] = random.getFirst();
  known[op.getSecond()] = random.getSecond();
  return known[value];
}

Value TileValues::make(TensorBuilder &b, Value value) {
  Operation *op = value.getDefiningOp();
  if (auto inside = inputs.find(value); inside != inputs.end())
    return makeInput(b, inside->second);
  if (Value table = match.tables.lookup(value))
    return get(b, table);
  if (match.random.contains(value))
    return makeRandom(b, value);
  if (op == match.scores)
    return b.dot(query, key, {0}, {0}, {3}, {2}, match.scores.getExact());
  if (isa<nn::BroadcastOp, nn::ReshapeOp>(op))
    return get(b, op->getOperand(0));
  SplatElementsAttr splat;
  if (matchPattern(value, m_Constant(&splat)))
    return arith::ConstantOp::create(b, splat.resizeSplat(typeLike(value)));
  if (auto iota = dyn_cast<nn::IotaOp>(op)) {
    bool isRow = match.values.lookup(value)[iota.getAxis()].kind == Dim::row;
    Value local = b.iota(typeLike(value), isRow ? 2 : 3);
    return b.addScalar(local, static_cast<double>(isRow ? rows.first : keys.first));
  }
  if (isa<nn::SoftmaxOp>(op))
    return b.softmax(get(b, op->getOperand(0)), 3);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(get(b, operand));
  return nn::createElementwise(b, op, operands, shape);
}

Value TileValues::get(TensorBuilder &b, Value value) {
  if (Value there = known.lookup(value))
    return there;
  Value made = make(b, value);
  return known[value] = made;
}

} // namespace ortc::attention
