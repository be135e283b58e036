// Update the gathered rows of sparse tables.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An update is elementwise, and without a gradient it is not to move anything: then it can be computed of the rows
// that have one. Sorting finds the distinct indices of a step; each has a slot, and there are as many slots as indices,
// of which the last stay empty. Gradients are summed by slot, in the order of the indices as before; the rows of
// parameter and state are gathered by slot, and written back.
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/ProgramParts.h"
#include "compiler/passes/train/TrainingProgram.h"
#include "dialects/nn/Elementwise.h"
#include "dialects/nn/ValueNames.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <limits>

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

#define GEN_PASS_DEF_UPDATEROWSPASS
#include "compiler/passes/train/Passes.h.inc"

/// `op` gives a part of the gradient of rows that nothing gathers.
static LogicalResult refuseTable(TensorOp table, Operation *op) {
  InFlightDiagnostic error = table.emitError();
  error << "--sparse: '" << table.getName()
        << "' is read otherwise than by Gather along its first axis, outside of loops";
  if (op && !nn::isElementwise(op))
    error << ": " << op->getName().getStringRef() << " takes part in its gradient";
  return error << "; a dense update needs no --sparse";
}

namespace {

/// One table and its state in one entry.
class SparseTable {
public:
  SparseTable(TensorOp table, ArrayRef<TensorOp> states, func::FuncOp entry);

  LogicalResult run();

private:
  bool isOfTable(Value value) const { return TensorBuilder::shapeOf(value) == ArrayRef(shape); }
  bool isUniform(Operation *op) const;
  LogicalResult findGradients(Value value);
  Value flatten(nn::ScatterAddOp scatter);
  void findRows();
  Value ofRows(Value value);
  bool isLimit(Value value) const;
  bool isZeroWithout(Value value) const;
  bool isOfGradients(Value value) const;
  void reduceRows(nn::ReduceOp reduce);

