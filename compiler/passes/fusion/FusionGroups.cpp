// Which operations become one kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/fusion/FusionGroups.h"

#include "compiler/kernels/KernelForm.h"
#include "compiler/kernels/conv/ConvForm.h"
#include "compiler/kernels/loop/LoopProgram.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

#include <set>

using namespace mlir;

namespace ortc::fusion {

/// Cheaper work may be repeated along a dimension rather than stored.
static constexpr int64_t kRepeatedCost = 3;
/// Values of an expression that may be computed twice: a chain of shifted sums would double them with every link.
static constexpr size_t kRepeatedNodes = 64;
/// Readers of one value: every pair of more would take too long to look at. Then so many next ones are, as
/// one kernel takes no more.
static constexpr size_t kMaxReaders = 256, kNextReaders = 32;
/// Between the positions of neighbours.
static constexpr uint64_t kGap = uint64_t(1) << 20;

Value throughReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getInput();
  return value;
}

int64_t bytesOf(Value value) { return plan::storedBytes(cast<ShapedType>(value.getType())); }

bool readsNarrow(Operation *op) {
  return isa<nn::DotOp, nn::ConvOp, nn::ConvInputGradOp, nn::ConvFilterGradOp>(op);
}

static bool belongsToNoGroup(Operation *op) {
  return isa<nn::ReshapeOp, arith::ConstantOp>(op) || op->hasTrait<OpTrait::IsTerminator>();
}

void FusionGroups::renumber() {
  for (auto [i, op] : llvm::enumerate(block))
    position[&op] = (i + 1) * kGap;
}

void FusionGroups::number(ArrayRef<Operation *> copies) {
  if (copies.empty())
    return;
  Operation *before = copies.front()->getPrevNode(), *behind = copies.back()->getNextNode();
  uint64_t first = before ? position.lookup(before) : 0, last = position.lookup(behind),
           step = (last - first) / (copies.size() + 1);
  if (step == 0)
    return renumber();
  for (auto [i, copy] : llvm::enumerate(copies))
    position[copy] = first + (i + 1) * step;
}

bool FusionGroups::hasManyReaders(Value value) const {
  SmallVector<Value> stack{value};
  size_t readers = 0;
  while (!stack.empty())
    for (Operation *user : stack.pop_back_val().getUsers()) {
      if (++readers > kMaxReaders)
        return true;
      if (isa<nn::ReshapeOp>(user))
        stack.push_back(user->getResult(0));
    }
  return false;
}

void FusionGroups::addGroup(ArrayRef<Operation *> ops) {
  FusionGroup &group = groups.emplace_back();
  auto add = [&](Operation *op) {
    if (groupIndex.try_emplace(op, groups.size() - 1).second)
      group.ops.push_back(op);
  };
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      if (Operation *widening = operand.getDefiningOp(); widening && findConvertedProduct(widening) == op)
        add(widening);
    add(op);
    if (readsNarrow(op))
      for (Operation *user : op->getUsers())
        if (findConvertedProduct(user) == op)
          add(user);
  }
}

/// Puts groups after those that they read; of several that could be next, the one whose last operation comes first.
void FusionGroups::sortGroups() {
  std::vector<unsigned> missing(groups.size(), 0);
  for (unsigned group = 0; group < groups.size(); ++group)
    forReaders(group, [&](unsigned reader) { ++missing[reader]; });
  std::set<std::pair<uint64_t, unsigned>> ready;
  auto add = [&](unsigned group) { ready.insert({position.lookup(groups[group].ops.back()), group}); };
  for (unsigned group = 0; group < groups.size(); ++group)
    if (missing[group] == 0)
      add(group);
  std::vector<FusionGroup> sorted;
  llvm::DenseMap<Operation *, unsigned> index;
  while (!ready.empty()) {
    unsigned next = ready.begin()->second;
    ready.erase(ready.begin());
    forReaders(next, [&](unsigned reader) {
      if (--missing[reader] == 0)
        add(reader);
    });
    for (Operation *op : groups[next].ops)
      index[op] = sorted.size();
    sorted.push_back(groups[next]); // still asked for its readers
  }
  assert(sorted.size() == groups.size() && "groups have no cycles");
  groups = std::move(sorted);
  groupIndex = std::move(index);
}

