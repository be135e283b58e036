// Sums along the keys of attention, before it is cut into kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/fusion/SumsAlongKeys.h"

#include "compiler/kernels/loop/LoopProgram.h"
#include "dialects/nn/NnShapes.h"
#include "dialects/nn/TensorBuilder.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ortc::fusion {

using nn::TensorBuilder;

static int64_t countOf(Value value) { return cast<ShapedType>(value.getType()).getNumElements(); }

bool makesScores(Operation *op, const kernels::FusionLimits &limits) {
  auto dot = dyn_cast_or_null<nn::DotOp>(op);
  if (!dot)
    return false;
  int64_t depth = 1;
  for (int64_t dim : dot.getLhsContract())
    depth *= cast<ShapedType>(dot.getLhs().getType()).getDimSize(dim);
  int64_t least = std::min(countOf(dot.getLhs()), countOf(dot.getRhs()));
  return depth <= limits.attentionParts && countOf(dot.getResult()) >= least;
}

namespace {

/// Pairs of operations that are compared: what computes the scores of a kernel has fewer.
constexpr size_t kMostPairs = 1024;
/// Factors of a product.
constexpr size_t kMostFactors = 16;

/// Whether two values are computed by the same operations from the same values.
bool areSame(Value a, Value b) {
  llvm::SetVector<std::pair<Value, Value>> pairs;
  pairs.insert({a, b});
  for (size_t i = 0; i < pairs.size(); ++i) {
    auto [x, y] = pairs[i];
    if (x == y)
      continue;
    Operation *first = x.getDefiningOp(), *second = y.getDefiningOp();
    if (!first || !second || first->getName() != second->getName() || x.getType() != y.getType() ||
        first->getNumOperands() != second->getNumOperands() || first->getNumRegions() != 0 ||
        first->getAttrDictionary() != second->getAttrDictionary() ||
        cast<OpResult>(x).getResultNumber() != cast<OpResult>(y).getResultNumber() ||
        pairs.size() > kMostPairs)
      return false;
    for (auto [left, right] : llvm::zip_equal(first->getOperands(), second->getOperands()))
      pairs.insert({left, right});
  }
  return true;
}

/// Without a rounding and the extension of what it gave.
Value unrounded(Value value) {
  auto extension = value.getDefiningOp<arith::ExtFOp>();
  auto rounding = extension ? extension.getIn().getDefiningOp<arith::TruncFOp>() : nullptr;
  return rounding && rounding.getIn().getType() == value.getType() ? rounding.getIn() : value;
}

/// Of products of products, from left to right.
SmallVector<Value> factorsOf(Value value) {
  SmallVector<Value> factors, stack{value};
  while (!stack.empty()) {
    Value next = unrounded(stack.pop_back_val());
    auto product = next.getDefiningOp<arith::MulFOp>();
    if (product && stack.size() + factors.size() < kMostFactors)
      stack.append({product.getRhs(), product.getLhs()});
    else
      factors.push_back(next);
  }
  return factors;
}

class SumFinder {
public:
  SumFinder(Block &block, const kernels::FusionLimits &limits) : block(block), limits(limits) {}

  void merge() {
    SmallVector<nn::ReduceOp> known;
    for (nn::ReduceOp sum : llvm::make_early_inc_range(block.getOps<nn::ReduceOp>())) {
      if (!readsScores(sum))
        continue;
      auto other =
          llvm::find_if(known, [&](nn::ReduceOp each) { return areSame(sum.getResult(), each.getResult()); });
      if (other == known.end()) {
        known.push_back(sum);
        continue;
      }
      sum.getResult().replaceAllUsesWith(other->getResult());
      sum.erase();
    }
  }