  TensorOp table;
  func::FuncOp entry;
  func::ReturnOp exit;
  TensorBuilder b;
  SmallVector<int64_t> shape; ///< of the table
  llvm::MapVector<Value, unsigned>
      destinations; ///< arguments of the table and its state, with their new values' results
  llvm::SetVector<Value> seen;
  SmallVector<nn::ScatterAddOp> gradients;
  Value rows, safeRows;                     ///< by slot; of empty slots the number of rows, and the last row
  llvm::DenseMap<Operation *, Value> slots; ///< of each gradient's indices
  llvm::DenseMap<Value, Value> rowsOf;      ///< what is known of the rows of a value
  int64_t count = 0;                        ///< of slots
};

SparseTable::SparseTable(TensorOp table, ArrayRef<TensorOp> states, func::FuncOp entry)
    : table(table), entry(entry), exit(cast<func::ReturnOp>(entry.getBody().front().getTerminator())),
      b(table.getLoc(), exit), shape(table.getStoredType().getShape()) {
  b.setInsertionPoint(exit);
  SmallVector<TensorOp> all{table};
  all.append(states.begin(), states.end());
  for (TensorOp tensor : all) {
    auto symbol = FlatSymbolRefAttr::get(tensor.getSymNameAttr());
    for (BlockArgument argument : entry.getArguments())
      for (unsigned i = 0; i < exit.getNumOperands(); ++i)
        if (entry.getArgAttr(argument.getArgNumber(), kTensor) == symbol &&
            entry.getResultAttr(i, kUpdate) == symbol)
          destinations[argument] = i;
  }
}

/// Whether all elements of what `op` gives are equal.
bool SparseTable::isUniform(Operation *op) const {
  DenseElementsAttr elements;
  if (matchPattern(op, m_Constant(&elements)))
    return elements.isSplat();
  auto broadcast = dyn_cast<nn::BroadcastOp>(op);
  return broadcast && TensorBuilder::typeOf(broadcast.getInput()).getNumElements() == 1;
}

LogicalResult SparseTable::findGradients(Value value) {
  if (!seen.insert(value) || destinations.contains(value))
    return success();
  Operation *op = value.getDefiningOp();
  if (auto scatter = dyn_cast_or_null<nn::ScatterAddOp>(op); scatter && scatter.getAxis() == 0) {
    gradients.push_back(scatter);
    return success();
  }
  if (op && isUniform(op))
    return success();
  if (op && nn::isElementwise(op)) {
    for (Value operand : op->getOperands())
      if (failed(findGradients(operand)))
        return failure();
    return success();
  }
  return refuseTable(table, op);
}

/// The indices of a gradient in one dimension, of a type that all share.
Value SparseTable::flatten(nn::ScatterAddOp scatter) {
  Value indices = scatter.getIndices();
  Type type = shape[0] < std::numeric_limits<int32_t>::max() ? b.getI32Type() : b.getI64Type();
  return b.cast(b.reshape(indices, {TensorBuilder::typeOf(indices).getNumElements()}), type);
}

void SparseTable::findRows() {
  SmallVector<Value> all;
  for (nn::ScatterAddOp scatter : gradients)
    all.push_back(flatten(scatter));
  Value indices = all.size() == 1 ? all.front() : b.concat(all, 0);
  RankedTensorType type = TensorBuilder::typeOf(indices);
  count = type.getNumElements();
  auto numbers = RankedTensorType::get(type.getShape(), b.getI32Type());
  Value order = nn::ArgSortOp::create(b, numbers, indices, /*axis=*/0, /*descending=*/false);
  Value sorted = nn::GatherOp::create(b, type, indices, order, /*axis=*/0);
  Value before = b.concat({b.constant(RankedTensorType::get({1}, type.getElementType()), -1),
                           b.sliceAxis(sorted, 0, 0, count - 1)},
                          0);
  Value isFirst = b.cast(b.compare(arith::CmpIPredicate::ne, sorted, before), b.getI32Type());
  Value slot = b.addScalar(nn::CumSumOp::create(b, numbers, isFirst, /*axis=*/0, /*exclusive=*/false,
                                                /*reverse=*/false),
                           -1);
  auto scatter = [&](Value into, Value at, Value values) -> Value {
    return nn::ScatterElementsOp::create(b, into.getType(), nn::ScatterMode::set, into, at, values,
                                         /*axis=*/0);
  };
  rows = scatter(b.constant(type, static_cast<double>(shape[0])), slot, sorted);
  safeRows = b.minimum(rows, b.constantLike(rows, static_cast<double>(shape[0] - 1)));
  Value slotOf = scatter(b.constant(numbers, 0), order, slot);
  int64_t start = 0;
  for (auto [scatter, part] : llvm::zip_equal(gradients, all)) {
    int64_t size = TensorBuilder::shapeOf(part)[0];
    slots[scatter] = size == count ? slotOf : b.sliceAxis(slotOf, 0, start, size);
    start += size;
  }
}

/// What `value`, of the table's shape, is in the rows of the slots.
Value SparseTable::ofRows(Value value) {
  auto [known, isNew] = rowsOf.try_emplace(value);
  if (!isNew)
    return known->second;
  SmallVector<int64_t> some(shape);
  some[0] = count;
  auto type = RankedTensorType::get(some, TensorBuilder::elementOf(value));
  Operation *op = value.getDefiningOp();
  DenseElementsAttr splat;
  Value result;
  if (destinations.contains(value)) {
    result = nn::GatherOp::create(b, type, value, safeRows, /*axis=*/0);
  } else if (auto scatter = dyn_cast<nn::ScatterAddOp>(op)) {
    some[0] = TensorBuilder::shapeOf(slots[op])[0];
    result = nn::ScatterAddOp::create(b, type, slots[op], b.reshape(scatter.getUpdates(), some), /*axis=*/0);
  } else if (matchPattern(op, m_Constant(&splat))) {
    result = arith::ConstantOp::create(b, type, splat.resizeSplat(type));
  } else if (auto broadcast = dyn_cast<nn::BroadcastOp>(op)) {
    result = b.broadcast(b.reshape(broadcast.getInput(), {}), some, {});
  } else {
    auto operands = llvm::map_to_vector(op->getOperands(), [&](Value operand) { return ofRows(operand); });
    result = nn::createElementwise(b, op, operands, some);
  }
  return rowsOf[value] = result;
}

/// Whether `value` is made of gradients alone.
bool SparseTable::isOfGradients(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op || isUniform(op) || llvm::is_contained(gradients, op))
    return op != nullptr;
  return isOfTable(value) && nn::isElementwise(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isOfGradients(operand); });
}