FusionGroups::FusionGroups(Block &block, const kernels::FusionLimits &limits,
                           ArrayRef<SmallVector<Operation *>> formed)
    : block(block), limits(limits) {
  renumber();
  classify();
  for (ArrayRef<Operation *> ops : formed)
    addGroup(ops);
  for (Operation &op : block)
    if (!belongsToNoGroup(&op) && !findConvertedProduct(&op) && !groupIndex.contains(&op))
      addGroup(&op);
  for (FusionGroup &group : groups)
    describe(group);
  if (!formed.empty())
    sortGroups();
  for (FusionGroup &group : groups)
    qualities.push_back(judge(group));
  order.emplace(groups.size());
}

Operation *FusionGroups::findConvertedProduct(Operation *op) {
  Operation *product = nullptr;
  if (isa<arith::TruncFOp>(op) && op->getOperand(0).hasOneUse()) {
    product = op->getOperand(0).getDefiningOp();
    if (product && !kernels::storesWholeSums(product))
      return nullptr;
  } else if (op->getNumResults() == 1 && kernels::findWidening(op->getResult(0)) && op->hasOneUse())
    product = *op->user_begin();
  return product && readsNarrow(product) ? product : nullptr;
}

void FusionGroups::classify() {
  auto function = dyn_cast<func::FuncOp>(block.getParentOp());
  // Where a program is cut behind its forward part, that makes the new state, too.
  bool isCut = function && train::isForwardBackward(function);
  auto partOfResult = [&](unsigned result) {
    if (isCut)
      return function.getResultAttr(result, train::kBackward) ? Part::backward : Part::forward;
    // A gradient for the host ends the forward part where the update of a step would.
    bool isOfUpdate =
        function && llvm::any_of(ArrayRef{train::kUpdate, train::kGradient, train::kBackward},
                                 [&](StringRef name) { return bool(function.getResultAttr(result, name)); });
    return isOfUpdate ? Part::update : Part::forward;
  };
  for (Operation &op : llvm::reverse(block)) {
    Part first = op.use_empty() ? Part::forward : Part::update;
    for (OpOperand &use : op.getUses())
      first = std::min(first, use.getOwner() == block.getTerminator() ? partOfResult(use.getOperandNumber())
                                                                      : partOf(use.getOwner()));
    parts[&op] = first;
  }
}

unsigned FusionGroups::groupOf(Operation *op) const {
  auto found = groupIndex.find(op);
  return found == groupIndex.end() ? ~0u : found->second;
}

void FusionGroups::describe(FusionGroup &group) const {
  llvm::sort(group.ops, [&](Operation *a, Operation *b) { return position.lookup(a) < position.lookup(b); });
  llvm::SmallPtrSet<Operation *, 16> members(group.ops.begin(), group.ops.end());
  llvm::SetVector<Value> inputs;
  group.outputs.clear();
  for (Operation *op : group.ops) {
    for (Value operand : op->getOperands()) {
      Value root = throughReshapes(operand);
      Operation *definition = root.getDefiningOp();
      bool isInside = definition && (members.contains(definition) || isa<arith::ConstantOp>(definition));
      if (!isInside)
        inputs.insert(operand);
    }
    for (Value result : op->getResults()) {
      SmallVector<Value> stack{result};
      bool leaves = false;
      while (!stack.empty() && !leaves)
        for (Operation *user : stack.pop_back_val().getUsers()) {
          if (isa<nn::ReshapeOp>(user)) {
            stack.push_back(user->getResult(0));
          } else if (!members.contains(user)) {
            leaves = true;
            break;
          }
        }
      if (leaves)
        group.outputs.push_back(result);
    }
  }
  group.inputs = inputs.takeVector();
}

