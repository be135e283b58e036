//===- RecomputeValues.cpp - tensors that are computed again, not kept ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that read what a cheap tensor is computed from compute it themselves. Where all its consumers do, nobody stores
// it.
#include "passes/fusion/FusionGroups.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ortc::fusion {

/// What may be computed again in a consumer, rather than stored and loaded: about what the memory traffic costs, of tensors
/// that stay in a core's caches and of larger ones. A mathematical function counts 20.
static constexpr int64_t kRecomputedCost = 6, kRecomputedCostOfLarge = 24;
/// The same of large ones when nothing else large is read in their place: a sigmoid, which counts 29, but not two functions.
static constexpr int64_t kRecomputedCostOfRead = 32;
/// Operations of such a copy, broadcasts included.
static constexpr size_t kRecomputedOperations = 32;
/// Smaller tensors are not worth it.
static constexpr int64_t kRecomputedBytes = 1024;
/// Tensors so many times smaller than another one count as nothing beside it.
static constexpr int64_t kSmall = 8;

bool FusionGroups::readsValue(unsigned reader, Value value) const {
  return llvm::any_of(groups[reader].inputs, [&](Value input) { return throughReshapes(input) == value; });
}

bool FusionGroups::collectCheap(Value value, unsigned group, ArrayRef<unsigned> consumers, bool expandsKept,
                                SmallVectorImpl<Operation *> &ops) const {
  int64_t bytes = bytesOf(value), cost = 0;
  llvm::SetVector<Value> large;
  llvm::SetVector<Operation *> needed;
  SmallVector<Value> stack{value};
  auto isReadAnyway = [&](Value leaf) {
    return llvm::all_of(consumers, [&](unsigned consumer) { return readsValue(consumer, leaf); });
  };
  while (!stack.empty()) {
    Value next = throughReshapes(stack.pop_back_val());
    Operation *op = next.getDefiningOp();
    if (op && isa<arith::ConstantOp>(op))
      continue;
    if (next != value && (isReadAnyway(next) || bytesOf(next) * kSmall <= bytes))
      continue;
    bool expands =
        op && groupOf(op) == group && (codegen::isElementwise(op) || isa<nn::BroadcastOp, nn::IotaOp>(op)) &&
        (next == value || expandsKept || !llvm::is_contained(groups[group].outputs, next));
    if (!expands) {
      if (next == value)
        return false;
      large.insert(next);
      continue;
    }
    if (!needed.insert(op))
      continue;
    cost += codegen::isElementwise(op) ? codegen::elementwiseCost(op) : 0;
    if (needed.size() > kRecomputedOperations)
      return false;
    stack.append(op->operand_begin(), op->operand_end());
  }
  if (large.size() > 1 || (large.size() == 1 && bytesOf(large[0]) > bytes))
    return false;
  int64_t limit = bytes <= kLargeBytes ? kRecomputedCost
                  : large.empty()      ? kRecomputedCostOfRead
                                       : kRecomputedCostOfLarge;
  if (cost > limit)
    return false;
  ops.assign(needed.begin(), needed.end());
  llvm::sort(ops, [&](Operation *a, Operation *b) { return position.lookup(a) < position.lookup(b); });
  return true;
}

void FusionGroups::copyInto(unsigned owner, Operation *place, ArrayRef<Operation *> ops,
                            ArrayRef<OpOperand *> uses, Copies &copies) {
  copies.before.emplace_back(owner, groups[owner]);
  OpBuilder builder(place);
  IRMapping mapping;
  // Reshapes of copies are copied, too.
  auto copyReshapes = [&](Value value) {
    SmallVector<Operation *> chain;
    while (!mapping.contains(value) && value.getDefiningOp<nn::ReshapeOp>()) {
      chain.push_back(value.getDefiningOp());
      value = chain.back()->getOperand(0);
    }
    if (mapping.contains(value))
      for (Operation *reshape : llvm::reverse(chain))
        copies.ops.push_back(builder.clone(*reshape, mapping));
  };
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      copyReshapes(operand);
    Operation *copy = builder.clone(*op, mapping);
    copies.ops.push_back(copy);
    groupIndex[copy] = owner;
    updateOnly[copy] = isUpdateOnly(copies.before.back().second.ops.front());
    groups[owner].ops.push_back(copy);
  }
  for (OpOperand *use : uses) {
    copies.uses.emplace_back(use, use->get());
    copyReshapes(use->get());
    use->set(mapping.lookup(use->get()));
  }
}

