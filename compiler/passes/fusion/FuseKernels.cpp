// Group the operations of functions into kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FusionGroups decides; this file prepares the program for it (cheap producers get a copy per consumer, so that nobody
// stores them), and writes the kernels.
#include "compiler/passes/fusion/Passes.h"

#include "compiler/kernels/KernelForm.h"
#include "compiler/kernels/loop/LoopProgram.h"
#include "compiler/passes/fusion/AttentionGroups.h"
#include "compiler/passes/fusion/FusionGroups.h"
#include "dialects/nn/Elementwise.h"
#include "dialects/nn/ValueNames.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ortc::fusion {

#define GEN_PASS_DEF_FUSEKERNELSPASS
#include "compiler/passes/fusion/Passes.h.inc"

/// Whether every element of `op` follows from random bits and single numbers: it can be computed again from nothing.
static bool isDrawn(Operation *op, const llvm::DenseSet<Operation *> &drawn) {
  if (isa<nn::RandomOp>(op))
    return true;
  if (!nn::isElementwise(op) && !isa<nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp>(op))
    return false;
  bool isRandom = false;
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    bool isPart = producer && drawn.contains(producer);
    isRandom |= isPart;
    bool isSplat = false;
    if (auto constant = operand.getDefiningOp<arith::ConstantOp>())
      isSplat = isa<SplatElementsAttr>(constant.getValue());
    if (!isPart && !isSplat)
      return false;
  }
  return isRandom;
}

/// Gives every operation that uses what is drawn (a mask of dropout, noise) a copy of all that draws it: the
/// forward and the backward part then compute it each for themselves, and nobody stores it.
static void copyDraws(Block &block) {
  llvm::DenseSet<Operation *> drawn;
  SmallVector<Operation *> order;
  llvm::DenseMap<Operation *, size_t> place; // in `order`
  for (Operation &op : block)
    if (isDrawn(&op, drawn)) {
      drawn.insert(&op);
      place[&op] = order.size();
      order.push_back(&op);
    }
  // Users with the parts that they take; what is drawn with one such user stays as it is.
  llvm::MapVector<Operation *, SmallVector<OpOperand *>> users;
  for (Operation *op : order)
    for (OpOperand &use : op->getUses())
      if (!drawn.contains(use.getOwner()) && kernels::isLoopOperation(use.getOwner()))
        users[use.getOwner()].push_back(&use);
  for (auto &[user, uses] : users) {
    llvm::SetVector<Operation *> needed;
    SmallVector<Operation *> stack;
    for (OpOperand *use : uses)
      stack.push_back(use->get().getDefiningOp());
    while (!stack.empty()) {
      Operation *op = stack.pop_back_val();
      if (!drawn.contains(op) || !needed.insert(op))
        continue;
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp())
          stack.push_back(producer);
    }
    OpBuilder builder(user);
    IRMapping mapping;
    SmallVector<Operation *> sorted = needed.takeVector();
    llvm::sort(sorted, [&](Operation *a, Operation *b) { return place.at(a) < place.at(b); });
    for (Operation *op : sorted)
      builder.clone(*op, mapping);
    for (OpOperand *use : uses)
      use->set(mapping.lookup(use->get()));
  }
  for (Operation *op : llvm::reverse(order))
    if (op->use_empty())
      op->erase();
}

/// Gives every loop operation that uses a broadcast or iota a copy of its own, and every operation that uses narrow
/// numbers as f32 a copy of what extends them; what is left without users goes.
static void copyFreeProducers(Block &block) {
  auto isWidening = [](Operation *op) {
    return op->getNumResults() == 1 && kernels::findWidening(op->getResult(0));
  };
  SmallVector<Operation *> producers;
  for (Operation &op : block)
    if (isa<nn::BroadcastOp, nn::IotaOp>(op) || isWidening(&op))
      producers.push_back(&op);
  // Last ones first: a broadcast of an iota is copied before the iota's users are counted.
  for (Operation *op : llvm::reverse(producers)) {
    bool isFirst = true;
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
      if (!kernels::isLoopOperation(use.getOwner()) && !(isWidening(op) && readsNarrow(use.getOwner())))
        continue;
      if (isFirst && op->hasOneUse())
        break;
      isFirst = false;
      OpBuilder builder(use.getOwner());
      use.set(builder.clone(*op)->getResult(0));
    }
    if (op->use_empty())
      op->erase();
  }
}

