// Attention in a block before it is cut into kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every product that sums along the keys what was computed from scores is a root, and so are the sums and maxima along
// the keys that it needs. A kernel has roots with the same rows, and all that is between them and the products of the
// scores.
#include "compiler/passes/fusion/AttentionGroups.h"

#include "compiler/kernels/attention/AttentionForm.h"
#include "compiler/passes/fusion/SumsAlongKeys.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ortc::fusion {

static int64_t countOf(Value value) { return cast<ShapedType>(value.getType()).getNumElements(); }

namespace {

/// What a kernel with some roots consists of.
struct Cluster {
  SmallVector<Operation *> roots; ///< in the order of the block
  llvm::SetVector<Operation *> ops;
  int64_t points = 0; ///< scores

  bool isRoot(Operation *op) const { return llvm::is_contained(roots, op); }
};

class AttentionFinder {
public:
  AttentionFinder(Block &block, const kernels::FusionLimits &limits) : block(block), limits(limits) {}

  std::vector<SmallVector<Operation *>> run() {
    SmallVector<nn::DotOp> dots(block.getOps<nn::DotOp>());
    for (nn::DotOp dot : dots)
      for (Value operand : {dot.getLhs(), dot.getRhs()})
        if (auto cluster = clusterOf(dot, operand)) {
          place(std::move(*cluster));
          break;
        }
    std::vector<SmallVector<Operation *>> groups;
    for (Cluster &cluster : clusters)
      groups.push_back(extract(cluster));
    eraseUnused();
    return groups;
  }

private:
  /// The maximum of scores, or the sum of exponentials.
  static bool isOfSoftmax(nn::ReduceOp sum) {
    return sum.getKind() == nn::ReduceKind::max ||
           (sum.getKind() == nn::ReduceKind::sum && sum.getInput().getDefiningOp<math::ExpOp>());
  }

  /// Whether something compares scores with others than constants. Kernels whose rows are keys sum a score in another
  /// order, so that it may differ from itself in its last bits: the largest one may be equal to none.
  bool comparesScores(const Cluster &cluster) const {
    return llvm::any_of(cluster.ops, [&](Operation *op) {
      auto compare = dyn_cast<arith::CmpFOp>(op);
      return compare && countOf(compare.getResult()) == cluster.points && visited.lookup(op) &&
             !compare.getLhs().getDefiningOp<arith::ConstantOp>() &&
             !compare.getRhs().getDefiningOp<arith::ConstantOp>();
    });
  }

  /// Whether something outside of the kernel compares scores with a maximum that it would give, as the maximum's own
  /// gradient does. Those scores come from a product by itself, which sums in another order.
  bool isMaximumCompared(const Cluster &cluster) const {
    SmallVector<Value> stack;
    for (Operation *root : cluster.roots)
      if (auto reduce = dyn_cast<nn::ReduceOp>(root); reduce && reduce.getKind() == nn::ReduceKind::max)
        stack.push_back(reduce.getResult());
    llvm::DenseSet<Operation *> seen;
    while (!stack.empty())
      for (Operation *user : stack.pop_back_val().getUsers()) {
        // Exponentials of scores are not told from each other by their last bits.
        if (!kernels::isLoopOperation(user) || isa<nn::ReduceOp, math::ExpOp>(user) ||
            !seen.insert(user).second)
          continue;
        if (isa<arith::CmpFOp>(user) && countOf(user->getResult(0)) == cluster.points)
          return true;
        llvm::append_range(stack, user->getResults());
      }
    return false;
  }

