// Round what products and convolutions read and give to a narrow type.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The choice of torch.autocast for the operations that pay: matrix products and convolutions, forward and backward.
// Gradients of parameters stay f32 sums, where autocast rounds them.
#include "compiler/passes/precision/Passes.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace ortc::precision {

#define GEN_PASS_DEF_NARROWPRODUCTSPASS
#include "compiler/passes/precision/Passes.h.inc"

static bool isF32(Value value) { return getElementTypeOrSelf(value.getType()).isF32(); }

/// Movement of every element of one tensor to one place or more.
static bool isMovement(Operation *op) {
  return isa_and_nonnull<nn::TransposeOp, nn::ReshapeOp, nn::BroadcastOp>(op);
}

/// What `value` is a movement of.
static Value throughMovement(Value value) {
  while (isMovement(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Whether the elements are integers, or differences of integers: 8-bit ones with their zero points.
static bool areIntegers(Value value) {
  Value root = throughMovement(value);
  Operation *op = root.getDefiningOp();
  if (isa_and_nonnull<arith::SubFOp>(op))
    return areIntegers(op->getOperand(0)) && areIntegers(op->getOperand(1));
  DenseFPElementsAttr elements;
  if (matchPattern(root, m_Constant(&elements))) {
    auto isInteger = [](const APFloat &element) { return element.isInteger(); };
    return elements.isSplat() ? isInteger(elements.getSplatValue<APFloat>())
                              : llvm::all_of(elements.getValues<APFloat>(), isInteger);
  }
  return isa_and_nonnull<arith::SIToFPOp, arith::UIToFPOp>(op);
}

bool isNarrowed(Operation *op) {
  if (!isa<nn::DotOp, nn::ConvOp, nn::ConvInputGradOp, nn::ConvFilterGradOp>(op) || !isF32(op->getResult(0)))
    return false;
  if (auto dot = dyn_cast<nn::DotOp>(op); dot && dot.getExact())
    return false;
  return !llvm::all_of(op->getOperands(), areIntegers);
}

namespace {

class Narrowing {
public:
  Narrowing(func::FuncOp function, FloatType type, bool isDifferentiated)
      : function(function), type(type), isDifferentiated(isDifferentiated) {}

  void run();

private:
  void resolveStraightThrough();
  void narrowLoops();
  void narrowStacked(nn::ScanOp loop);
  void narrowTaken(nn::ScanOp loop);
  arith::ExtFOp findExtended(Value value) const;
  bool isRounded(Value value) const;
  Value rounded(Value value);
  void roundOperand(OpOperand &operand);
  void roundResult(Value result);
  bool isParameterGradient(Value value);

  func::FuncOp function;
  FloatType type;
  bool isDifferentiated;
  SmallVector<Value> invariants;      ///< arguments of loops that were rounded outside
  llvm::DenseMap<Value, Value> known; ///< values with their rounding
  llvm::DenseMap<Value, bool>
      onlyGradients; ///< whether gradients of parameters are all that is made of a value
};

} // namespace

void Narrowing::resolveStraightThrough() {
  function.walk([](nn::StraightThroughOp op) {
    op.replaceAllUsesWith(op.getValue());
    op.erase();
  });
}

/// What `value` is the extension of, or null.
arith::ExtFOp Narrowing::findExtended(Value value) const {
  auto extended = value.getDefiningOp<arith::ExtFOp>();
  return extended && getElementTypeOrSelf(extended.getIn().getType()) == type ? extended : nullptr;
}

/// What a loop stacks narrow numbers of is narrow.
void Narrowing::narrowStacked(nn::ScanOp loop) {
  Operation *yield = loop.getBlock().getTerminator();
  for (unsigned i = loop.getNumCarried(); i < loop.getNumResults(); ++i) {
    auto extended = findExtended(yield->getOperand(i));
    if (!extended)
      continue;
    yield->setOperand(i, extended.getIn());
    Value stacked = loop.getResult(i);
    auto tensor = cast<RankedTensorType>(stacked.getType());
    stacked.setType(tensor.clone(type));
    OpBuilder builder(loop.getContext());
    builder.setInsertionPointAfter(loop);
    auto wide = arith::ExtFOp::create(builder, loop.getLoc(), tensor, stacked);
    stacked.replaceAllUsesExcept(wide, wide);
  }
}

/// What a loop takes of narrow numbers, slices or invariants, it takes narrow.
void Narrowing::narrowTaken(nn::ScanOp loop) {
  for (OpOperand &operand : MutableArrayRef(loop->getOpOperands()).drop_front(loop.getNumCarried())) {
    auto extended = findExtended(operand.get());
    if (!extended)
      continue;
    operand.set(extended.getIn());
    BlockArgument argument = loop.getBlock().getArgument(operand.getOperandNumber());
    auto tensor = cast<RankedTensorType>(argument.getType());
    argument.setType(tensor.clone(type));
    OpBuilder builder = OpBuilder::atBlockBegin(&loop.getBlock());
    auto wide = arith::ExtFOp::create(builder, loop.getLoc(), tensor, argument);
    argument.replaceAllUsesExcept(wide, wide);
  }
}

/// From the forward part on: what it stacks, the loops of the backward part take.
void Narrowing::narrowLoops() {
  function.walk<WalkOrder::PreOrder>([&](nn::ScanOp loop) { narrowTaken(loop); });
  function.walk([&](nn::ScanOp loop) {
    narrowStacked(loop);
    for (Operation *next = loop->getNextNode(); next; next = next->getNextNode())
      if (auto other = dyn_cast<nn::ScanOp>(next))
        narrowTaken(other);
  });
}

bool Narrowing::isRounded(Value value) const {
  if (auto straight = value.getDefiningOp<nn::StraightThroughOp>())
    value = straight.getValue();
  return findExtended(value) || llvm::is_contained(invariants, value);
}

/// `value`, rounded right behind where it is made. Of what is the same in every iteration of a loop, that is outside.
Value Narrowing::rounded(Value value) {
  if (Value before = known.lookup(value))
    return before;
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument ? dyn_cast<nn::ScanOp>(argument.getOwner()->getParentOp()) : nn::ScanOp();
  if (loop && argument.getArgNumber() >= loop.getNumCarried() + loop.getSequences().size()) {
    Value outer = loop->getOperand(argument.getArgNumber());
    Value inner = loop.addInvariant(isRounded(outer) ? outer : rounded(outer));
    invariants.push_back(inner);
    return known[value] = inner;
  }
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  auto tensor = cast<RankedTensorType>(value.getType());
  Location loc = value.getLoc();
  Value narrow = arith::TruncFOp::create(builder, loc, tensor.clone(type), value);
  Value result = arith::ExtFOp::create(builder, loc, tensor, narrow);
  if (!isDifferentiated)
    result = nn::StraightThroughOp::create(builder, loc, result, value);
  return known[value] = result;
}

void Narrowing::roundOperand(OpOperand &operand) {
  Value root = throughMovement(operand.get());
  if (isRounded(root))
    return;
  SmallVector<Operation *> movement;
  for (Value value = operand.get(); value != root; value = movement.back()->getOperand(0))
    movement.push_back(value.getDefiningOp());
  IRMapping mapping;
  mapping.map(root, rounded(root));
  OpBuilder builder(operand.getOwner());
  for (Operation *op : llvm::reverse(movement))
    builder.clone(*op, mapping);
  operand.set(mapping.lookup(operand.get()));
}

void Narrowing::roundResult(Value result) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : result.getUses())
    uses.push_back(&use);
  if (uses.empty())
    return;
  if (uses.size() == 1)
    if (auto narrow = dyn_cast<arith::TruncFOp>(uses[0]->getOwner()))
      if (getElementTypeOrSelf(narrow.getType()) == type)
        return;
  Value now = rounded(result);
  for (OpOperand *use : uses)
    use->set(now);
}

bool Narrowing::isParameterGradient(Value value) {
  auto [found, isNew] = onlyGradients.try_emplace(value, false);
  if (!isNew)
    return found->second;
  bool result = !value.use_empty();
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<func::ReturnOp>(user))
      result &= function.getResultAttr(use.getOperandNumber(), train::kGradient) != nullptr;
    else if (isa<nn::YieldOp>(user)) // a sum that a loop carries
      result &= use.getOperandNumber() < cast<nn::ScanOp>(user->getParentOp()).getNumCarried() &&
                isParameterGradient(user->getParentOp()->getResult(use.getOperandNumber()));
    else
      result &= (isMovement(user) || isa<arith::AddFOp, arith::MulFOp>(user)) &&
                isParameterGradient(user->getResult(0));
  }
  return onlyGradients[value] = result;
}

