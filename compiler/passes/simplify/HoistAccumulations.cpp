// Sums over the iterations of loops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/simplify/Passes.h"
#include "dialects/nn/TensorBuilder.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ortc::simplify {

#define GEN_PASS_DEF_HOISTACCUMULATIONSPASS
#include "compiler/passes/simplify/Passes.h.inc"

using nn::TensorBuilder;

namespace {

/// The sums that one loop carries.
class AccumulationHoister {
public:
  explicit AccumulationHoister(nn::ScanOp scan) : scan(scan) {}

  void run();

private:
  /// Carried value `index` becomes itself plus `term` in every iteration, and nothing else reads it.
  struct Accumulation {
    unsigned index;
    Value term;
  };

  std::optional<Accumulation> match(unsigned index);
  bool isInvariant(Value value) { return llvm::is_contained(scan.getInvariantArgs(), value); }
  bool isSlice(Value value) { return llvm::is_contained(scan.getSliceArgs(), value); }
  /// Whether all iterations' values lie behind one another outside.
  bool isStacked(Value value) {
    return isSlice(value) || stacked.contains(value) ||
           llvm::is_contained(scan.getYielded().drop_front(scan.getNumCarried()), value);
  }
  bool canHoist(Value term, SmallVectorImpl<Value> &operands);
  Value outsideOf(Value value);
  Value build(Value term, TensorBuilder &b);

  nn::ScanOp scan;
  llvm::SetVector<Value> stacked; ///< values of the body that become stacked results
};

std::optional<AccumulationHoister::Accumulation> AccumulationHoister::match(unsigned index) {
  BlockArgument sum = scan.getBlock().getArgument(index);
  auto add = scan.getYielded()[index].getDefiningOp<arith::AddFOp>();
  if (!add || !sum.hasOneUse() || !add->hasOneUse())
    return std::nullopt;
  if (add.getLhs() == sum)
    return Accumulation{index, add.getRhs()};
  if (add.getRhs() == sum)
    return Accumulation{index, add.getLhs()};
  return std::nullopt;
}

/// Whether the sum of `term` over all iterations can be computed from stacked values; `operands` are those
/// that have to be stacked for it.
bool AccumulationHoister::canHoist(Value term, SmallVectorImpl<Value> &operands) {
  Operation *op = term.getDefiningOp();
  if (!op)
    return false;
  if (auto dot = dyn_cast<nn::DotOp>(op)) {
    if (isInvariant(dot.getLhs()) || isInvariant(dot.getRhs()))
      return false;
    operands.append({dot.getLhs(), dot.getRhs()});
    return true;
  }
  if (auto reduce = dyn_cast<nn::ReduceOp>(op))
    return reduce.getKind() == nn::ReduceKind::sum && isStacked(reduce.getInput());
  if (isa<nn::ReshapeOp, nn::TransposeOp>(op))
    return canHoist(op->getOperand(0), operands);
  if (isa<arith::AddFOp>(op))
    return canHoist(op->getOperand(0), operands) && canHoist(op->getOperand(1), operands);
  return false;
}

Value AccumulationHoister::outsideOf(Value value) {
  if (isSlice(value))
    return scan->getOperand(cast<BlockArgument>(value).getArgNumber());
  for (auto [yielded, result] : llvm::zip_equal(scan.getYielded(), scan.getResults()))
    if (yielded == value && result.getType() != value.getType())
      return result;
  return {};
}

/// 0, then every dimension one further back.
static nn::Shape withLeading(ArrayRef<int64_t> dimensions) {
  nn::Shape result{0};
  for (int64_t dimension : dimensions)
    result.push_back(dimension + 1);
  return result;
}

static nn::Shape shifted(ArrayRef<int64_t> dimensions) {
  nn::Shape result = withLeading(dimensions);
  result.erase(result.begin());
  return result;
}

/// The sum of `term` over all iterations, behind the loop.
Value AccumulationHoister::build(Value term, TensorBuilder &b) {
  Operation *op = term.getDefiningOp();
  if (auto dot = dyn_cast<nn::DotOp>(op))
    return b.dot(outsideOf(dot.getLhs()), outsideOf(dot.getRhs()), shifted(dot.getLhsBatch()),
                 shifted(dot.getRhsBatch()), withLeading(dot.getLhsContract()),
                 withLeading(dot.getRhsContract()));
  if (auto reduce = dyn_cast<nn::ReduceOp>(op))
    return b.sum(outsideOf(reduce.getInput()), withLeading(reduce.getAxes()));
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op))
    return b.reshape(build(reshape.getInput(), b), TensorBuilder::shapeOf(term));
  if (auto transpose = dyn_cast<nn::TransposeOp>(op))
    return b.transpose(build(transpose.getInput(), b), transpose.getPermutation());
  Value first = build(op->getOperand(0), b);
  return b.add(first, build(op->getOperand(1), b));
}

void AccumulationHoister::run() {
  SmallVector<Accumulation> found;
  // Products first: what they stack, reductions may read.
  SmallVector<Accumulation> candidates;
  for (unsigned i = 0; i < scan.getNumCarried(); ++i)
    if (auto accumulation = match(i))
      candidates.push_back(*accumulation);
  for (bool products : {true, false})
    for (const Accumulation &each : candidates) {
      SmallVector<Value> operands;
      if (!canHoist(each.term, operands) || operands.empty() == products)
        continue;
      for (Value operand : operands)
        if (!isStacked(operand))
          stacked.insert(operand);
      found.push_back(each);
    }
  if (found.empty())
    return;
  TensorBuilder b(scan.getLoc(), scan);
  nn::ScanOp old = scan;
  scan = old.takeWithStacked(b, stacked.getArrayRef());
  old->replaceAllUsesWith(scan.getResults().take_front(old->getNumResults()));
  old.erase();
  Operation *terminator = scan.getBlock().getTerminator();
  b.setInsertionPointAfter(scan);
  for (const Accumulation &each : found) {
    Value init = scan.getInits()[each.index], sum = build(each.term, b);
    scan.getResult(each.index).replaceAllUsesWith(b.add(init, sum));
  }
  for (const Accumulation &each : found)
    terminator->setOperand(
        each.index, scan.getBlock().getArgument(each.index)); // now unchanged: canonicalization drops it
}

struct HoistAccumulationsPass : impl::HoistAccumulationsPassBase<HoistAccumulationsPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<nn::ScanOp> scans;
    getOperation()->walk([&](nn::ScanOp scan) { // inner ones first
      if (!scan.getRecompute() &&
          !scan.getLimit()) // which stack nothing for memory's sake, or leave some out
        scans.push_back(scan);
    });
    for (nn::ScanOp scan : scans)
      AccumulationHoister(scan).run();
  }
};

} // namespace
} // namespace ortc::simplify
