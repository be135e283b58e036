// What the forward part keeps for the backward part, in a narrow type.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products read narrow numbers anyway. This is about the rest: what norms, activations and additions keep in f32. Only
// readers of the backward part take the narrow copy; the forward part computes what it would.
#include "compiler/passes/fusion/FusionGroups.h"

#include "compiler/kernels/KernelForm.h"
#include "compiler/kernels/attention/AttentionForm.h"
#include "compiler/kernels/loop/LoopProgram.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace ortc::fusion {

/// Smaller tensors, such as statistics of norms, stay as they are.
static constexpr int64_t kNarrowedBytes = 4096;

llvm::DenseSet<Operation *> FusionGroups::findForward() const {
  llvm::DenseSet<Operation *> forward;
  auto function = dyn_cast<func::FuncOp>(block.getParentOp());
  if (!function)
    return forward;
  SmallVector<Value> stack;
  for (OpOperand &result : block.getTerminator()->getOpOperands())
    if (train::isForwardBackward(function)
            ? !function.getResultAttr(result.getOperandNumber(), train::kBackward)
            : bool(function.getResultAttr(result.getOperandNumber(), train::kLoss)))
      stack.push_back(result.get());
  while (!stack.empty())
    if (Operation *op = stack.pop_back_val().getDefiningOp(); op && forward.insert(op).second)
      stack.append(op->operand_begin(), op->operand_end());
  return forward;
}

/// Whether kernels of the group extend what they read, and round what they store.
bool FusionGroups::mayBeNarrow(unsigned group) const {
  return qualities[group].valid || llvm::any_of(groups[group].ops, readsNarrow);
}

bool FusionGroups::isPossible(unsigned group) const {
  const FusionGroup &whole = groups[group];
  std::string reason;
  return whole.inputs.size() + whole.outputs.size() <= limits.buffers &&
         (llvm::all_of(whole.ops, kernels::isLoopOperation)
              ? judge(whole).valid
              : kernels::formOf(whole.ops).suits(whole.inputs, whole.outputs, limits, reason));
}

void FusionGroups::insert(Operation *op, unsigned group) {
  groupIndex[op] = group;
  parts[op] = partOf(group);
  groups[group].ops.push_back(op);
  number(op);
}

void FusionGroups::narrow(Value value, FloatType type, unsigned group, ArrayRef<unsigned> readers) {
  llvm::MapVector<unsigned, SmallVector<OpOperand *>> uses;
  findUses(value, uses);
  Copies added;
  added.before.emplace_back(group, groups[group]);
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  auto tensor = cast<RankedTensorType>(value.getType());
  Value rounded = arith::TruncFOp::create(builder, value.getLoc(), tensor.clone(type), value);
  added.ops.push_back(rounded.getDefiningOp());
  insert(added.ops.back(), group);
  for (unsigned reader : readers) {
    added.before.emplace_back(reader, groups[reader]);
    SmallVector<OpOperand *> &operands = uses[reader];
    builder.setInsertionPoint(*llvm::min_element(
        llvm::map_to_vector(operands, [](OpOperand *use) { return use->getOwner(); }),
        [&](Operation *a, Operation *b) { return position.lookup(a) < position.lookup(b); }));
    Value extended = arith::ExtFOp::create(builder, value.getLoc(), tensor, rounded);
    added.ops.push_back(extended.getDefiningOp());
    insert(added.ops.back(), reader);
    for (OpOperand *use : operands) {
      added.uses.emplace_back(use, use->get());
      Value now = extended;
      if (use->get() != value) {
        now = nn::ReshapeOp::create(builder, value.getLoc(), use->get().getType(), extended);
        added.ops.push_back(now.getDefiningOp());
        number(added.ops.back());
      }
      use->set(now);
    }
  }
  for (auto &[changed, old] : added.before)
    describe(groups[changed]);
  if (!llvm::all_of(added.before, [&](auto &entry) { return isPossible(entry.first); }))
    takeBack(added);
}

void FusionGroups::narrowSaved(FloatType type) {
  llvm::DenseSet<Operation *> forward = findForward();
  auto isForward = [&](unsigned group) {
    return llvm::any_of(groups[group].ops, [&](Operation *op) { return forward.contains(op); });
  };
  for (unsigned group = 0; group < groups.size(); ++group) {
    if (groups[group].ops.empty() || !isForward(group) || !mayBeNarrow(group))
      continue;
    SmallVector<Value> outputs = groups[group].outputs;
    for (Value output : outputs) {
      // A sum of exponentials is of numbers that are computed anew, to the last bit.
      bool isSum = kernels::isAttention(groups[group].ops) && output.getDefiningOp<nn::ReduceOp>();
      if (!getElementTypeOrSelf(output.getType()).isF32() || bytesOf(output) < kNarrowedBytes || isSum)
        continue;
      llvm::MapVector<unsigned, SmallVector<OpOperand *>> uses;
      findUses(output, uses);
      SmallVector<unsigned> readers;
      for (auto &[reader, operands] : uses)
        if (!isForward(reader) && mayBeNarrow(reader))
          readers.push_back(reader);
      if (!readers.empty())
        narrow(output, type, group, readers);
    }
  }
}

} // namespace ortc::fusion