namespace {

/// Transposes and slices that only products read, and what those of several products share.
class ViewCopier {
public:
  ViewCopier(Block &block, const kernels::FusionLimits &limits, ArrayRef<SmallVector<Operation *>> formed)
      : block(block), limits(limits) {
    for (ArrayRef<Operation *> group : formed)
      inGroups.insert(group.begin(), group.end());
  }

  /// Gives every product that reads through views copies of its own of them, where all that read them can.
  void run() {
    findViews();
    SmallVector<std::pair<OpOperand *, Operation *>>
        uses; // by products, with the view that others may read, too
    llvm::DenseSet<Operation *> stored;
    for (Operation &op : block) {
      if (!readsNarrow(&op))
        continue;
      for (OpOperand &operand : op.getOpOperands())
        if (Operation *view = viewOf(operand.get())) {
          uses.push_back({&operand, view});
          if (!canRead(&op))
            stored.insert(view);
        }
    }
    for (auto [use, view] : uses)
      if (!stored.contains(view))
        copyFor(*use);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (views.contains(&op) && op.use_empty())
        op.erase();
  }

private:
  static bool isWidening(Operation *op) {
    return op->getNumResults() == 1 && kernels::findWidening(op->getResult(0));
  }

  void findViews() {
    // Last ones first: a view's readers are known before its own kind is decided.
    for (Operation &op : llvm::reverse(block))
      if ((isa<nn::TransposeOp, nn::SliceOp, nn::ReshapeOp>(op) || isWidening(&op)) && !op.use_empty() &&
          llvm::all_of(op.getUsers(),
                       [&](Operation *user) { return readsNarrow(user) || views.contains(user); }))
        views.insert(&op);
    // A reshape of what is stored is free, and an input that many may share.
    SmallVector<Operation *> inputs;
    for (Operation *op : views) {
      Operation *producer = op->getOperand(0).getDefiningOp();
      if (isa<nn::ReshapeOp>(op) && !(producer && views.contains(producer)))
        inputs.push_back(op);
    }
    for (Operation *op : inputs)
      views.remove(op);
  }

  /// The last view in front of an operand, without what extends it; null: there is none.
  Operation *viewOf(Value operand) const {
    Operation *op = operand.getDefiningOp();
    while (op && views.contains(op) && isWidening(op))
      op = op->getOperand(0).getDefiningOp();
    return op && views.contains(op) ? op : nullptr;
  }

  /// Whether the kernel of a product reads what is in front of the views.
  bool canRead(Operation *product) const {
    if (inGroups.contains(product))
      return true;
    SmallVector<Value> inputs;
    for (Value operand : product->getOperands()) {
      while (Operation *op = operand.getDefiningOp()) {
        if (!views.contains(op))
          break;
        operand = op->getOperand(0);
      }
      inputs.push_back(operand);
    }
    std::string reason;
    return kernels::formOf(product).suits(inputs, product->getResults(), limits, reason);
  }

  void copyFor(OpOperand &use) {
    OpBuilder builder(use.getOwner());
    OpOperand *at = &use;
    while (Operation *op = at->get().getDefiningOp()) {
      if (!views.contains(op))
        break;
      Operation *copy = builder.clone(*op);
      at->set(copy->getResult(0));
      builder.setInsertionPoint(copy);
      at = &copy->getOpOperand(0);
    }
  }

  Block &block;
  const kernels::FusionLimits &limits;
  llvm::DenseSet<Operation *> inGroups;
  llvm::SetVector<Operation *> views;
};

} // namespace

/// An elementwise operation that changes nothing: the kernel that computes it writes `value` once more.
static Value copyOf(OpBuilder &builder, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return nn::SliceOp::create(builder, value.getLoc(), type, value, SmallVector<int64_t>(type.getRank(), 0),
                             SmallVector<int64_t>(type.getRank(), 1));
}