  /// Adds what computes `value` from scores and from other values; whether there are scores. Those that are no larger
  /// than a row come from outside, but for sums along the keys where `takesSums`, and what is computed from them.
  bool collect(Value value, Cluster &cluster, bool takesSums) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != &block)
      return false;
    if (auto known = visited.find(op); known != visited.end())
      return known->second;
    visited[op] = false;
    if (visited.size() > limits.operations) // more than a kernel takes, and deep
      return false;
    bool isLarge = countOf(value) == cluster.points, hasScores = false;
    if (isLarge && makesScores(op, limits)) {
      cluster.ops.insert(op);
      return visited[op] = true;
    }
    if (!kernels::isLoopOperation(op) || countOf(value) > cluster.points)
      return false;
    if (isa<nn::ReduceOp>(op) &&
        (!takesSums || countOf(op->getOperand(0)) != cluster.points || !isOfSoftmax(cast<nn::ReduceOp>(op))))
      return false;
    for (Value operand : op->getOperands())
      hasScores |= collect(operand, cluster, takesSums);
    bool isFree = isa<arith::ConstantOp, nn::IotaOp, nn::BroadcastOp, nn::RandomOp>(op) ||
                  llvm::all_of(op->getOperands(), [&](Value operand) {
                    Operation *producer = operand.getDefiningOp();
                    return producer && cluster.ops.contains(producer);
                  });
    if (!hasScores && !isLarge && !isFree)
      return false;
    cluster.ops.insert(op);
    if (isa<nn::ReduceOp>(op) && hasScores)
      cluster.roots.push_back(op);
    return visited[op] = hasScores;
  }

  /// The kernel of a product that mixes `scores`, with its sums where they are of its rows.
  std::optional<Cluster> clusterOf(nn::DotOp dot, Value scores) {
    for (bool takesSums : {true, false}) {
      Cluster cluster;
      cluster.points = countOf(scores);
      visited.clear();
      // Other products of what products give are faster apart.
      if (!collect(scores, cluster, takesSums) || llvm::none_of(cluster.ops, llvm::IsaPred<math::ExpOp>) ||
          comparesScores(cluster))
        return std::nullopt;
      if (isMaximumCompared(cluster))
        continue;
      if (llvm::any_of(cluster.ops, [&](Operation *op) { return owner.contains(op); })) {
        // Sums of another kernel come from there.
        Cluster rest;
        rest.points = cluster.points;
        visited.clear();
        for (auto &[op, number] : owner)
          visited[op] = false;
        if (!collect(scores, rest, takesSums))
          return std::nullopt;
        cluster = std::move(rest);
      }
      cluster.ops.insert(dot);
      cluster.roots.push_back(dot);
      if (suits(cluster))
        return cluster;
    }
    return std::nullopt;
  }

  /// Whether a kernel computes all of it. What is made outside of it from its results does not come back to it.
  bool suits(const Cluster &cluster) {
    llvm::SetVector<Value> inputs;
    for (Operation *op : cluster.ops)
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp(); !producer || !cluster.ops.contains(producer)) {
          auto widening = isa<nn::DotOp>(op) ? kernels::findWidening(operand) : std::nullopt;
          inputs.insert(widening ? widening->from : operand);
        }
    SmallVector<Value> outputs;
    for (Operation *root : cluster.roots)
      outputs.push_back(root->getResult(0));
    std::string reason;
    auto form = kernels::AttentionForm::analyze(inputs.getArrayRef(), outputs, reason);
    if (!form || !form->suits(limits, reason))
      return false;
    return !comesBack(cluster, inputs.getArrayRef());
  }

  bool comesBack(const Cluster &cluster, ArrayRef<Value> inputs) {
    llvm::DenseSet<Operation *> seen;
    SmallVector<Value> stack(inputs);
    while (!stack.empty()) {
      Operation *op = stack.pop_back_val().getDefiningOp();
      if (!op || op->getBlock() != &block || !seen.insert(op).second)
        continue;
      if (cluster.isRoot(op))
        return true;
      auto pushOperands = [&](Operation *each) { llvm::append_range(stack, each->getOperands()); };
      if (auto other = owner.find(op); other != owner.end())
        llvm::for_each(clusters[other->second].ops, pushOperands); // a kernel needs all that it reads
      pushOperands(op);
    }
    return false;
  }

  /// Adds a kernel, or to one that has the same scores and no sums of its own.
  void place(Cluster cluster) {
    for (auto [number, other] : llvm::enumerate(clusters)) {
      if (other.points != cluster.points || !llvm::all_of(cluster.roots, llvm::IsaPred<nn::DotOp>) ||
          !llvm::any_of(cluster.ops,
                        [&](Operation *op) { return makesScores(op, limits) && other.ops.contains(op); }))
        continue;
      Cluster both = other;
      both.ops.insert_range(cluster.ops);
      both.roots.append(cluster.roots);
      llvm::sort(both.roots, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      if (!suits(both))
        continue;
      for (Operation *root : cluster.roots)
        owner[root] = number;
      other = std::move(both);
      return;
    }
    llvm::sort(cluster.roots, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (Operation *root : cluster.roots)
      owner[root] = clusters.size();
    clusters.push_back(std::move(cluster));
  }

  /// The operations of a kernel, copies but for the roots.
  SmallVector<Operation *> extract(const Cluster &cluster) {
    SmallVector<Operation *> group;
    IRMapping mapping;
    llvm::DenseSet<Operation *> done;
    for (Operation *root : cluster.roots) {
      OpBuilder builder(root);
      copyProducers(root, cluster, builder, mapping, done, group);
      for (OpOperand &operand : root->getOpOperands())
        operand.set(mapping.lookupOrDefault(operand.get()));
      group.push_back(root);
    }
    return group;
  }

  void copyProducers(Operation *op, const Cluster &cluster, OpBuilder &builder, IRMapping &mapping,
                     llvm::DenseSet<Operation *> &done, SmallVector<Operation *> &group) {
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (!producer || !cluster.ops.contains(producer) || cluster.isRoot(producer) ||
          !done.insert(producer).second)
        continue;
      copyProducers(producer, cluster, builder, mapping, done, group);
      Operation *copy = builder.clone(*producer, mapping);
      if (isa<nn::DotOp>(copy))
        for (OpOperand &side : copy->getOpOperands())
          if (kernels::findWidening(side.get()))
            side.set(builder.clone(*side.get().getDefiningOp())->getResult(0));
      if (!isa<nn::ReshapeOp, arith::ConstantOp>(copy))
        group.push_back(copy);
    }
  }

  void eraseUnused() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  Block &block;
  const kernels::FusionLimits &limits;
  llvm::DenseMap<Operation *, bool> visited; ///< whether there are scores in front of it
  std::vector<Cluster> clusters;
  llvm::MapVector<Operation *, size_t> owner; ///< of roots: their kernel
};

} // namespace

std::vector<SmallVector<Operation *>> formAttention(Block &block, const kernels::FusionLimits &limits) {
  if (limits.attentionParts == 0)
    return {};
  simplifySums(block, limits);
  return AttentionFinder(block, limits).run();
}

} // namespace ortc::fusion