/// Whether `value` has one number everywhere.
bool SparseTable::isLimit(Value value) const {
  Operation *op = value.getDefiningOp();
  return op && (isUniform(op) ||
                (nn::isElementwise(op) &&
                 llvm::all_of(op->getOperands(), [&](Value operand) { return isLimit(operand); })));
}

/// Whether `select` gives the smaller or larger of its values by comparing them.
static bool isMinimumOrMaximum(arith::SelectOp select) {
  auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
  if (!compare)
    return false;
  using enum arith::CmpFPredicate;
  bool isOrder = llvm::is_contained({OLT, OLE, OGT, OGE, ULT, ULE, UGT, UGE}, compare.getPredicate());
  Value a = select.getTrueValue(), b = select.getFalseValue(), lhs = compare.getLhs(), rhs = compare.getRhs();
  return isOrder && ((lhs == a && rhs == b) || (lhs == b && rhs == a));
}

/// Whether `select` gives its first value where that is NaN, and its second otherwise.
static bool passesNaN(arith::SelectOp select) {
  auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
  return compare && compare.getPredicate() == arith::CmpFPredicate::UNO &&
         compare.getLhs() == select.getTrueValue() && compare.getRhs() == select.getTrueValue();
}

/// Whether elements of `value` are zero where no gradient is, so that empty slots add nothing.
bool SparseTable::isZeroWithout(Value value) const {
  Operation *op = value.getDefiningOp();
  if (llvm::is_contained(gradients, op))
    return true;
  auto isZero = [&](Value operand) { return isZeroWithout(operand); };
  // The smaller or larger of a gradient and a limit, as TensorBuilder::minimum and maximum write it: limits of clipping
  // have the sign that leaves zero as it is.
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) {
    Value a = select.getTrueValue(), b = select.getFalseValue();
    if (isZero(a) && isZero(b))
      return true;
    if (passesNaN(select))
      return isLimit(a) && isZero(b);
    return isMinimumOrMaximum(select) && ((isZero(a) && isLimit(b)) || (isLimit(a) && isZero(b)));
  }
  if (isa_and_nonnull<arith::MulFOp>(op))
    return llvm::any_of(op->getOperands(), isZero);
  if (isa_and_nonnull<arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::ExtFOp, arith::TruncFOp,
                      math::AbsFOp>(op))
    return llvm::all_of(op->getOperands(), isZero);
  return false;
}

/// Norms and the check for finite gradients.
void SparseTable::reduceRows(nn::ReduceOp reduce) {
  Value input = reduce.getInput();
  bool isSum = reduce.getKind() == nn::ReduceKind::sum,
       isMagnitude = reduce.getKind() == nn::ReduceKind::max && input.getDefiningOp<math::AbsFOp>();
  if (reduce.getAxes().size() != shape.size() || (!isSum && !isMagnitude) || !isOfGradients(input) ||
      !isZeroWithout(input))
    return;
  b.setInsertionPoint(reduce);
  rowsOf.clear(); // those stand further behind
  reduce.replaceAllUsesWith(b.reduce(reduce.getKind(), ofRows(input), reduce.getAxes()));
  reduce.erase();
}