FusionGroups::Quality FusionGroups::judge(const FusionGroup &group) const {
  Quality quality;
  if (!llvm::all_of(group.ops, kernels::isLoopOperation) || group.outputs.empty())
    return quality;
  std::string reason;
  auto program = kernels::analyzeLoops(group.inputs, group.outputs, reason);
  if (!program)
    return quality;
  quality.valid = true;
  quality.nodes = program->nodes.size();
  uint64_t reduced = program->reducedMask(),
           parallel = ((uint64_t(1) << program->dims.size()) - 1) & ~reduced;
  int64_t points = program->elements(false) * program->elements(true);
  if (program->laneDim >= 0) {
    uint64_t lane = uint64_t(1) << program->laneDim;
    for (const auto &node : program->nodes) {
      bool varies = node.dims & lane;
      // Values of a row are computed once per row; everything else should change with every dimension.
      bool isRepeated = (node.dims & parallel) != parallel ||
                        ((node.dims & reduced) != 0 && (node.dims & reduced) != reduced);
      bool computes = node.kind == kernels::LoopNode::operation || node.kind == kernels::LoopNode::random;
      if (varies && computes && isRepeated && node.cost > kRepeatedCost)
        quality.wasted += node.cost * points;
      if (!varies || node.kind != kernels::LoopNode::load || program->isLookup(node))
        continue;
      int64_t scale = node.at.scales[program->laneDim];
      bool scattered = scale != 0 && scale != 1 && scale != -1;
      for (const auto &term : node.at.dynamic)
        scattered |= (program->nodes[term.node].dims & lane) != 0;
      // In a reduction each pass reads it again.
      quality.scattered += scattered ? points * program->passes : 0;
    }
  }
  int64_t lanes = program->laneDim >= 0 ? program->dims[program->laneDim].size : 1;
  quality.parallel = program->lanesReduced()
                         ? program->elements(false) * (lanes >= limits.longRow ? limits.longRowPieces : 1)
                         : program->elements(false) / lanes * ((lanes + 63) / 64);
  if (limits.columnRows > 0 && !program->lanesReduced() && !program->reductions.empty())
    quality.parallel *= program->elements(true);
  return quality;
}

FusionGroup FusionGroups::united(unsigned a, unsigned b) const {
  FusionGroup group;
  group.ops.append(groups[a].ops);
  group.ops.append(groups[b].ops);
  describe(group);
  return group;
}

bool FusionGroups::reads(unsigned reader, unsigned other) const {
  return llvm::any_of(groups[reader].inputs, [&](Value input) {
    Operation *producer = throughReshapes(input).getDefiningOp();
    return producer && groupOf(producer) == other;
  });
}

void FusionGroups::forReaders(Value value, llvm::function_ref<void(unsigned)> visit) const {
  SmallVector<Value> stack{value};
  while (!stack.empty())
    for (Operation *user : stack.pop_back_val().getUsers()) {
      if (isa<nn::ReshapeOp>(user))
        stack.push_back(user->getResult(0));
      else if (unsigned reader = groupOf(user); reader != ~0u)
        visit(reader);
    }
}

void FusionGroups::forReaders(unsigned group, llvm::function_ref<void(unsigned)> visit) const {
  for (Value output : groups[group].outputs)
    forReaders(output, [&](unsigned reader) {
      if (reader != group)
        visit(reader);
    });
}

bool FusionGroups::hasIndirectPath(unsigned from, unsigned to) {
  return order->hasIndirectPath(
      from, to, [&](unsigned group, llvm::function_ref<void(unsigned)> visit) { forReaders(group, visit); });
}

void FusionGroups::join(unsigned a, unsigned b, FusionGroup whole) {
  order->join(a, b,
              [&](unsigned group, llvm::function_ref<void(unsigned)> visit) { forReaders(group, visit); });
  for (Operation *op : groups[b].ops)
    groupIndex[op] = a;
  groups[a] = std::move(whole);
  groups[b] = FusionGroup();
}

bool FusionGroups::tryJoin(unsigned a, unsigned b) {
  if (!qualities[a].valid || !qualities[b].valid ||
      groups[a].ops.size() + groups[b].ops.size() > limits.operations)
    return false;
  // Groups grow, and paths stay: what was refused is refused again until one of the two has grown.
  std::pair<size_t, size_t> sizes{groups[a].ops.size(), groups[b].ops.size()};
  auto [refusal, isNew] = refused.try_emplace({a, b}, sizes);
  if (!isNew && refusal->second == sizes)
    return false;
  refusal->second = sizes;
  if (partOf(a) != partOf(b))
    return false;
  FusionGroup whole = united(a, b);
  if (whole.inputs.size() + whole.outputs.size() > limits.buffers)
    return false;
  Quality quality = judge(whole);
  if (!quality.valid || quality.wasted > qualities[a].wasted + qualities[b].wasted ||
      quality.scattered > qualities[a].scattered + qualities[b].scattered ||
      2 * quality.nodes > 3 * (qualities[a].nodes + qualities[b].nodes) + kRepeatedNodes)
    return false;
  int64_t parallel = std::max(qualities[a].parallel, qualities[b].parallel);
  if (quality.parallel < parallel && quality.parallel < limits.parallelPieces) {
    int64_t bytes = 0;
    for (Value value : whole.inputs)
      bytes = std::max(bytes, bytesOf(value));
    if (bytes > (int64_t(1) << 16))
      return false;
  }
  // There is no cycle: where one group reads the other, no path leads back.
  if ((!reads(a, b) && hasIndirectPath(a, b)) || (!reads(b, a) && hasIndirectPath(b, a)))
    return false;
  join(a, b, std::move(whole));
  qualities[a] = quality;
  return true;
}

