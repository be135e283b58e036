// Cut functions of outputs and gradients into forward and backward.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels are known and none of them mixes the two (FusionGroups), so what forward keeps for backward is what crosses
// the cut. Inputs and parameters are read again where they are, and so are outputs; state and scalars may have changed
// by then and are kept as they were.
#include "compiler/passes/memory/Passes.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace ortc::memory {

#define GEN_PASS_DEF_CUTBACKWARDPASS
#include "compiler/passes/memory/Passes.h.inc"

static Value throughReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getInput();
  return value;
}

namespace {

/// One of the two functions while it is built.
struct Part {
  func::FuncOp function;
  IRMapping mapping; ///< from values of the whole function
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> arguments, resultAttributes;

  Block &block() { return function.front(); }
  Value addArgument(Type type, Location loc, DictionaryAttr attributes) {
    arguments.push_back(attributes);
    return block().addArgument(type, loc);
  }
};

class Cutter {
public:
  Cutter(func::FuncOp whole, const SymbolTable &symbols) : whole(whole), symbols(symbols) {}

  LogicalResult run();

private:
  bool isBackward(unsigned result) { return bool(whole.getResultAttr(result, train::kBackward)); }
  void findForward();
  Part begin(StringRef entry);
  void end(Part &part);
  Value inForward(Value value);
  Value inBackward(Value value);
  Value handOver(Value root);
  /// Keeps a value for the backward part, where it is an argument.
  Value save(Value root);
  bool mayChange(BlockArgument argument);
  Value reshaped(Part &part, Value value, llvm::function_ref<Value(Value)> rootIn);
  DictionaryAttr dictionary(StringRef name, Attribute value) {
    return DictionaryAttr::get(whole.getContext(), NamedAttribute(name, value));
  }

  func::FuncOp whole;
  const SymbolTable &symbols;
  llvm::DenseSet<Operation *> isForward;
  llvm::DenseMap<Value, unsigned> outputs; ///< by root: the result that gives it to the host
  Part forward, backward;
  int64_t saved = 0;
};

} // namespace

/// What outputs and new state need, and all checks: those come before anything is changed.
void Cutter::findForward() {
  SmallVector<Value> stack;
  Operation *exit = whole.front().getTerminator();
  for (OpOperand &operand : exit->getOpOperands())
    if (!isBackward(operand.getOperandNumber()))
      stack.push_back(operand.get());
  for (Operation &op : whole.front().without_terminator())
    if (op.use_empty() && isForward.insert(&op).second)
      llvm::append_range(stack, op.getOperands());
  while (!stack.empty())
    if (Operation *op = stack.pop_back_val().getDefiningOp(); op && isForward.insert(op).second)
      stack.append(op->operand_begin(), op->operand_end());
}

Part Cutter::begin(StringRef entry) {
  OpBuilder builder(whole);
  Part part;
  auto binding = whole->getAttrOfType<IntegerAttr>(train::kBinding);
  part.function =
      func::FuncOp::create(builder, NameLoc::get(builder.getStringAttr(entry)),
                           (entry + "_" + Twine(binding.getInt())).str(), builder.getFunctionType({}, {}));
  part.function->setAttr(train::kEntry, builder.getStringAttr(entry));
  part.function->setAttr(train::kBinding, binding);
  part.function.addEntryBlock();
  return part;
}

void Cutter::end(Part &part) {
  OpBuilder builder = OpBuilder::atBlockEnd(&part.block());
  func::ReturnOp::create(builder, part.function.getLoc(), part.results);
  part.function.setType(
      builder.getFunctionType(part.block().getArgumentTypes(), TypeRange(ValueRange(part.results))));
  part.function.setAllArgAttrs(part.arguments);
  part.function.setAllResultAttrs(part.resultAttributes);
}

/// `value` as a reshape of what `rootIn` says its root is.
Value Cutter::reshaped(Part &part, Value value, llvm::function_ref<Value(Value)> rootIn) {
  if (Value known = part.mapping.lookupOrNull(value))
    return known;
  Value root = throughReshapes(value), made = rootIn(root);
  if (made.getType() != value.getType()) {
    OpBuilder builder = OpBuilder::atBlockEnd(&part.block());
    made = nn::ReshapeOp::create(builder, value.getLoc(), value.getType(), made);
  }
  part.mapping.map(value, made);
  return made;
}

