// Join updates of tensors to kernels of many.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Horizontal fusion of calls that nothing but the end of the entry waits for: updates of a parameter and its state.
// They are taken in the order in which their gradients come, until a kernel would have too many buffers, or too much
// would have to be kept for its last gradient.
#include "compiler/kernels/loop/JoinedLoops.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/memory/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ortc::memory {

#define GEN_PASS_DEF_JOINUPDATESPASS
#include "passes/memory/Passes.h.inc"

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

static Value rootOf(Value value) {
  while (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getInput();
  return value;
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
  int64_t kept = 0;   ///< bytes of what it reads and what has no place as long as the entry runs
  unsigned depth = 0; ///< of the operation that makes the largest of that
};

/// Calls that become one.
struct Group {
  SmallVector<func::CallOp> calls;
  llvm::SetVector<Value> inputs;
  size_t outputs = 0;
  int64_t kept = 0;
  bool isSmall = false;
};

struct JoinUpdatesPass : impl::JoinUpdatesPassBase<JoinUpdatesPass> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> entries;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(train::kEntry))
        entries.push_back(function);
    for (func::FuncOp entry : entries)
      for (Group &group : findGroups(entry, symbols))
        if (group.calls.size() > 1)
          join(entry, group, symbols);
  }

  bool isJoined(func::CallOp call, func::FuncOp entry, const SymbolTable &symbols) {
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    auto kind = kernel->getAttrOfType<plan::KernelKindAttr>(plan::kKind);
    if (!kind || kind.getValue() != plan::KernelKind::loop ||
        !llvm::all_of(call.getResults(), [&](Value result) { return updatedTensor(result, entry); }))
      return false;
    std::string reason;
    auto program = kernels::analyzeLoops(kernel.getArguments(),
                                         kernel.getBody().front().getTerminator()->getOperands(), reason);
    return program && kernels::canJoin(*program);
  }

  static Update describe(func::CallOp call, const llvm::DenseMap<Operation *, unsigned> &depths) {
    Update update{call};
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
    func::CallOp call = update.call;
    size_t more = call.getNumResults() + llvm::count_if(call.getOperands(), [&](Value operand) {
                    return !group.inputs.contains(operand);
                  });
    return isSmall(update) == group.isSmall && group.kept + update.kept <= bytes &&
           group.inputs.size() + group.outputs + more <= buffers;
  }

  SmallVector<Group> findGroups(func::FuncOp entry, const SymbolTable &symbols) {
    auto depths = findDepths(entry.getBody().front());
    std::vector<Update> updates;
    for (auto call : entry.getBody().front().getOps<func::CallOp>())
      if (isJoined(call, entry, symbols))
        if (Update update = describe(call, depths); update.kept <= bytes)
          updates.push_back(update);
    dropWritersOfRead(updates, entry);
    std::sort(updates.begin(), updates.end(), [&](const Update &one, const Update &other) {
      if (isSmall(one) != isSmall(other))
        return isSmall(one);
      if (one.depth != other.depth)
        return one.depth < other.depth;
      return func::CallOp(one.call)->isBeforeInBlock(other.call);
    });
    SmallVector<Group> groups;
    for (const Update &update : updates) {
      func::CallOp call = update.call;
      if (groups.empty() || !fits(update, groups.back()))
        groups.emplace_back();
      Group &group = groups.back();
      group.calls.push_back(call);
      group.inputs.insert(call.operand_begin(), call.operand_end());
      group.outputs += call.getNumResults();
      group.kept += update.kept;
      group.isSmall = isSmall(update);
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

  /// The bodies of all kernels, one after the other.
  func::FuncOp makeKernel(const Group &group, func::FuncOp entry, const SymbolTable &symbols) {
    SmallVector<Type> results;
    SmallVector<Location> locations;
    for (func::CallOp call : group.calls) {
      llvm::append_range(results, call.getResultTypes());
      locations.push_back(call.getLoc());
    }
    ValueRange inputs(group.inputs.getArrayRef());
    auto kernel = func::FuncOp::create(FusedLoc::get(&getContext(), locations), "kernel_joined",
                                       FunctionType::get(&getContext(), inputs.getTypes(), results));
    kernel.setPrivate();
    kernel->setAttr(plan::kKind, plan::KernelKindAttr::get(&getContext(), plan::KernelKind::joined));
    Block *body = kernel.addEntryBlock();
    OpBuilder builder = OpBuilder::atBlockEnd(body);
    llvm::DenseMap<Value, unsigned> numbers;
    for (auto [number, input] : llvm::enumerate(group.inputs))
      numbers[input] = number;
    SmallVector<Value> outputs;
    SmallVector<int64_t> pairs;
    for (func::CallOp call : group.calls) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      for (auto [input, output] : pairsOf(call, entry, callee))
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
    return kernel;
  }

  void join(func::FuncOp entry, const Group &group, SymbolTable &symbols) {
    func::FuncOp kernel = makeKernel(group, entry, symbols);
    symbols.insert(kernel);
    Operation *end = entry.getBody().front().getTerminator();
    OpBuilder builder(end);
    auto joined = func::CallOp::create(builder, kernel.getLoc(), kernel, group.inputs.getArrayRef());
    unsigned first = 0;
    for (func::CallOp call : group.calls) {
      for (Value result : call.getResults())
        for (Operation *user : llvm::to_vector(result.getUsers()))
          while (isa<nn::ReshapeOp>(user)) {
            user->moveBefore(end);
            user = *user->user_begin();
          }
      call.replaceAllUsesWith(joined.getResults().slice(first, call.getNumResults()));
      first += call.getNumResults();
      call.erase();
    }
  }
};

} // namespace
} // namespace ortc::memory