bool FusionGroups::joinProducers() {
  bool changed = false;
  for (Operation &op : block) {
    if (groupOf(&op) == ~0u)
      continue;
    for (Value operand : op.getOperands()) {
      Operation *producer = throughReshapes(operand).getDefiningOp();
      unsigned from = producer ? groupOf(producer) : ~0u, to = groupOf(&op);
      if (from != ~0u && from != to)
        changed |= tryJoin(from, to);
    }
  }
  return changed;
}

int64_t FusionGroups::sharedBytes(unsigned a, unsigned b) const {
  int64_t bytes = 0;
  for (Value x : groups[a].inputs)
    for (Value y : groups[b].inputs)
      if (throughReshapes(x) == throughReshapes(y))
        bytes += bytesOf(x);
  return bytes;
}

void FusionGroups::forSiblings(unsigned group, Value value, llvm::function_ref<void(unsigned)> visit) {
  if (!hasManyReaders(value))
    return forReaders(value, [&](unsigned other) {
      if (other > group)
        visit(other);
    });
  auto [known, isNew] = crowds.try_emplace(value);
  std::vector<unsigned> &readers = known->second;
  if (isNew) {
    forReaders(value, [&](unsigned reader) { readers.push_back(reader); });
    llvm::sort(readers);
    readers.erase(llvm::unique(readers), readers.end());
  }
  auto next = llvm::upper_bound(readers, group);
  for (size_t i = 0; i < kNextReaders && next != readers.end(); ++next, ++i)
    visit(*next);
}

bool FusionGroups::joinSiblings() {
  bool changed = false;
  crowds.clear();
  for (unsigned a = 0; a < groups.size(); ++a) {
    if (groups[a].ops.empty() || !qualities[a].valid)
      continue;
    // Groups that read what this one reads.
    llvm::SetVector<unsigned> others;
    for (Value input : groups[a].inputs)
      forSiblings(a, throughReshapes(input), [&](unsigned other) { others.insert(other); });
    SmallVector<unsigned> sorted(others.begin(), others.end());
    llvm::sort(sorted);
    for (unsigned b : sorted) {
      if (groups[b].ops.empty() || !qualities[b].valid)
        continue;
      int64_t own = 0;
      for (Value input : groups[b].inputs)
        own += bytesOf(input);
      // Worth it when a good part of what the other reads is read anyway.
      if (sharedBytes(a, b) * 3 >= own && own >= 4096)
        changed |= tryJoin(a, b);
    }
  }
  return changed;
}

/// Whether the kernel of `op` can work on the result before it is stored.
static bool takesEpilogue(Operation *op) { return kernels::formOf(op).takesEpilogue(op); }

/// Whether the update `other` should stay a kernel of its own: somebody else wants the gradient, too, or it
/// is small. A small one waits in a cache, and a tile computes an update more slowly than a loop does (mlp:
/// 7.1 ms a step apart, 7.8 together); a large one is spared its way to memory and back. Behind a scatter the
/// update is a loop. The update waits for the last reader of the parameter, and what a filter gradient reads
/// waits with it: where any of that is larger than the gradient it does not.
bool FusionGroups::isUpdateApart(unsigned dot, unsigned other, const FusionGroup &whole) const {
  Operation *op = *llvm::find_if(groups[dot].ops, takesEpilogue);
  if (partOf(other) != Part::update || isa<nn::ScatterAddOp>(op))
    return false;
  auto isLarger = [&](Value operand) { return bytesOf(operand) > bytesOf(op->getResult(0)); };
  if (isa<nn::ConvFilterGradOp>(op) && llvm::any_of(op->getOperands(), isLarger))
    return true;
  // Everything after the loss counts as update where a program is not cut: only what a function gives is one.
  if (limits.fewKernels && isa<nn::DotOp>(op) && llvm::none_of(groups[other].ops, [&](Operation *each) {
        return llvm::is_contained(each->getUsers(), block.getTerminator());
      }))
    return false;
  return llvm::any_of(groups[dot].outputs, [&](Value gradient) {
    return bytesOf(gradient) <= limits.largeBytes || llvm::is_contained(whole.outputs, gradient);
  });
}

