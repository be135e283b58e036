// Round what products and convolutions read and give to a narrow type.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The choice of torch.autocast for the operations that pay: matrix products and convolutions, forward and backward.
// Gradients of parameters stay f32 sums, where autocast rounds them.
#include "passes/precision/Passes.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace ortc::precision {

#define GEN_PASS_DEF_NARROWPRODUCTSPASS
#include "passes/precision/Passes.h.inc"

static bool isProduct(Operation *op) {
  return isa<nn::DotOp, nn::ConvOp, nn::ConvInputGradOp, nn::ConvFilterGradOp>(op);
}

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

namespace {

class Narrowing {
public:
  Narrowing(func::FuncOp function, FloatType type, bool isDifferentiated)
      : function(function), type(type), isDifferentiated(isDifferentiated) {}

  void run();

private:
  void resolveStraightThrough();
  bool isRounded(Value value) const;
  Value rounded(Value value);
  void roundOperand(OpOperand &operand);
  void roundResult(Value result);
  bool isParameterGradient(Value value);

  func::FuncOp function;
  FloatType type;
  bool isDifferentiated;
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

bool Narrowing::isRounded(Value value) const {
  Operation *op = value.getDefiningOp();
  if (auto straight = dyn_cast_or_null<nn::StraightThroughOp>(op))
    op = straight.getValue().getDefiningOp();
  auto extended = dyn_cast_or_null<arith::ExtFOp>(op);
  return extended && getElementTypeOrSelf(extended.getIn().getType()) == type;
}

/// `value`, rounded right behind where it is made.
Value Narrowing::rounded(Value value) {
  Value &result = known[value];
  if (result)
    return result;
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  auto tensor = cast<RankedTensorType>(value.getType());
  Location loc = value.getLoc();
  Value narrow = arith::TruncFOp::create(builder, loc, tensor.clone(type), value);
  result = arith::ExtFOp::create(builder, loc, tensor, narrow);
  if (!isDifferentiated)
    result = nn::StraightThroughOp::create(builder, loc, result, value);
  return result;
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
    else
      result &= (isMovement(user) || isa<arith::AddFOp>(user)) && isParameterGradient(user->getResult(0));
  }
  return onlyGradients[value] = result;
}

void Narrowing::run() {
  if (isDifferentiated)
    resolveStraightThrough();
  SmallVector<Operation *> products;
  function.walk([&](Operation *op) {
    if (isProduct(op) && isF32(op->getResult(0)))
      products.push_back(op);
  });
  for (Operation *product : products)
    if (!isParameterGradient(product->getResult(0)))
      roundResult(product->getResult(0));
  for (Operation *product : products)
    for (OpOperand &operand : product->getOpOperands())
      roundOperand(operand);
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
    if (!getOperation().isDeclaration())
      Narrowing(getOperation(), narrow, differentiated).run();
  }
};

} // namespace
} // namespace ortc::precision
