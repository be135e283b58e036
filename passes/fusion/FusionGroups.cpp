//===- FusionGroups.cpp - which operations become one kernel --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/fusion/FusionGroups.h"

#include "compiler/codegen/loop/SingleKernels.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ortc::fusion {

/// Larger kernels are not better ones.
static constexpr size_t kMaxOperations = 160, kMaxBuffers = 28;
/// Cheaper work may be repeated along a dimension rather than stored.
static constexpr int64_t kRepeatedCost = 3;
/// Pieces of work below which joining must not reduce their number.
static constexpr int64_t kParallelPieces = 8;

Value throughReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getInput();
  return value;
}

static int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

static bool belongsToNoGroup(Operation *op) {
  return isa<nn::ReshapeOp, arith::ConstantOp>(op) || op->hasTrait<OpTrait::IsTerminator>();
}

FusionGroups::FusionGroups(Block &block) : block(block) {
  for (auto [i, op] : llvm::enumerate(block))
    position[&op] = i;
  classify();
  for (Operation &op : block) {
    if (belongsToNoGroup(&op))
      continue;
    groupIndex[&op] = groups.size();
    groups.emplace_back().ops.push_back(&op);
  }
  for (FusionGroup &group : groups) {
    describe(group);
    qualities.push_back(judge(group));
  }
}

void FusionGroups::classify() {
  auto function = dyn_cast<func::FuncOp>(block.getParentOp());
  for (Operation &op : llvm::reverse(block)) {
    bool only = !op.use_empty();
    for (OpOperand &use : op.getUses()) {
      Operation *user = use.getOwner();
      if (user == block.getTerminator())
        only &= function && function.getResultAttr(use.getOperandNumber(), train::kUpdate) != nullptr;
      else
        only &= updateOnly.lookup(user);
    }
    updateOnly[&op] = only;
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
          if (isa<nn::ReshapeOp>(user))
            stack.push_back(user->getResult(0));
          else
            leaves |= !members.contains(user);
        }
      if (leaves)
        group.outputs.push_back(result);
    }
  }
  group.inputs = inputs.takeVector();
}

FusionGroups::Quality FusionGroups::judge(const FusionGroup &group) const {
  Quality quality;
  if (!llvm::all_of(group.ops, codegen::isLoopOperation) || group.outputs.empty())
    return quality;
  std::string reason;
  auto program = codegen::analyzeLoops(group.inputs, group.outputs, reason);
  if (!program)
    return quality;
  quality.valid = true;
  uint64_t reduced = program->reducedMask(), parallel = ((uint64_t(1) << program->dims.size()) - 1) & ~reduced;
  int64_t points = program->elements(false) * program->elements(true);
  if (program->laneDim >= 0) {
    uint64_t lane = uint64_t(1) << program->laneDim;
    for (const auto &node : program->nodes) {
      bool varies = node.dims & lane;
      // Values of a row are computed once per row; everything else should change with every dimension.
      bool isRepeated = (node.dims & parallel) != parallel || ((node.dims & reduced) != 0 && (node.dims & reduced) != reduced);
      if (varies && node.kind == codegen::LoopNode::operation && isRepeated && node.cost > kRepeatedCost)
        quality.wasted += node.cost * points;
      if (!varies || node.kind != codegen::LoopNode::load)
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
  quality.parallel = program->lanesReduced() ? program->elements(false)
                                             : program->elements(false) / lanes * ((lanes + 63) / 64);
  return quality;
}

FusionGroup FusionGroups::united(unsigned a, unsigned b) const {
  FusionGroup group;
  group.ops.append(groups[a].ops);
  group.ops.append(groups[b].ops);
  describe(group);
  return group;
}

bool FusionGroups::hasIndirectPath(unsigned from, unsigned to) const {
  // Operations reached from `from` directly (but for reshapes), and through another group.
  llvm::DenseSet<Operation *> seen[2];
  SmallVector<std::pair<Operation *, bool>> stack;
  llvm::DenseSet<unsigned> expanded;
  auto push = [&](Operation *op, bool indirect) {
    for (Operation *user : op->getUsers())
      if (seen[indirect].insert(user).second)
        stack.push_back({user, indirect});
  };
  for (Operation *op : groups[from].ops)
    push(op, false);
  while (!stack.empty()) {
    auto [op, indirect] = stack.pop_back_val();
    unsigned group = groupOf(op);
    if (group == to && indirect)
      return true;
    if (group == to || group == from)
      continue;
    if (group == ~0u)
      push(op, indirect);
    else if (expanded.insert(group).second)
      for (Operation *member : groups[group].ops)
        push(member, true);
  }
  return false;
}

bool FusionGroups::tryJoin(unsigned a, unsigned b) {
  if (!qualities[a].valid || !qualities[b].valid || groups[a].ops.size() + groups[b].ops.size() > kMaxOperations)
    return false;
  if (isUpdateOnly(groups[a].ops.front()) != isUpdateOnly(groups[b].ops.front()))
    return false;
  FusionGroup whole = united(a, b);
  if (whole.inputs.size() + whole.outputs.size() > kMaxBuffers)
    return false;
  Quality quality = judge(whole);
  if (!quality.valid || quality.wasted > qualities[a].wasted + qualities[b].wasted ||
      quality.scattered > qualities[a].scattered + qualities[b].scattered)
    return false;
  int64_t parallel = std::max(qualities[a].parallel, qualities[b].parallel);
  if (quality.parallel < parallel && quality.parallel < kParallelPieces) {
    int64_t bytes = 0;
    for (Value value : whole.inputs)
      bytes = std::max(bytes, bytesOf(value));
    if (bytes > (int64_t(1) << 16))
      return false;
  }
  if (hasIndirectPath(a, b) || hasIndirectPath(b, a))
    return false;
  for (Operation *op : groups[b].ops)
    groupIndex[op] = a;
  groups[a] = std::move(whole);
  groups[b] = FusionGroup();
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

bool FusionGroups::joinSiblings() {
  bool changed = false;
  for (unsigned a = 0; a < groups.size(); ++a) {
    if (groups[a].ops.empty() || !qualities[a].valid)
      continue;
    // Groups that read what this one reads.
    llvm::SetVector<unsigned> others;
    for (Value input : groups[a].inputs) {
      SmallVector<Value> stack{throughReshapes(input)};
      while (!stack.empty())
        for (Operation *user : stack.pop_back_val().getUsers()) {
          if (isa<nn::ReshapeOp>(user))
            stack.push_back(user->getResult(0));
          else if (unsigned other = groupOf(user); other != ~0u && other > a)
            others.insert(other);
        }
    }
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

void FusionGroups::fuse() {
  while (joinProducers()) {
  }
  while (joinSiblings()) {
  }
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