Value Cutter::inForward(Value value) {
  return reshaped(forward, value, [&](Value root) {
    if (Value known = forward.mapping.lookupOrNull(root))
      return known;
    auto argument = cast<BlockArgument>(root);
    Value made =
        forward.addArgument(root.getType(), root.getLoc(), whole.getArgAttrDict(argument.getArgNumber()));
    forward.mapping.map(root, made);
    return made;
  });
}

bool Cutter::mayChange(BlockArgument argument) {
  auto symbol = whole.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), train::kTensor);
  auto tensor = symbol ? symbols.lookup<train::TensorOp>(symbol.getAttr()) : train::TensorOp();
  return tensor && (tensor.getRole() == train::Role::state || tensor.getRole() == train::Role::scalar);
}

Value Cutter::save(Value root) {
  DictionaryAttr key = dictionary(train::kSaved, OpBuilder(whole).getI64IntegerAttr(saved++));
  forward.results.push_back(inForward(root));
  forward.resultAttributes.push_back(key);
  return backward.addArgument(root.getType(), root.getLoc(), key);
}

Value Cutter::handOver(Value root) {
  if (auto argument = dyn_cast<BlockArgument>(root))
    return mayChange(argument) ? save(root)
                               : backward.addArgument(root.getType(), root.getLoc(),
                                                      whole.getArgAttrDict(argument.getArgNumber()));
  auto output = outputs.find(root);
  if (output == outputs.end())
    return save(root);
  Value given = whole.front().getTerminator()->getOperand(output->second);
  Value made = backward.addArgument(given.getType(), root.getLoc(), whole.getResultAttrDict(output->second));
  if (made.getType() == root.getType())
    return made;
  OpBuilder builder = OpBuilder::atBlockEnd(&backward.block());
  return nn::ReshapeOp::create(builder, root.getLoc(), root.getType(), made);
}

Value Cutter::inBackward(Value value) {
  return reshaped(backward, value, [&](Value root) {
    if (Value known = backward.mapping.lookupOrNull(root))
      return known;
    Value made = handOver(root);
    backward.mapping.map(root, made);
    return made;
  });
}

LogicalResult Cutter::run() {
  findForward();
  forward = begin("forward");
  backward = begin("backward");
  Operation *exit = whole.front().getTerminator();
  auto copy = [](Operation &op, Part &part, llvm::function_ref<void(Value)> take) {
    llvm::for_each(op.getOperands(), take);
    OpBuilder::atBlockEnd(&part.block()).clone(op, part.mapping);
  };
  for (Operation &op : whole.front().without_terminator())
    if (!isa<nn::ReshapeOp>(op) && isForward.contains(&op))
      copy(op, forward, [&](Value operand) { inForward(operand); });
  for (OpOperand &operand : exit->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    if (isBackward(number))
      continue;
    if (whole.getResultAttr(number, train::kOutput))
      outputs.try_emplace(throughReshapes(operand.get()), number);
    forward.results.push_back(inForward(operand.get()));
    forward.resultAttributes.push_back(whole.getResultAttrDict(number));
  }
  for (Operation &op : whole.front().without_terminator())
    if (!isa<nn::ReshapeOp>(op) && !isForward.contains(&op))
      copy(op, backward, [&](Value operand) { inBackward(operand); });
  for (OpOperand &operand : exit->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    if (!isBackward(number))
      continue;
    backward.results.push_back(inBackward(operand.get()));
    backward.resultAttributes.push_back(whole.getResultAttrDict(number));
  }
  for (DictionaryAttr attributes : forward.arguments)
    if (attributes.contains(train::kBackward))
      return whole.emitError("the forward part depends on ") << attributes;
  end(forward);
  end(backward);
  whole.erase();
  return success();
}

namespace {

struct CutBackwardPass : impl::CutBackwardPassBase<CutBackwardPass> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (train::isForwardBackward(function))
        functions.push_back(function);
    for (func::FuncOp function : functions)
      if (failed(Cutter(function, symbols).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace ortc::memory