void Narrowing::run() {
  if (isDifferentiated) {
    resolveStraightThrough();
    narrowLoops();
  }
  SmallVector<Operation *> products;
  function.walk([&](Operation *op) {
    if (isNarrowed(op))
      products.push_back(op);
  });
  for (Operation *product : products)
    if (!isa<nn::ConvFilterGradOp>(product) && !isParameterGradient(product->getResult(0)))
      roundResult(product->getResult(0));
  for (Operation *product : products)
    for (OpOperand &operand : product->getOpOperands())
      roundOperand(operand);
  if (isDifferentiated)
    narrowLoops();
}

/// The first product of a function where all are of float64, and nothing would be narrow; else null.
static Operation *findWideAlone(func::FuncOp function) {
  Operation *first = nullptr;
  WalkResult walked = function.walk([&](Operation *op) {
    if (!isa<nn::DotOp, nn::ConvOp>(op))
      return WalkResult::advance();
    first = first ? first : op;
    return getElementTypeOrSelf(op->getResult(0)).isF64() ? WalkResult::advance() : WalkResult::interrupt();
  });
  return walked.wasInterrupted() ? nullptr : first;
}

namespace {

struct NarrowProductsPass : impl::NarrowProductsPassBase<NarrowProductsPass> {
  using Base::Base;

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    if (type != "bf16" && type != "f16") {
      getOperation().emitError("the narrow type is bf16 or f16, not '") << type << "'";
      return signalPassFailure();
    }
    auto narrow =
        type == "f16" ? FloatType(Float16Type::get(context)) : FloatType(BFloat16Type::get(context));
    if (Operation *wide = differentiated ? nullptr : findWideAlone(getOperation())) {
      wide->emitError("this product is of float64, as all of the model are, and --precision ")
          << type << " rounds those of float32; leave --precision out, or export the model in float32";
      return signalPassFailure();
    }
    if (!getOperation().isDeclaration())
      Narrowing(getOperation(), narrow, differentiated).run();
  }
};

} // namespace
} // namespace ortc::precision