LogicalResult SparseTable::run() {
  for (auto [argument, result] : destinations)
    if (failed(findGradients(exit.getOperand(result))))
      return failure();
  int64_t read = 0;
  for (nn::ScatterAddOp scatter : gradients)
    read += TensorBuilder::typeOf(scatter.getIndices()).getNumElements();
  if (read == 0 || table.getStoredType().getNumElements() == 0) { // nothing has a gradient
    for (auto [argument, result] : destinations)
      exit.setOperand(result, argument);
    return success();
  }
  // Everything that rows are found from stands before the first of what is computed of them.
  Operation *last = gradients.front();
  for (nn::ScatterAddOp scatter : gradients)
    last = last->isBeforeInBlock(scatter) ? scatter.getOperation() : last;
  b.setInsertionPointAfter(last);
  findRows();
  SmallVector<nn::ReduceOp> reductions;
  for (auto reduce : entry.getBody().front().getOps<nn::ReduceOp>())
    if (isOfTable(reduce.getInput()))
      reductions.push_back(reduce);
  for (nn::ReduceOp reduce : reductions)
    reduceRows(reduce);
  b.setInsertionPoint(exit);
  rowsOf.clear();
  for (auto [argument, result] : destinations) {
    Value value = ofRows(exit.getOperand(result));
    exit.setOperand(result, nn::ScatterOp::create(b, argument.getType(), argument, rows, value));
  }
  return success();
}

} // namespace

/// Whether `value`, a gradient of a table, is zero in rows that nothing gathers, whatever else it is multiplied by.
static bool isOfRows(Value value) {
  Operation *op = value.getDefiningOp();
  auto isPart = [](Value operand) { return isOfRows(operand); };
  if (auto scatter = dyn_cast_or_null<nn::ScatterAddOp>(op))
    return scatter.getAxis() == 0;
  if (matchPattern(value, m_AnyZeroFloat()))
    return true;
  if (isa_and_nonnull<arith::MulFOp>(op))
    return llvm::any_of(op->getOperands(), isPart);
  if (isa_and_nonnull<arith::DivFOp>(op))
    return isOfRows(op->getOperand(0));
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op))
    return isOfRows(select.getTrueValue()) && isOfRows(select.getFalseValue());
  return isa_and_nonnull<arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::ExtFOp, arith::TruncFOp>(op) &&
         llvm::all_of(op->getOperands(), isPart);
}

LogicalResult checkSparseGradients(ModuleOp module) {
  for (int64_t binding : findBindings(module)) {
    func::FuncOp backward = findPart(module, "backward", binding);
    Operation *exit = backward ? backward.getBody().front().getTerminator() : nullptr;
    for (unsigned i = 0; exit && i < exit->getNumOperands(); ++i) {
      auto symbol = backward.getResultAttrOfType<FlatSymbolRefAttr>(i, kGradient);
      auto table = symbol ? module.lookupSymbol<TensorOp>(symbol.getValue()) : TensorOp();
      if (table && table->hasAttr(kSparse) && !isOfRows(exit->getOperand(i)))
        return refuseTable(table, exit->getOperand(i).getDefiningOp());
    }
  }
  return success();
}

LogicalResult updateRows(ModuleOp module) {
  for (auto table : module.getOps<TensorOp>()) {
    if (!table->hasAttr(kSparse))
      continue;
    SmallVector<TensorOp> states;
    for (auto state : module.getOps<TensorOp>())
      if (state.getRole() == Role::state && state.getOwner() == table.getSymName())
        states.push_back(state);
    for (auto entry : module.getOps<func::FuncOp>())
      if (auto role = entry->getAttrOfType<StringAttr>(kEntry); role && role.getValue() == "train")
        if (failed(SparseTable(table, states, entry).run()))
          return failure();
  }
  return success();
}

namespace {

struct UpdateRowsPass : impl::UpdateRowsPassBase<UpdateRowsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(updateRows(getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace ortc::train