/// Joins the group of a dot, convolution or scatter with elementwise work on its result (or, the other way
/// round, with views of its operands) when one kernel computes both.
bool FusionGroups::tryJoinContraction(unsigned dot, unsigned other) {
  if (!qualities[other].valid ||
      groups[dot].ops.size() + groups[other].ops.size() > limits.epilogueOperations ||
      (partOf(dot) == Part::backward) != (partOf(other) == Part::backward))
    return false;
  FusionGroup whole = united(dot, other);
  std::string reason;
  if (isUpdateApart(dot, other, whole) || whole.inputs.size() + whole.outputs.size() > limits.buffers ||
      hasIndirectPath(dot, other) || hasIndirectPath(other, dot) ||
      !kernels::formOf(whole.ops).suits(whole.inputs, whole.outputs, limits, reason))
    return false;
  join(dot, other, std::move(whole));
  return true;
}

/// After loops have found together: what is left between a dot and the next kernel becomes its epilogue.
void FusionGroups::joinContractions() {
  for (Operation &op : block) {
    if (!takesEpilogue(&op))
      continue;
    unsigned dot = groupOf(&op);
    bool changed = !llvm::any_of(op.getResults(), [&](Value result) { return hasManyReaders(result); });
    while (changed) {
      changed = false;
      llvm::SetVector<unsigned> others;
      forReaders(dot, [&](unsigned other) { others.insert(other); });
      SmallVector<unsigned> sorted(others.begin(), others.end());
      llvm::sort(sorted);
      for (unsigned other : sorted)
        changed |= !groups[other].ops.empty() && tryJoinContraction(dot, other);
    }
    for (Value operand : op.getOperands()) {
      auto widening = kernels::findWidening(operand);
      Operation *producer = throughReshapes(widening ? widening->from : operand).getDefiningOp();
      unsigned from = producer ? groupOf(producer) : ~0u;
      if (from != ~0u && from != dot)
        tryJoinContraction(dot, from);
    }
  }
}

void FusionGroups::joinViews() {
  auto moves = [&](unsigned group) {
    return llvm::all_of(groups[group].ops,
                        [](Operation *op) { return isa<nn::TransposeOp, nn::SliceOp, nn::BroadcastOp>(op); });
  };
  for (Operation &op : block) {
    if (!readsNarrow(&op))
      continue;
    unsigned product = groupOf(&op);
    for (bool changed = true; changed;) {
      changed = false;
      for (Value input : SmallVector<Value>(groups[product].inputs)) {
        Operation *producer = throughReshapes(input).getDefiningOp();
        unsigned from = producer ? groupOf(producer) : ~0u;
        changed |= from != ~0u && from != product && moves(from) && tryJoinContraction(product, from);
      }
    }
  }
}

void FusionGroups::fuse() {
  if (limits.fewKernels)
    joinViews();
  while (joinProducers()) {
  }
  while (joinSiblings()) {
  }
  for (unsigned group = 0; group < groups.size(); ++group)
    if (!groups[group].ops.empty() && qualities[group].valid)
      recomputeCheap(group);
  for (unsigned group = 0; group < groups.size(); ++group)
    if (!groups[group].ops.empty() && qualities[group].valid)
      emitAgain(group);
  joinContractions();
}

std::vector<FusionGroup> FusionGroups::take() {
  std::vector<FusionGroup> result;
  for (FusionGroup &group : groups)
    if (!group.ops.empty())
      result.push_back(std::move(group));
  llvm::sort(result, [&](const FusionGroup &a, const FusionGroup &b) {
    return position.lookup(a.ops.back()) < position.lookup(b.ops.back());
  });
  return result;
}

} // namespace ortc::fusion
