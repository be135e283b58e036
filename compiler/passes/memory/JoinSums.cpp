// Join sums over rows, and kernels of few numbers, to kernels of many.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Horizontal fusion of calls that do not wait for each other. They are taken in the order of the program: each becomes
// part of the latest group that it neither leads to nor follows from, as long as what the earlier ones read, and would
// be gone by then, is not too much. An order of the program in which the calls of a group are one step is kept
// meanwhile.
#include "compiler/kernels/loop/JoinedLoops.h"
#include "compiler/passes/fusion/GroupOrder.h"
#include "compiler/passes/memory/JoinedCalls.h"
#include "compiler/passes/memory/Passes.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace ortc::memory {

#define GEN_PASS_DEF_JOINSUMSPASS
#include "compiler/passes/memory/Passes.h.inc"

/// Results of a kernel of few numbers at most: what a block computes at once.
static constexpr int64_t kFewPoints = 256;

namespace {

/// The operations of a block, some of which are taken for one.
class CallOrder {
public:
  explicit CallOrder(Block &block) {
    for (Operation &op : block) {
      leaders[&op] = members.size();
      members.push_back({&op});
    }
    order.emplace(members.size());
  }

  /// Whether one of the two needs the other.
  bool areApart(Operation *a, Operation *b) {
    unsigned first = leaders.lookup(a), second = leaders.lookup(b);
    return !leads(first, second) && !leads(second, first);
  }
  void join(Operation *a, Operation *b) {
    unsigned first = leaders.lookup(a), second = leaders.lookup(b);
    order->join(first, second, successors);
    for (Operation *op : members[second])
      leaders[op] = first;
    members[first].append(members[second]);
    members[second].clear();
  }

private:
  bool leads(unsigned from, unsigned to) {
    bool isNext = false;
    forSuccessors(from, [&](unsigned next) { isNext |= next == to; });
    return isNext || order->hasIndirectPath(from, to, successors);
  }
  void forSuccessors(unsigned node, llvm::function_ref<void(unsigned)> visit) const {
    for (Operation *op : members[node])
      for (Operation *user : op->getUsers())
        visit(leaders.lookup(op->getBlock()->findAncestorOpInBlock(*user)));
  }

  llvm::DenseMap<Operation *, unsigned> leaders;
  std::vector<SmallVector<Operation *, 1>> members;
  std::optional<fusion::GroupOrder> order;
  std::function<void(unsigned, llvm::function_ref<void(unsigned)>)> successors =
      [this](unsigned node, llvm::function_ref<void(unsigned)> visit) { forSuccessors(node, visit); };
};

struct Group : JoinedCalls {
  int64_t warps = 0; ///< what the blocks do (kernels::joinedWarps)
  int64_t kept = 0;  ///< bytes that the calls read and that have no place as long as the entry runs
  llvm::DenseSet<Value> read;
};

struct JoinSumsPass : impl::JoinSumsPassBase<JoinSumsPass> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (func::FuncOp entry : findEntries(getOperation())) {
      bool changed = false;
      for (Group &group : findGroups(entry, symbols))
        if (group.calls.size() > 1) {
          joinCalls(group.calls, group.calls.back(), symbols,
                    [](func::CallOp, func::FuncOp) { return SmallVector<std::pair<int64_t, int64_t>>(); });
          changed = true;
        }
      if (changed)
        sortTopologically(&entry.getBody().front());
    }
  }

  /// What the blocks of a launch do; nothing where a call stays alone.
  static std::optional<int64_t> warpsOf(func::CallOp call, const SymbolTable &symbols) {
    auto program = loopOf(call, symbols);
    auto warps = program ? kernels::joinedWarps(*program, /*sharesRows=*/true) : std::nullopt;
    if (!warps)
      return std::nullopt;
    bool isSum =
        llvm::all_of(program->outputs, [](const kernels::LoopOutput &output) { return output.perRow; });
    bool isSmall = program->elements(/*reduced=*/false) <= kFewPoints;
    return (*warps > 0 ? isSum : isSmall) ? warps : std::nullopt;
  }

  /// Tensors that the entry changes, where something else waits for the new value: what reads the old one must not wait
  /// for that.
  static llvm::DenseSet<Attribute> findChanged(func::FuncOp entry) {
    llvm::DenseSet<Attribute> changed;
    Operation *end = entry.getBody().front().getTerminator();
    for (OpOperand &result : end->getOpOperands())
      if (Attribute tensor = entry.getResultAttr(result.getOperandNumber(), train::kUpdate))
        if (Operation *writer = rootOf(result.get()).getDefiningOp())
          for (Value value : writer->getResults())
            for (Operation *user : value.getUsers())
              if (user != end && !isa<nn::ReshapeOp>(user))
                changed.insert(tensor);
    return changed;
  }

  /// Whether a call reads or writes what has a place and changes: it has its own.
  static bool touches(func::CallOp call, func::FuncOp entry, const llvm::DenseSet<Attribute> &changed) {
    for (Value operand : call.getOperands())
      if (auto argument = dyn_cast<BlockArgument>(rootOf(operand)))
        if (Attribute tensor = entry.getArgAttr(argument.getArgNumber(), train::kTensor);
            tensor && changed.contains(tensor))
          return true;
    return llvm::any_of(call.getResults(), [&](Value result) {
      SmallVector<Value> stack{result};
      while (!stack.empty())
        for (OpOperand &use : stack.pop_back_val().getUses()) {
          if (isa<nn::ReshapeOp>(use.getOwner()))
            stack.push_back(use.getOwner()->getResult(0));
          else if (isa<func::ReturnOp>(use.getOwner()) &&
                   entry.getResultAttr(use.getOperandNumber(), train::kUpdate))
            return true;
        }
      return false;
    });
  }

  bool fits(func::CallOp call, const Group &group) const {
    return group.kept <= bytes && group.buffersWith(call) <= buffers;
  }

  static void add(func::CallOp call, Group &group) {
    group.add(call);
    for (Value operand : call.getOperands())
      if (Value root = rootOf(operand); !isa<BlockArgument>(root) && group.read.insert(root).second)
        group.kept += plan::storedBytes(cast<ShapedType>(root.getType()));
  }

  SmallVector<Group> findGroups(func::FuncOp entry, const SymbolTable &symbols) {
    Block &block = entry.getBody().front();
    llvm::DenseSet<Attribute> changed = findChanged(entry);
    CallOrder order(block);
    SmallVector<Group> groups;
    for (auto call : block.getOps<func::CallOp>()) {
      auto warps = warpsOf(call, symbols);
      if (!warps || touches(call, entry, changed))
        continue;
      auto found = llvm::find_if(llvm::reverse(groups), [&](const Group &group) {
        return group.warps == *warps && fits(call, group) && order.areApart(group.calls.front(), call);
      });
      bool isNew = found == groups.rend();
      Group &group = isNew ? groups.emplace_back() : *found;
      group.warps = *warps;
      if (!isNew)
        order.join(group.calls.front(), call);
      add(call, group);
    }
    return groups;
  }
};

} // namespace
} // namespace ortc::memory