/// A constant that an operation takes which is no loop kernel must lie in memory: a broadcast of it is a kernel.
static void materializeConstants(Block &block) {
  SmallVector<arith::ConstantOp> constants(block.getOps<arith::ConstantOp>());
  for (arith::ConstantOp constant : constants) {
    SmallVector<OpOperand *> uses;
    SmallVector<Value> stack{constant.getResult()};
    while (!stack.empty())
      for (OpOperand &use : stack.pop_back_val().getUses()) {
        if (isa<nn::ReshapeOp>(use.getOwner()))
          stack.push_back(use.getOwner()->getResult(0));
        else if (!kernels::isLoopOperation(use.getOwner()))
          uses.push_back(&use);
      }
    if (uses.empty())
      continue;
    for (OpOperand *use : uses) {
      OpBuilder builder(constant->getContext());
      builder.setInsertionPointAfterValue(use->get());
      use->set(copyOf(builder, use->get())); // the kernel writes the constant
    }
  }
}

/// What a loop carries on and stacks too, or stacks of what it carried, is written to both places by the
/// kernel that has it at hand, where there is one.
static void copyStacked(Block &block) {
  auto scan = dyn_cast<nn::ScanOp>(block.getParentOp());
  if (!scan)
    return;
  Operation *yield = block.getTerminator();
  OpBuilder builder(yield); // behind what reads it, which takes the copy in
  llvm::DenseSet<Value> written;
  for (OpOperand &operand : yield->getOpOperands()) {
    auto argument = dyn_cast<BlockArgument>(operand.get());
    bool isCarried = argument && argument.getArgNumber() < scan.getNumCarried();
    bool isStacked = operand.getOperandNumber() >= scan.getNumCarried();
    if (!written.insert(operand.get()).second || (isCarried && isStacked))
      operand.set(copyOf(builder, operand.get()));
  }
}

/// Puts the operations of a block behind what they read, in the order of passes over the block that each take
/// what is ready by then, as `sortTopologically` does; but in linear time, however many passes there are.
static void sortByDependence(Block &block) {
  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, unsigned> place;
  for (Operation &op : block.without_terminator()) {
    place[&op] = ops.size();
    ops.push_back(&op);
  }
  std::vector<SmallVector<unsigned, 2>> followers(ops.size());
  std::vector<unsigned> missing(ops.size(), 0), pass(ops.size(), 0);
  for (auto [i, op] : llvm::enumerate(ops)) {
    unsigned at = i;
    op->walk([&, op = op](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        producer = producer ? block.findAncestorOpInBlock(*producer) : nullptr;
        if (!producer || producer == op)
          continue;
        followers[place.at(producer)].push_back(at);
        ++missing[at];
      }
    });
  }
  std::vector<unsigned> order;
  for (unsigned i = 0; i < ops.size(); ++i)
    if (missing[i] == 0)
      order.push_back(i);
  for (size_t next = 0; next < order.size(); ++next)
    for (unsigned follower : followers[order[next]]) {
      pass[follower] = std::max(pass[follower], pass[order[next]] + (follower < order[next]));
      if (--missing[follower] == 0)
        order.push_back(follower);
    }
  assert(order.size() == ops.size() && "kernels have no cycles");
  llvm::sort(order, [&](unsigned a, unsigned b) { return std::tie(pass[a], a) < std::tie(pass[b], b); });
  if (!llvm::is_sorted(order))
    for (unsigned i : order)
      ops[i]->moveBefore(block.getTerminator());
}

