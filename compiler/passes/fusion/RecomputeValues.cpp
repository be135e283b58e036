// Tensors that are computed again, not kept.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that read what a cheap tensor is computed from compute it themselves. Where all its consumers do,
// nobody stores it.
#include "compiler/passes/fusion/FusionGroups.h"

#include "compiler/kernels/loop/LoopProgram.h"
#include "dialects/nn/Elementwise.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ortc::fusion {

/// What may be computed again in a consumer, rather than stored and loaded: about what the memory traffic
/// costs, of tensors that stay in a core's caches and of larger ones. A mathematical function counts 20.
static constexpr int64_t kRecomputedCost = 6, kRecomputedCostOfLarge = 24;
/// The same of large ones when nothing else large is read in their place: a sigmoid, which counts 29, but not
/// two functions.
static constexpr int64_t kRecomputedCostOfRead = 32;
/// Operations of such a copy, broadcasts included.
static constexpr size_t kRecomputedOperations = 32;
/// What a copy may cost, beside what its kernel computes anyway, that only shortens the life of a tensor.
static constexpr int64_t kEmittedCost = 6;
/// Smaller tensors are not worth it.
static constexpr int64_t kRecomputedBytes = 1024, kEmittedBytes = 1 << 20;
/// Tensors so many times smaller than another one count as nothing beside it.
static constexpr int64_t kSmall = 8;

bool FusionGroups::readsValue(unsigned reader, Value value) const {
  return llvm::any_of(groups[reader].inputs, [&](Value input) { return throughReshapes(input) == value; });
}

FusionGroups::Expression FusionGroups::collect(Value value, unsigned group, ArrayRef<unsigned> consumers,
                                               bool expandsKept) const {
  int64_t bytes = bytesOf(value);
  Expression found;
  llvm::SetVector<Value> large;
  llvm::SetVector<Operation *> needed;
  SmallVector<Value> stack{value};
  auto isReadAnyway = [&](Value leaf) {
    return llvm::all_of(consumers, [&](unsigned consumer) { return readsValue(consumer, leaf); });
  };
  while (!stack.empty() && needed.size() <= kRecomputedOperations) {
    Value next = throughReshapes(stack.pop_back_val());
    Operation *op = next.getDefiningOp();
    if (op && isa<arith::ConstantOp>(op))
      continue;
    if (next != value && (isReadAnyway(next) || bytesOf(next) * kSmall <= bytes))
      continue;
    bool expands = op && groupOf(op) == group &&
                   (nn::isElementwise(op) || isa<nn::BroadcastOp, nn::IotaOp>(op)) &&
                   (next == value || expandsKept || !llvm::is_contained(groups[group].outputs, next));
    if (!expands)
      large.insert(next);
    else if (needed.insert(op))
      stack.append(op->operand_begin(), op->operand_end());
  }
  found.ops = needed.takeVector();
  found.large = large.takeVector();
  llvm::sort(found.ops, [&](Operation *a, Operation *b) { return position.lookup(a) < position.lookup(b); });
  return found;
}

static int64_t costOf(ArrayRef<Operation *> ops) {
  int64_t cost = 0;
  for (Operation *op : ops)
    cost += nn::isElementwise(op) ? kernels::elementwiseCost(op) : 0;
  return cost;
}

static bool isCheap(Value value, ArrayRef<Operation *> ops, ArrayRef<Value> large, int64_t largeBytes) {
  if (ops.empty() || ops.size() > kRecomputedOperations || large.size() > 1)
    return false;
  int64_t bytes = bytesOf(value), cost = costOf(ops);
  if (large.empty())
    return cost <= (bytes > largeBytes ? kRecomputedCostOfRead : kRecomputedCost);
  return bytesOf(large[0]) <= bytes &&
         cost <= (bytes > largeBytes ? kRecomputedCostOfLarge : kRecomputedCost);
}

void FusionGroups::copyInto(unsigned owner, Operation *place, ArrayRef<Operation *> ops,
                            ArrayRef<OpOperand *> uses, Copies &copies, IRMapping mapping) {
  copies.before.emplace_back(owner, groups[owner]);
  size_t first = copies.ops.size();
  OpBuilder builder(place);
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
    if (mapping.contains(op->getResult(0)))
      continue;
    for (Value operand : op->getOperands())
      copyReshapes(operand);
    Operation *copy = builder.clone(*op, mapping);
    copies.ops.push_back(copy);
    groupIndex[copy] = owner;
    parts[copy] = partOf(copies.before.back().second.ops.front());
    groups[owner].ops.push_back(copy);
  }
  for (OpOperand *use : uses) {
    copies.uses.emplace_back(use, use->get());
    copyReshapes(use->get());
    use->set(mapping.lookup(use->get()));
    if (groupOf(use->getOwner()) != owner)
      copies.readers.insert(groupOf(use->getOwner()));
  }
  number(ArrayRef(copies.ops).drop_front(first));
}

void FusionGroups::takeBack(const Copies &copies) {
  for (auto [use, value] : copies.uses)
    use->set(value);
  for (Operation *copy : llvm::reverse(copies.ops)) {
    groupIndex.erase(copy);
    parts.erase(copy);
    position.erase(copy);
    copy->erase();
  }
  for (const auto &[owner, old] : copies.before)
    groups[owner] = old;
}

