// Vector-Jacobian products of straight-line SSA.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activity first: a value is varied when it is floating point and depends on what is differentiated for,
// useful when an output depends on it. Then one walk backwards over the operations that are both, each asked
// for the gradients of its varied operands. Saved values are simply uses of forward values by backward
// operations.
#include "compiler/autodiff/Differentiate.h"

#include "compiler/autodiff/DifferentiableOpInterface.h"
#include "compiler/autodiff/LeftOut.h"
#include "dialects/nn/ValueNames.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace ortc::autodiff {

static bool isFloatTensor(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

namespace {

class Engine {
public:
  Engine(nn::TensorBuilder &builder, const DifferentiateOptions &options)
      : builder(builder), options(options), leftOut(builder) {}

  FailureOr<Differentiated> run(ValueRange outputs, ValueRange cotangents, ValueRange withRespectTo);

private:
  void markVaried(ValueRange withRespectTo);
  void collectActive(ValueRange outputs);
  LogicalResult visit(Operation *op);
  void accumulate(Value value, Value contribution, Value mask = {});
  Value mutate(Operation *op, unsigned operand, Value gradient);
  void eraseUnused(Operation *before, ArrayRef<Value> kept);
  void remarkSaved(Operation *op, Operation *before);
  Operation *last();

  nn::TensorBuilder &builder;
  const DifferentiateOptions &options;
  llvm::DenseSet<Value> varied;
  SmallVector<Operation *> active; ///< in program order
  llvm::DenseMap<Value, Value> gradients;
  LeftOut leftOut;
  llvm::DenseMap<Value, Value> replaced;
  SmallVector<Operation *> outdated; ///< erased at the end
};

/// Forward in program order: results of floating point whose operands are varied. Integers and booleans end a
/// path.
void Engine::markVaried(ValueRange withRespectTo) {
  varied.insert(withRespectTo.begin(), withRespectTo.end());
  Block *block = builder.getInsertionBlock();
  for (Operation &op : llvm::make_range(block->begin(), builder.getInsertionPoint()))
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return varied.contains(operand); }))
      for (Value result : op.getResults())
        if (isFloatTensor(result))
          varied.insert(result);
}

/// Backward from the outputs through varied values only.
void Engine::collectActive(ValueRange outputs) {
  llvm::DenseSet<Value> useful(outputs.begin(), outputs.end());
  Block *block = builder.getInsertionBlock();
  for (Operation &op : llvm::reverse(llvm::make_range(block->begin(), builder.getInsertionPoint()))) {
    if (llvm::none_of(op.getResults(),
                      [&](Value result) { return varied.contains(result) && useful.contains(result); }))
      continue;
    // What is differentiated for may itself be a result: what comes before it does not matter unless varied
    // too.
    if (llvm::none_of(op.getOperands(), [&](Value operand) { return varied.contains(operand); }))
      continue;
    active.push_back(&op);
    useful.insert(op.operand_begin(), op.operand_end());
  }
  std::reverse(active.begin(), active.end());
}

void Engine::accumulate(Value value, Value contribution, Value mask) {
  Value &sum = gradients[value];
  leftOut.addUse(value, mask, /*isFirst=*/!sum);
  sum = sum ? addGradients(builder, sum, contribution) : contribution;
  nn::nameGradient(sum, value, builder.getLoc());
}

Value Engine::mutate(Operation *op, unsigned operand, Value gradient) {
  const Mutation &mutation = options.mutation;
  if (op->getName().getStringRef() != mutation.operation || operand != mutation.operand)
    return gradient;
  return builder.mulScalar(gradient, mutation.factor);
}