/// Creates the kernel of a group at its last operation and lets its users take the kernel's results.
/// `replaced` knows what earlier kernels have replaced.
static LogicalResult createKernel(const FusionGroup &group, llvm::DenseMap<Value, Value> &replaced) {
  const kernels::KernelForm &form = kernels::formOf(group.ops);
  SmallVector<Value> outputs = group.outputs, inputs = group.inputs;
  for (Value &input : inputs)
    if (Value now = replaced.lookup(input))
      input = now;
  if (outputs.empty()) // a check that nobody looks at
    llvm::append_range(outputs, group.ops.back()->getResults());
  else if (form.kind != plan::KernelKind::loop && group.ops.size() == 1)
    outputs = llvm::to_vector_of<Value>(group.ops.front()->getResults());
  std::string reason;
  auto pairs = form.inPlacePairs(inputs, outputs, reason);
  if (failed(pairs))
    return group.ops.back()->emitError() << "no kernel can be made of this operation: " << reason;
  OpBuilder builder(group.ops.back());
  auto inPlace = pairs->empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(*pairs);
  SmallVector<Location> locations;
  for (Operation *op : group.ops)
    locations.push_back(op->getLoc());
  std::vector<std::string> names;
  for (Value output : outputs)
    names.push_back(nn::findValueName(output.getLoc()));
  Location loc = nn::nameResults(FusedLoc::get(builder.getContext(), locations), names);
  auto kernel =
      plan::KernelOp::create(builder, loc, TypeRange(ValueRange(outputs)), form.kind, inputs, inPlace);
  Block *body = builder.createBlock(&kernel.getBody());
  IRMapping mapping;
  for (Value input : inputs)
    mapping.map(input, body->addArgument(input.getType(), input.getLoc()));
  // Reshapes and constants that the operations look through come along.
  auto ensure = [&](Value value) {
    SmallVector<Operation *> chain;
    while (!mapping.contains(value)) {
      Operation *op = value.getDefiningOp();
      chain.push_back(op);
      if (op->getNumOperands() == 0)
        break;
      value = op->getOperand(0);
    }
    for (Operation *op : llvm::reverse(chain))
      builder.clone(*op, mapping);
  };
  for (Operation *op : group.ops) {
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand))
        ensure(operand);
    builder.clone(*op, mapping);
  }
  SmallVector<Value> yielded;
  for (Value output : outputs)
    yielded.push_back(mapping.lookup(output));
  plan::YieldOp::create(builder, loc, yielded);
  for (auto [output, result] : llvm::zip_equal(outputs, kernel.getResults())) {
    replaced[output] = result;
    output.replaceUsesWithIf(result, [&](OpOperand &use) { return !kernel->isAncestor(use.getOwner()); });
  }
  return success();
}

namespace {

struct FuseKernelsPass : impl::FuseKernelsPassBase<FuseKernelsPass> {
  using Base::Base;
  FuseKernelsPass() = default;
  FuseKernelsPass(const kernels::FusionLimits &limits, StringRef narrowType) : limits(limits) {
    narrow = narrowType.str();
  }

  void runOnOperation() override {
    if (attentionParts > 0)
      limits.attentionParts = attentionParts;
    limits.fewKernels |= fewKernels;
    SmallVector<func::FuncOp> functions;
    getOperation()->walk([&](func::FuncOp function) {
      if (!function.isDeclaration() && !function->hasAttr(plan::kKind))
        functions.push_back(function);
    });
    for (func::FuncOp function : functions) {
      WalkResult result = function.walk(
          [&](nn::ScanOp loop) { return WalkResult(fuse(loop.getBlock())); }); // inner ones first
      if (result.wasInterrupted() || failed(fuse(function.getBody().front())))
        return signalPassFailure();
    }
  }

  LogicalResult fuse(Block &block) {
    materializeConstants(block);
    copyStacked(block);
    copyDraws(block);
    copyFreeProducers(block);
    auto formed = formAttention(block, limits);
    if (limits.fewKernels)
      ViewCopier(block, limits, formed).run();
    FusionGroups fusion(block, limits, formed);
    fusion.fuse();
    if (narrow == "bf16")
      fusion.narrowSaved(BFloat16Type::get(&getContext()));
    else if (narrow == "f16")
      fusion.narrowSaved(Float16Type::get(&getContext()));
    std::vector<FusionGroup> groups = fusion.take();
    llvm::erase_if(groups, [](const FusionGroup &group) { return isa<nn::ScanOp>(group.ops.front()); });
    llvm::DenseMap<Value, Value> replaced;
    for (const FusionGroup &group : groups)
      if (failed(createKernel(group, replaced)))
        return failure();
    for (const FusionGroup &group : groups)
      for (Operation *op : llvm::reverse(group.ops))
        op->dropAllUses();
    for (const FusionGroup &group : groups)
      for (Operation *op : llvm::reverse(group.ops))
        op->erase();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isa<nn::ReshapeOp, arith::ConstantOp>(op) && op.use_empty())
        op.erase();
    sortByDependence(block);
    return success();
  }

  kernels::FusionLimits limits;
};

} // namespace

std::unique_ptr<Pass> createFuseKernelsPass(const kernels::FusionLimits &limits, StringRef narrow) {
  return std::make_unique<FuseKernelsPass>(limits, narrow);
}

} // namespace ortc::fusion