bool FusionGroups::keepIfGood(unsigned group, const Copies &copies) {
  FusionGroup before = groups[group];
  renumber();
  describe(groups[group]);
  Quality rest = groups[group].outputs.empty() ? qualities[group] : judge(groups[group]);
  bool isGood = rest.valid;
  SmallVector<Quality> grown;
  for (const auto &[owner, old] : copies.before) {
    FusionGroup &whole = groups[owner];
    describe(whole);
    grown.push_back(judge(whole));
    isGood &= grown.back().valid && grown.back().wasted <= qualities[owner].wasted &&
              grown.back().scattered <= qualities[owner].scattered && whole.ops.size() <= kMaxOperations &&
              whole.inputs.size() + whole.outputs.size() <= kMaxBuffers;
  }
  if (isGood) {
    qualities[group] = rest;
    for (auto [i, old] : llvm::enumerate(copies.before))
      qualities[old.first] = grown[i];
    return true;
  }
  for (auto [use, value] : copies.uses)
    use->set(value);
  for (Operation *copy : llvm::reverse(copies.ops)) {
    groupIndex.erase(copy);
    updateOnly.erase(copy);
    position.erase(copy);
    copy->erase();
  }
  groups[group] = before;
  for (const auto &[owner, old] : copies.before)
    groups[owner] = old;
  return false;
}

void FusionGroups::removeUnused(unsigned group) {
  auto isUnused = [](Operation *op) {
    SmallVector<Operation *> stack{op}, reshapes;
    while (!stack.empty())
      for (Operation *user : stack.pop_back_val()->getUsers()) {
        if (!isa<nn::ReshapeOp>(user))
          return false;
        reshapes.push_back(user);
        stack.push_back(user);
      }
    for (Operation *reshape : llvm::reverse(reshapes))
      reshape->erase();
    return true;
  };
  SmallVector<Operation *> kept;
  for (Operation *op : llvm::reverse(groups[group].ops)) {
    if (!isUnused(op)) {
      kept.push_back(op);
      continue;
    }
    groupIndex.erase(op);
    updateOnly.erase(op);
    position.erase(op);
    op->erase();
  }
  groups[group].ops.assign(kept.rbegin(), kept.rend());
  renumber();
  describe(groups[group]);
}

bool FusionGroups::findUses(Value value, llvm::MapVector<unsigned, SmallVector<OpOperand *>> &uses) const {
  bool areKernels = true;
  unsigned group = groupOf(value.getDefiningOp());
  SmallVector<Value> stack{value};
  while (!stack.empty())
    for (OpOperand &use : stack.pop_back_val().getUses()) {
      unsigned user = groupOf(use.getOwner());
      if (isa<nn::ReshapeOp>(use.getOwner()))
        stack.push_back(use.getOwner()->getResult(0));
      else if (user == ~0u)
        areKernels = false;
      else if (user != group)
        uses[user].push_back(&use);
    }
  return areKernels;
}

void FusionGroups::recomputeCheap(unsigned group) {
  // Later outputs first: they may be computed from earlier ones.
  SmallVector<Value> outputs = groups[group].outputs;
  for (Value output : llvm::reverse(outputs)) {
    if (!llvm::is_contained(groups[group].outputs, output) || // went with a later one
        bytesOf(output) < kRecomputedBytes)
      continue;
    llvm::MapVector<unsigned, SmallVector<OpOperand *>> uses;
    if (!findUses(output, uses) || !llvm::all_of(uses, [&](auto &use) { return qualities[use.first].valid; }))
      continue;
    auto consumers = llvm::map_to_vector(uses, [](auto &use) { return use.first; });
    // From as little as possible; or from another tensor that is stored in any case.
    for (bool expandsKept : {true, false}) {
      SmallVector<Operation *> ops;
      if (!collectCheap(output, group, consumers, expandsKept, ops))
        continue;
      Copies copies;
      for (auto &[consumer, operands] : uses) {
        Operation *first = operands.front()->getOwner();
        for (OpOperand *use : operands)
          if (position.lookup(use->getOwner()) < position.lookup(first))
            first = use->getOwner();
        copyInto(consumer, first, ops, operands, copies);
      }
      if (!keepIfGood(group, copies))
        continue;
      removeUnused(group);
      if (groups[group].ops.empty())
        return;
      break;
    }
  }
}

} // namespace ortc::fusion