  void takeFromProducts() {
    for (nn::ReduceOp sum : llvm::make_early_inc_range(block.getOps<nn::ReduceOp>())) {
      if (sum.getKind() != nn::ReduceKind::sum || !readsScores(sum))
        continue;
      SmallVector<Value> factors = factorsOf(sum.getInput());
      for (auto [i, factor] : llvm::enumerate(factors)) {
        auto scores = factor.getDefiningOp<nn::DotOp>();
        if (!scores || !makesScores(scores, limits))
          continue;
        SmallVector<Value> rest(factors);
        rest.erase(rest.begin() + i);
        if (nn::DotOp mix = findMix(sum, scores, rest)) {
          TensorBuilder b(sum.getLoc(), sum);
          int64_t last = TensorBuilder::rankOf(mix.getResult()) - 1;
          sum.getResult().replaceAllUsesWith(b.sum(b.mul(scores.getLhs(), mix.getResult()), {last}));
          sum.erase();
          break;
        }
      }
    }
  }

private:
  bool readsScores(nn::ReduceOp sum) const {
    int64_t points = countOf(sum.getInput());
    SmallVector<Value> stack{sum.getInput()};
    llvm::DenseSet<Operation *> seen;
    while (!stack.empty()) {
      Operation *op = stack.pop_back_val().getDefiningOp();
      if (!op || op->getBlock() != &block || !seen.insert(op).second || countOf(op->getResult(0)) > points)
        continue;
      if (countOf(op->getResult(0)) == points && makesScores(op, limits))
        return true;
      if (kernels::isLoopOperation(op))
        llvm::append_range(stack, op->getOperands());
    }
    return false;
  }

  /// The product in front of `sum` that mixes `factors` with what `scores`, [batch, rows, keys], has of the keys.
  nn::DotOp findMix(nn::ReduceOp sum, nn::DotOp scores, ArrayRef<Value> factors) {
    int64_t keys = TensorBuilder::rankOf(scores.getResult()) - 1;
    if (sum.getAxes() != ArrayRef<int64_t>{keys} || !TensorBuilder::elementOf(scores.getResult()).isF32())
      return {};
    for (nn::DotOp mix : block.getOps<nn::DotOp>()) {
      if (!mix->isBeforeInBlock(sum))
        break;
      if (mix == scores || mix.getType() != scores.getLhs().getType() || !fits(mix, scores))
        continue;
      SmallVector<Value> others = factorsOf(mix.getLhs());
      bool areAll = areSame(mix.getRhs(), scores.getRhs()) && others.size() == factors.size();
      for (Value factor : factors) {
        auto other = llvm::find_if(others, [&](Value each) { return areSame(each, factor); });
        areAll = areAll && other != others.end();
        if (areAll)
          others.erase(other);
      }
      if (areAll)
        return mix;
    }
    return {};
  }

  /// Whether `mix` is [batch, rows, keys] x [batch, keys, depth] where `scores` is [batch, rows, depth] x the same.
  static bool fits(nn::DotOp mix, nn::DotOp scores) {
    int64_t last = TensorBuilder::rankOf(scores.getLhs()) - 1, right = TensorBuilder::rankOf(scores.getRhs());
    auto isLeading = [](ArrayRef<int64_t> dims) {
      return llvm::all_of(llvm::enumerate(dims),
                          [](auto each) { return each.value() == static_cast<int64_t>(each.index()); });
    };
    auto freeOf = [&](nn::DotOp dot) {
      return nn::freeDimensions(right, dot.getRhsBatch(), dot.getRhsContract());
    };
    return TensorBuilder::rankOf(mix.getLhs()) == last + 1 && TensorBuilder::rankOf(mix.getRhs()) == right &&
           isLeading(scores.getLhsBatch()) && mix.getLhsBatch() == scores.getLhsBatch() &&
           mix.getRhsBatch() == scores.getRhsBatch() && scores.getLhsContract() == ArrayRef<int64_t>{last} &&
           mix.getLhsContract() == ArrayRef<int64_t>{last} &&
           freeOf(mix) == nn::Shape(scores.getRhsContract()) &&
           freeOf(scores) == nn::Shape(mix.getRhsContract());
  }

  Block &block;
  const kernels::FusionLimits &limits;
};

} // namespace

void simplifySums(Block &block, const kernels::FusionLimits &limits) {
  SumFinder finder(block, limits);
  finder.merge();
  finder.takeFromProducts();
}

} // namespace ortc::fusion