LogicalResult Engine::visit(Operation *op) {
  SmallVector<Value> cotangents;
  for (Value result : op->getResults())
    cotangents.push_back(gradients.lookup(result));
  if (llvm::none_of(cotangents, [](Value value) { return static_cast<bool>(value); }))
    return success();
  SmallVector<bool> wanted;
  for (Value operand : op->getOperands())
    wanted.push_back(varied.contains(operand));

  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  if (!differentiable)
    return op->emitError() << "no gradient rule for '" << op->getName() << "'";
  MLIRContext *context = op->getContext();
  builder.setLoc(FusedLoc::get({op->getLoc()}, StringAttr::get(context, nn::kGradientLocation), context));
  Operation *before = last();
  GradientRequest request(builder, op, cotangents, wanted, options);
  Gradients results = differentiable.differentiate(request);
  if (results.empty() && op->getNumOperands() != 0)
    return failure();
  if (results.size() != op->getNumOperands())
    return op->emitError() << "gradient rule gave " << results.size() << " gradients for "
                           << op->getNumOperands() << " operands";
  SmallVector<Value> kept;
  for (auto [gradient, want] : llvm::zip_equal(results, wanted))
    kept.push_back(want ? gradient.value : Value());
  eraseUnused(before, kept);
  if (options.remarkSaved)
    remarkSaved(request.replacement ? request.replacement : op, before);
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Value gradient = kept[i];
    if (!gradient)
      continue;
    if (gradient.getType() != operand.getType())
      return op->emitError() << "gradient rule gave " << gradient.getType() << " for operand " << i
                             << " of type " << operand.getType();
    Value mask = leftOut.maskOperand(op, i);
    accumulate(operand, leftOut.apply(op, i, mask, mutate(op, i, gradient)), mask);
  }
  if (request.replacement) {
    for (auto [old, now] : llvm::zip(op->getResults(), request.replacement->getResults())) {
      old.replaceAllUsesWith(now);
      replaced[old] = now;
    }
    outdated.push_back(op);
  }
  return success();
}

/// The operation in front of the insertion point; null at the beginning of the block.
Operation *Engine::last() {
  Block::iterator end = builder.getInsertionPoint();
  return end == builder.getInsertionBlock()->begin() ? nullptr : &*std::prev(end);
}

/// What the operations behind `before` read of `op`.
void Engine::remarkSaved(Operation *op, Operation *before) {
  Operation *end = last();
  auto isRead = [&](Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      Operation *reader = op->getBlock()->findAncestorOpInBlock(*user);
      return reader != op && (!before || before->isBeforeInBlock(reader)) && !end->isBeforeInBlock(reader);
    });
  };
  SmallVector<std::string> saved;
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (isRead(operand))
      saved.push_back("operand " + std::to_string(i));
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    if (isRead(result))
      saved.push_back("result " + std::to_string(i));
  op->emitRemark() << "saves [" << llvm::join(saved, ", ") << "]";
}

/// Rules may build more than was wanted; nothing of it stays behind `before`, `kept` apart.
void Engine::eraseUnused(Operation *before, ArrayRef<Value> kept) {
  llvm::SmallPtrSet<Operation *, 16> keep;
  for (Value value : kept)
    if (value)
      keep.insert(value.getDefiningOp());
  Operation *op = last();
  while (op != before) {
    Operation *previous = op->getPrevNode();
    if (isOpTriviallyDead(op) && !keep.contains(op))
      op->erase();
    op = previous;
  }
}

FailureOr<Differentiated> Engine::run(ValueRange outputs, ValueRange cotangents, ValueRange withRespectTo) {
  Operation *before = last();
  markVaried(withRespectTo);
  collectActive(outputs);
  for (auto [output, cotangent] : llvm::zip_equal(outputs, cotangents)) {
    assert(output.getType() == cotangent.getType() && "a cotangent has the type of its output");
    accumulate(output, cotangent);
  }
  for (Operation *op : llvm::reverse(active))
    if (failed(visit(op)))
      return failure();
  Differentiated result;
  for (Value value : withRespectTo)
    result.gradients.push_back(gradients.lookup(value));
  result.replaced = std::move(replaced);
  eraseUnused(before, result.gradients);
  for (Operation *op : outdated)
    op->erase();
  return result;
}

} // namespace

FailureOr<Differentiated> differentiate(nn::TensorBuilder &builder, ValueRange outputs, ValueRange cotangents,
                                        ValueRange withRespectTo, const DifferentiateOptions &options) {
  return Engine(builder, options).run(outputs, cotangents, withRespectTo);
}

} // namespace ortc::autodiff
