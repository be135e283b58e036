// Join updates of tensors to kernels of many.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Horizontal fusion of calls that nothing but the end of the entry waits for: updates of a parameter and its state.
// They are taken in the order in which their gradients come, until a kernel would have too many buffers, or too much
// would have to be kept for its last gradient.
#include "compiler/kernels/loop/JoinedLoops.h"
#include "compiler/passes/memory/JoinedCalls.h"
#include "compiler/passes/memory/Passes.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace ortc::memory {

#define GEN_PASS_DEF_JOINUPDATESPASS
#include "compiler/passes/memory/Passes.h.inc"

/// The tensor whose new value `value` is, reshaped or not, and nothing else; null where it is more.
static Attribute updatedTensor(Value value, func::FuncOp entry) {
  while (value.hasOneUse()) {
    OpOperand &use = *value.use_begin();
    if (isa<func::ReturnOp>(use.getOwner()))
      return entry.getResultAttr(use.getOperandNumber(), train::kUpdate);
    auto reshape = dyn_cast<nn::ReshapeOp>(use.getOwner());
    if (!reshape)
      return {};
    value = reshape.getResult();
  }
  return {};
}

/// The tensor that `value` is, as the entry finds it; null where it is something else.
static Attribute tensorOf(Value value, func::FuncOp entry) {
  auto argument = dyn_cast<BlockArgument>(rootOf(value));
  return argument ? entry.getArgAttr(argument.getArgNumber(), train::kTensor) : Attribute();
}

/// How many operations come one after the other up to each.
static llvm::DenseMap<Operation *, unsigned> findDepths(Block &block) {
  llvm::DenseMap<Operation *, unsigned> depths;
  for (Operation &op : block) {
    unsigned depth = 0;
    for (Value operand : op.getOperands())
      if (Operation *before = operand.getDefiningOp())
        depth = std::max(depth, depths.lookup(before));
    depths[&op] = depth + 1;
  }
  return depths;
}

namespace {

/// An update that may become a part of a kernel.
struct Update {
  func::CallOp call;
  int64_t warps = 0;  ///< of a block, for rows; 0: it computes points
  int64_t kept = 0;   ///< bytes of what it reads and what has no place as long as the entry runs
  unsigned depth = 0; ///< of the operation that makes the largest of that
};

struct Group : JoinedCalls {
  int64_t warps = 0;
  int64_t kept = 0;
  bool isSmall = false;
};

struct JoinUpdatesPass : impl::JoinUpdatesPassBase<JoinUpdatesPass> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (func::FuncOp entry : findEntries(getOperation()))
      for (Group &group : findGroups(entry, symbols))
        if (group.calls.size() > 1)
          join(entry, group, symbols);
  }

  /// What the blocks of a launch do (kernels::joinedWarps); nothing where a call stays alone.
  std::optional<int64_t> warpsOf(func::CallOp call, func::FuncOp entry, const SymbolTable &symbols) {
    if (!llvm::all_of(call.getResults(), [&](Value result) { return updatedTensor(result, entry); }))
      return std::nullopt;
    auto program = loopOf(call, symbols);
    return program ? kernels::joinedWarps(*program, sharesRows) : std::nullopt;
  }

  static Update describe(func::CallOp call, int64_t warps,
                         const llvm::DenseMap<Operation *, unsigned> &depths) {
    Update update{call, warps};
    int64_t largest = 0;
    for (Value operand : llvm::SetVector<Value>(call.operand_begin(), call.operand_end())) {
      operand = rootOf(operand);
      if (isa<BlockArgument>(operand))
        continue;
      int64_t size = plan::storedBytes(cast<ShapedType>(operand.getType()));
      update.kept += size;
      if (size > largest) {
        largest = size;
        update.depth = depths.lookup(operand.getDefiningOp());
      }
    }
    return update;
  }

  /// What one loop writes in its place, another one of the same launch must not read: a step counter, say.
  static void dropWritersOfRead(std::vector<Update> &updates, func::FuncOp entry) {
    llvm::DenseMap<Attribute, llvm::SmallPtrSet<Operation *, 2>> readers;
    for (Update &update : updates)
      for (Value operand : update.call.getOperands())
        if (Attribute tensor = tensorOf(operand, entry))
          readers[tensor].insert(update.call);
    std::erase_if(updates, [&](Update &update) {
      return llvm::any_of(update.call.getResults(), [&](Value result) {
        auto &all = readers[updatedTensor(result, entry)];
        return all.size() > all.count(update.call);
      });
    });
  }

  /// Updates of little wait as long as they like; those of much do not wait for them.
  bool isSmall(const Update &update) const { return update.kept <= bytes / 256; }

  bool fits(const Update &update, const Group &group) const {
    // Of rows, only what the others read waits: more than that is no more than sums that are joined with nothing take.
    int64_t kept = update.warps > 0 ? group.kept : group.kept + update.kept;
    return update.warps == group.warps && isSmall(update) == group.isSmall && kept <= bytes &&
           group.buffersWith(update.call) <= buffers;
  }

  SmallVector<Group> findGroups(func::FuncOp entry, const SymbolTable &symbols) {
    auto depths = findDepths(entry.getBody().front());
    std::vector<Update> updates;
    for (auto call : entry.getBody().front().getOps<func::CallOp>())
      if (auto warps = warpsOf(call, entry, symbols))
        if (Update update = describe(call, *warps, depths); update.kept <= bytes)
          updates.push_back(update);
    dropWritersOfRead(updates, entry);
    std::sort(updates.begin(), updates.end(), [&](const Update &one, const Update &other) {
      if (one.warps != other.warps)
        return one.warps < other.warps;
      if (isSmall(one) != isSmall(other))
        return isSmall(one);
      if (one.depth != other.depth)
        return one.depth < other.depth;
      return func::CallOp(one.call)->isBeforeInBlock(other.call);
    });
    SmallVector<Group> groups;
    for (const Update &update : updates) {
      if (groups.empty() || !fits(update, groups.back()))
        groups.emplace_back();
      Group &group = groups.back();
      group.add(update.call);
      group.kept += update.kept;
      group.isSmall = isSmall(update);
      group.warps = update.warps;
    }
    return groups;
  }

  /// The pairs of a call's kernel of a tensor and its new value: outputs lie nowhere else.
  static SmallVector<std::pair<int64_t, int64_t>> pairsOf(func::CallOp call, func::FuncOp entry,
                                                          func::FuncOp callee) {
    SmallVector<std::pair<int64_t, int64_t>> pairs;
    if (auto inPlace = callee->getAttrOfType<DenseI64ArrayAttr>(plan::kInPlace))
      for (size_t i = 0; i < inPlace.asArrayRef().size(); i += 2) {
        int64_t input = inPlace[i], output = inPlace[i + 1];
        if (tensorOf(call.getOperand(input), entry) == updatedTensor(call.getResult(output), entry))
          pairs.emplace_back(input, output);
      }
    return pairs;
  }

  void join(func::FuncOp entry, const Group &group, SymbolTable &symbols) {
    Operation *end = entry.getBody().front().getTerminator();
    func::CallOp joined = joinCalls(group.calls, end, symbols, [&](func::CallOp call, func::FuncOp callee) {
      return pairsOf(call, entry, callee);
    });
    for (Value result : joined.getResults())
      for (Operation *user : llvm::to_vector(result.getUsers()))
        while (isa<nn::ReshapeOp>(user)) {
          user->moveBefore(end);
          user = *user->user_begin();
        }
  }
};

} // namespace
} // namespace ortc::memory