bool FusionGroups::keepIfGood(unsigned group, const Copies &copies) {
  FusionGroup before = groups[group];
  describe(groups[group]);
  for (unsigned reader : copies.readers)
    describe(groups[reader]);
  Quality rest = groups[group].outputs.empty() ? qualities[group] : judge(groups[group]);
  bool isGood = rest.valid;
  SmallVector<Quality> grown;
  for (const auto &[owner, old] : copies.before) {
    FusionGroup &whole = groups[owner];
    describe(whole);
    grown.push_back(judge(whole));
    isGood &= grown.back().valid && grown.back().wasted <= qualities[owner].wasted &&
              grown.back().scattered <= qualities[owner].scattered && whole.ops.size() <= limits.operations &&
              whole.inputs.size() + whole.outputs.size() <= limits.buffers;
  }
  if (isGood) {
    qualities[group] = rest;
    for (auto [i, old] : llvm::enumerate(copies.before))
      qualities[old.first] = grown[i];
    return true;
  }
  takeBack(copies);
  groups[group] = before;
  for (unsigned reader : copies.readers)
    describe(groups[reader]);
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
    parts.erase(op);
    position.erase(op);
    op->erase();
  }
  groups[group].ops.assign(kept.rbegin(), kept.rend());
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
      Expression expression = collect(output, group, consumers, expandsKept);
      if (!isCheap(output, expression.ops, expression.large, limits.largeBytes))
        continue;
      Copies copies;
      for (auto &[consumer, operands] : uses) {
        Operation *first = operands.front()->getOwner();
        for (OpOperand *use : operands)
          if (position.lookup(use->getOwner()) < position.lookup(first))
            first = use->getOwner();
        copyInto(consumer, first, expression.ops, operands, copies);
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

IRMapping FusionGroups::findSame(ArrayRef<Operation *> ops, unsigned owner) const {
  IRMapping same;
  auto areSame = [&](Value a, Value b) {
    Value x = throughReshapes(a), y = throughReshapes(b);
    auto constant = x.getDefiningOp<arith::ConstantOp>(), other = y.getDefiningOp<arith::ConstantOp>();
    bool isSame = constant && other ? constant.getValue() == other.getValue() : same.lookupOrDefault(x) == y;
    return success(isSame && a.getType() == b.getType());
  };
  for (Operation *op : ops)
    for (Operation *other : groups[owner].ops)
      if (OperationEquivalence::isEquivalentTo(op, other, areSame, nullptr,
                                               OperationEquivalence::IgnoreLocations)) {
        same.map(op->getResults(), other->getResults());
        break;
      }
  return same;
}

bool FusionGroups::emitAgain(Value value, unsigned group, unsigned owner) {
  llvm::MapVector<unsigned, SmallVector<OpOperand *>> uses;
  if (owner == group || !qualities[owner].valid || !findUses(value, uses) || uses.contains(owner))
    return false;
  Expression expression = collect(value, group, owner, true);
  if (expression.ops.empty() || expression.ops.size() > kRecomputedOperations || !expression.large.empty())
    return false;
  IRMapping same = findSame(expression.ops, owner);
  auto added =
      llvm::filter_to_vector(expression.ops, [&](Operation *op) { return !same.contains(op->getResult(0)); });
  if (costOf(added) > kEmittedCost)
    return false;
  // Some need the value before the kernel can run, and the others, products, can wait for it.
  SmallVector<OpOperand *> late;
  llvm::SetVector<unsigned> products;
  for (auto &[user, operands] : uses) {
    if (reads(owner, user) || hasIndirectPath(user, owner))
      continue;
    if (!llvm::any_of(groups[user].ops, llvm::IsaPred<nn::DotOp>) || partOf(owner) > partOf(user))
      return false;
    products.insert(user);
    llvm::append_range(late, operands);
  }
  if (products.empty() || products.size() == uses.size())
    return false;
  Copies copies;
  copyInto(owner, groups[owner].ops.back()->getNextNode(), expression.ops, late, copies, same);
  if (!keepIfGood(group, copies))
    return false;
  for (unsigned product : products)
    order->putBefore(owner, product, [&](unsigned from, llvm::function_ref<void(unsigned)> visit) {
      forReaders(from, visit);
    });
  return true;
}

void FusionGroups::emitAgain(unsigned group) {
  SmallVector<Value> outputs = groups[group].outputs;
  for (Value output : outputs) {
    if (bytesOf(output) < kEmittedBytes)
      continue;
    llvm::SetVector<unsigned> owners;
    auto insert = [&](unsigned reader) { owners.insert(reader); };
    for (ArrayRef<Value> values : {ArrayRef(groups[group].inputs), ArrayRef(groups[group].outputs)})
      for (Value value : values)
        if (bytesOf(value) * kSmall > bytesOf(output))
          forReaders(throughReshapes(value), insert);
    for (unsigned owner : owners)
      if (emitAgain(output, group, owner))
        break;
  }
}

} // namespace ortc::fusion
