// Calls of kernels that become one call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/memory/JoinedCalls.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace ortc::memory {

Value rootOf(Value value) {
  while (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getInput();
  return value;
}

void JoinedCalls::add(func::CallOp call) {
  calls.push_back(call);
  inputs.insert(call.operand_begin(), call.operand_end());
  outputs += call.getNumResults();
}

size_t JoinedCalls::buffersWith(func::CallOp call) const {
  llvm::SmallDenseSet<Value> more;
  for (Value operand : call.getOperands())
    if (!inputs.contains(operand))
      more.insert(operand);
  return inputs.size() + outputs + more.size() + call.getNumResults();
}

/// Every name has a number: further launches of a kernel have one behind its name, and would else have the name of
/// another kernel.
static std::string unusedName(const SymbolTable &symbols) {
  for (int64_t number = 0;; ++number)
    if (std::string name = "kernel_joined_" + std::to_string(number); !symbols.lookup(name))
      return name;
}

static func::FuncOp makeKernel(ArrayRef<func::CallOp> calls, const llvm::SetVector<Value> &operands,
                               SymbolTable &symbols, PairsOfCall pairsOf) {
  SmallVector<Type> results;
  SmallVector<Location> locations;
  for (func::CallOp call : calls) {
    llvm::append_range(results, call.getResultTypes());
    locations.push_back(call.getLoc());
  }
  MLIRContext *context = symbols.getOp()->getContext();
  ValueRange inputs(operands.getArrayRef());
  auto kernel = func::FuncOp::create(FusedLoc::get(context, locations), unusedName(symbols),
                                     FunctionType::get(context, inputs.getTypes(), results));
  kernel.setPrivate();
  kernel->setAttr(plan::kKind, plan::KernelKindAttr::get(context, plan::KernelKind::joined));
  Block *body = kernel.addEntryBlock();
  OpBuilder builder = OpBuilder::atBlockEnd(body);
  llvm::DenseMap<Value, unsigned> numbers;
  for (auto [number, input] : llvm::enumerate(operands))
    numbers[input] = number;
  SmallVector<Value> outputs;
  SmallVector<int64_t> pairs;
  for (func::CallOp call : calls) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    for (auto [input, output] : pairsOf(call, callee))
      pairs.append({numbers.lookup(call.getOperand(input)), static_cast<int64_t>(outputs.size()) + output});
    IRMapping mapping;
    for (auto [argument, operand] : llvm::zip_equal(callee.getArguments(), call.getOperands()))
      mapping.map(argument, body->getArgument(numbers.lookup(operand)));
    for (Operation &op : callee.getBody().front().without_terminator())
      builder.clone(op, mapping);
    for (Value output : callee.getBody().front().getTerminator()->getOperands())
      outputs.push_back(mapping.lookup(output));
  }
  func::ReturnOp::create(builder, kernel.getLoc(), outputs);
  kernel->setAttr(plan::kInPlace, builder.getDenseI64ArrayAttr(pairs));
  symbols.insert(kernel);
  return kernel;
}

func::CallOp joinCalls(ArrayRef<func::CallOp> calls, Operation *place, SymbolTable &symbols,
                       PairsOfCall pairsOf) {
  llvm::SetVector<Value> operands;
  for (func::CallOp call : calls)
    operands.insert(call.getOperands().begin(), call.getOperands().end());
  func::FuncOp kernel = makeKernel(calls, operands, symbols, pairsOf);
  OpBuilder builder(place);
  auto whole = func::CallOp::create(builder, kernel.getLoc(), kernel, operands.getArrayRef());
  unsigned first = 0;
  for (func::CallOp call : calls) {
    call.replaceAllUsesWith(whole.getResults().slice(first, call.getNumResults()));
    first += call.getNumResults();
    call.erase();
  }
  return whole;
}

SmallVector<func::FuncOp> findEntries(ModuleOp module) {
  SmallVector<func::FuncOp> entries;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(train::kEntry))
      entries.push_back(function);
  return entries;
}

std::optional<kernels::LoopProgram> loopOf(func::CallOp call, const SymbolTable &symbols) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  auto kind = kernel->getAttrOfType<plan::KernelKindAttr>(plan::kKind);
  if (!kind || kind.getValue() != plan::KernelKind::loop)
    return std::nullopt;
  std::string reason;
  return kernels::analyzeLoops(kernel.getArguments(), kernel.getBody().front().getTerminator()->getOperands(),
                               reason);
}

} // namespace ortc::memory
