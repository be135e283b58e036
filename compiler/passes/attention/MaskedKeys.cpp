// Which keys a known mask hides.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/attention/MaskedKeys.h"

#include "compiler/evaluator/Evaluator.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ortc::attention {

using evaluator::HostTensor;
using nn::TensorBuilder;

/// Scores below this have a weight of zero beside any that is not hidden.
static constexpr double kHidden = -1e30;

/// Whether `value` follows from constants alone. `known` is what has been asked before.
static bool isKnown(Value value, llvm::DenseMap<Value, bool> &known) {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  bool is = op && !isa<nn::RandomOp>(op) && op->getNumRegions() == 0 &&
            (isa<arith::ConstantOp>(op) || evaluator::Evaluator::isKnown(op)) &&
            llvm::all_of(op->getOperands(), [&](Value operand) { return isKnown(operand, known); });
  return known[value] = is;
}

using Tensors = llvm::DenseMap<Value, HostTensor>;

/// Computes the elements of a value that is known, and of what it follows from.
static LogicalResult evaluate(Value value, Tensors &tensors) {
  if (tensors.contains(value))
    return success();
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto tensor = HostTensor::fromAttribute(cast<ElementsAttr>(constant.getValue()));
    if (succeeded(tensor))
      tensors[value] = std::move(*tensor);
    return tensor;
  }
  SmallVector<const HostTensor *> operands;
  for (Value operand : op->getOperands())
    if (failed(evaluate(operand, tensors)))
      return failure();
  for (Value operand : op->getOperands())
    operands.push_back(&tensors[operand]);
  auto results = evaluator::Evaluator().evaluate(op, operands);
  if (failed(results))
    return failure();
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), *results))
    tensors[result] = std::move(tensor);
  return success();
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
  llvm::DenseMap<Value, bool> known{{match.scores.getResult(), false}};
  Value scores = match.softmax.getInput();
  for (Operation *op = scores.getDefiningOp(); op; op = scores.getDefiningOp()) {
    if (isa<nn::ReshapeOp>(op) && match.values.contains(op->getOperand(0))) {
      scores = op->getOperand(0);
    } else if (auto add = dyn_cast<arith::AddFOp>(op)) {
      bool isLeft = isKnown(add.getLhs(), known);
      if (!isLeft && !isKnown(add.getRhs(), known))
        break;
      masks.push_back({isLeft ? add.getLhs() : add.getRhs()});
      scores = isLeft ? add.getRhs() : add.getLhs();
    } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
      bool hidesWhen = isHiddenConstant(select.getTrueValue());
      if (!isKnown(select.getCondition(), known) || hidesWhen == isHiddenConstant(select.getFalseValue()))
        break;
      masks.push_back({select.getCondition(), false, hidesWhen});
      scores = hidesWhen ? select.getFalseValue() : select.getTrueValue();
    } else {
      break;
    }
  }
  return masks;
}

/// The inputs of the match that a mask consists of.
static llvm::SetVector<Value> inputsOf(Match &match, Value mask) {
  llvm::SetVector<Value> reached, inputs;
  reached.insert(mask);
  for (unsigned i = 0; i < reached.size(); ++i) {
    Value value = reached[i];
    if (Value table = match.tables.lookup(value))
      value = table;
    if (match.inputs.contains(value))
      inputs.insert(value);
    else
      reached.insert(value.getDefiningOp()->operand_begin(), value.getDefiningOp()->operand_end());
  }
  return inputs;
}

/// Clears what `mask` hides in `sees`, [rows, keys].
static LogicalResult apply(Match &match, const Mask &mask, Range rows, std::vector<bool> &sees) {
  Block scratch;
  TensorBuilder b(mask.value.getLoc(), mask.value.getContext());
  b.setInsertionPointToEnd(&scratch);
  TileValues tile(match);
  for (Value value : inputsOf(match, mask.value)) {
    Dims dims = match.values.lookup(value);
    if (hasKind(dims, Dim::lead))
      return failure(); // it differs by head
    bool hasRows = hasKind(dims, Dim::row), hasKeys = hasKind(dims, Dim::key);
    tile.setInput(value, {b.reshape(value, {1, 1, hasRows ? match.rows : 1, hasKeys ? match.keys : 1})});
  }
  tile.begin({1, 1}, rows, {0, match.keys});
  Value whole = tile.get(b, mask.value);
  Tensors tensors;
  LogicalResult evaluated = evaluate(whole, tensors);
  HostTensor hidden = std::move(tensors[whole]);
  scratch.dropAllReferences();
  scratch.clear();
  if (failed(evaluated))
    return failure();
  for (int64_t i = 0; i < hidden.size(); ++i) {
    bool hides = mask.isBias ? hidden.getFloat(i) <= kHidden : (hidden.getInt(i) != 0) == mask.hidesWhen;
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

/// Whether something else than `masks` may hide keys. A row of which all keys are hidden one way or the other, by a
/// finite number, has the same weight for all keys, those that a mask hides among them.
static bool isHiddenOtherwise(Match &match, ArrayRef<Mask> masks) {
  llvm::SetVector<Value> known;
  for (const Mask &mask : masks)
    known.insert_range(inputsOf(match, mask.value));
  return llvm::any_of(match.inputs, [&](const auto &input) {
    return hasKind(input.second, Dim::key) && !known.contains(input.first);
  });
}

/// The keys that `rows` see; all of them where a mask cannot be evaluated.
static Range evaluateMasks(Match &match, ArrayRef<Mask> masks, Range rows) {
  std::vector<bool> sees(rows.size * match.keys, true);
  for (const Mask &mask : masks)
    if (failed(apply(match, mask, rows, sees)))
      return {0, match.keys};
  return hullOf(sees, match.keys);
}

Range MaskedKeys::find(Match &match, Range rows) {
  SmallVector<Mask> masks = masksOf(match);
  if (masks.empty() || !match.dropsHidden || isHiddenOtherwise(match, masks))
    return {0, match.keys};
  if (masks.size() > 1)
    return evaluateMasks(match, masks, rows);
  const Mask &mask = masks.front();
  Key key{mask.value.getAsOpaquePointer(), mask.isBias, mask.hidesWhen, rows.first, rows.size};
  auto at = found.find(key);
  if (at == found.end())
    at = found.emplace(key, evaluateMasks(match, masks, rows)).first;
  return at->second;
}

} // namespace ortc::attention
