// Which keys a known mask hides.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/attention/MaskedKeys.h"

#include "compiler/evaluator/Evaluator.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace ortc::attention {

using evaluator::HostTensor;
using nn::TensorBuilder;

/// Scores below this have a weight of zero beside any that is not hidden.
static constexpr double kHidden = -1e30;

/// Whether `value` follows from constants alone.
static bool isKnown(Value value) {
  Operation *op = value.getDefiningOp();
  return op && !isa<nn::RandomOp>(op) && (isa<arith::ConstantOp>(op) || evaluator::Evaluator::isKnown(op)) &&
         llvm::all_of(op->getOperands(), isKnown);
}

/// Elements of a value that is known.
static FailureOr<HostTensor> evaluate(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return HostTensor::fromAttribute(cast<ElementsAttr>(constant.getValue()));
  SmallVector<HostTensor> operands;
  SmallVector<const HostTensor *> pointers;
  for (Value operand : op->getOperands()) {
    auto tensor = evaluate(operand);
    if (failed(tensor))
      return failure();
    operands.push_back(std::move(*tensor));
  }
  for (const HostTensor &operand : operands)
    pointers.push_back(&operand);
  auto results = evaluator::Evaluator().evaluate(op, pointers);
  if (failed(results))
    return failure();
  return std::move((*results)[cast<OpResult>(value).getResultNumber()]);
}

namespace {

/// What hides a score: a bias that is added to it, or a condition of a choice.
struct Mask {
  Value value;
  bool isBias = true, hidesWhen = false; ///< of a condition
};

} // namespace

static bool isHiddenConstant(Value value) {
  SplatElementsAttr splat;
  return matchPattern(value, m_Constant(&splat)) && isa<FloatType>(splat.getElementType()) &&
         splat.getSplatValue<APFloat>().convertToDouble() <= kHidden;
}

/// The masks right in front of the softmax.
static SmallVector<Mask> masksOf(Match &match) {
  SmallVector<Mask> masks;
  Value scores = match.softmax.getInput();
  for (Operation *op = scores.getDefiningOp(); op; op = scores.getDefiningOp()) {
    if (isa<nn::ReshapeOp>(op) && match.values.contains(op->getOperand(0))) {
      scores = op->getOperand(0);
    } else if (auto add = dyn_cast<arith::AddFOp>(op)) {
      bool isLeft = isKnown(add.getLhs());
      if (!isLeft && !isKnown(add.getRhs()))
        break;
      masks.push_back({isLeft ? add.getLhs() : add.getRhs()});
      scores = isLeft ? add.getRhs() : add.getLhs();
    } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
      bool hidesWhen = isHiddenConstant(select.getTrueValue());
      if (!isKnown(select.getCondition()) || hidesWhen == isHiddenConstant(select.getFalseValue()))
        break;
      masks.push_back({select.getCondition(), false, hidesWhen});
      scores = hidesWhen ? select.getFalseValue() : select.getTrueValue();
    } else {
      break;
    }
  }
  return masks;
}

/// Whether all that a mask consists of is the same for all heads.
static bool isForAllHeads(Match &match, Value value) {
  if (Value table = match.tables.lookup(value))
    value = table;
  if (match.inputs.contains(value))
    return !hasKind(match.values.lookup(value), Dim::lead);
  Operation *op = value.getDefiningOp();
  return llvm::all_of(op->getOperands(), [&](Value operand) { return isForAllHeads(match, operand); });
}

/// Clears what `mask` hides in `sees`, [rows, keys].
static LogicalResult apply(Match &match, const Mask &mask, Range rows, std::vector<bool> &sees) {
  if (!isForAllHeads(match, mask.value))
    return failure();
  Block scratch;
  TensorBuilder b(mask.value.getLoc(), mask.value.getContext());
  b.setInsertionPointToEnd(&scratch);
  TileValues tile(match);
  for (auto &[value, dims] : match.inputs)
    if (isKnown(value) && !hasKind(dims, Dim::lead)) {
      bool hasRows = hasKind(dims, Dim::row), hasKeys = hasKind(dims, Dim::key);
      tile.setInput(value, b.reshape(value, {1, 1, hasRows ? match.rows : 1, hasKeys ? match.keys : 1}));
    }
  tile.begin({1, 1}, rows, {0, match.keys});
  auto tensor = evaluate(tile.get(b, mask.value));
  scratch.dropAllReferences();
  scratch.clear();
  if (failed(tensor))
    return failure();
  for (int64_t i = 0; i < tensor->size(); ++i) {
    bool hides = mask.isBias ? tensor->getFloat(i) <= kHidden : (tensor->getInt(i) != 0) == mask.hidesWhen;
    if (hides)
      sees[i] = false;
  }
  return success();
}

/// From the first to the last key that any row sees; all where a row sees none.
static Range hullOf(const std::vector<bool> &sees, int64_t keys) {
  int64_t first = keys, last = -1;
  for (size_t row = 0; row < sees.size(); row += keys) {
    auto begin = sees.begin() + static_cast<int64_t>(row), end = begin + keys;
    auto at = std::find(begin, end, true);
    if (at == end)
      return {0, keys};
    first = std::min<int64_t>(first, at - begin);
    while (!*--end) {
    }
    last = std::max<int64_t>(last, end - begin);
  }
  return {first, last + 1 - first};
}

Range MaskedKeys::find(Match &match, Range rows) {
  SmallVector<Mask> masks = masksOf(match);
  if (masks.empty())
    return {0, match.keys};
  Key key{masks.front().value.getAsOpaquePointer(), rows.first, rows.size};
  auto [at, isNew] = found.try_emplace(key, Range{0, match.keys});
  if (!isNew && masks.size() == 1)
    return at->second;
  std::vector<bool> sees(rows.size * match.keys, true);
  for (const Mask &mask : masks)
    if (failed(apply(match, mask, rows, sees)))
      return {0, match.keys};
  Range range = hullOf(sees, match.keys);
  if (masks.size() == 1)
    at->second = range;
  return range;
}

} // namespace ortc::attention
