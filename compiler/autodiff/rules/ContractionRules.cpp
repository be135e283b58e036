// Gradients of contractions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/autodiff/rules/Rules.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ortc::autodiff {

using Ints = ArrayRef<int64_t>;

/// One side of a contraction, seen from its own gradient.
struct Side {
  Value value;
  Ints batch, contract;
  nn::Shape free;
};

/// The gradient of `self`: dy contracted with `other` over other's free dimensions, which stand at
/// `otherInResult` in dy, as those of `self` stand at `selfInResult`. The order of the operands is chosen
/// such that the result needs no transposition when one of both orders has that property.
static Value differentiateSide(const Side &self, const Side &other, Value dy, Ints selfInResult,
                               Ints otherInResult, bool exact, TensorBuilder &b) {
  int64_t batches = self.batch.size();
  auto resultBatch = llvm::to_vector(llvm::seq<int64_t>(0, batches));
  // Contracted dimensions come out in the order of `other`'s dimensions: which of self's is each?
  nn::Shape contracted(other.contract.begin(), other.contract.end());
  llvm::sort(contracted);
  nn::Shape ownContract;
  for (int64_t dimension : contracted)
    ownContract.push_back(self.contract[llvm::find(other.contract, dimension) - other.contract.begin()]);

  nn::Shape dyFirst(self.batch.begin(), self.batch.end()), otherFirst(dyFirst);
  llvm::append_range(dyFirst, self.free);
  llvm::append_range(dyFirst, ownContract);
  llvm::append_range(otherFirst, ownContract);
  llvm::append_range(otherFirst, self.free);
  // Position i of the product is self's dimension order[i].
  if (llvm::is_sorted(otherFirst) && !llvm::is_sorted(dyFirst))
    return b.dot(other.value, dy, other.batch, resultBatch, other.free, otherInResult, exact);
  Value product = b.dot(dy, other.value, resultBatch, other.batch, otherInResult, other.free, exact);
  return llvm::is_sorted(dyFirst) ? product : b.transpose(product, nn::invertPermutation(dyFirst));
}

// "nn.dot": y = sum of products of lhs and rhs over the contracted dimensions
// dlhs = dy . rhs over rhs's free dimensions; drhs = dy . lhs over lhs's free dimensions
// saved: each operand, when the other one is differentiated
// accumulates: when lhs and rhs are one value
static Gradients differentiateDot(nn::DotOp op, GradientRequest &request) {
  TensorBuilder &b = request.builder;
  Value dy = request.cotangent();
  Side lhs{op.getLhs(), op.getLhsBatch(), op.getLhsContract(),
           nn::freeDimensions(TensorBuilder::rankOf(op.getLhs()), op.getLhsBatch(), op.getLhsContract())};
  Side rhs{op.getRhs(), op.getRhsBatch(), op.getRhsContract(),
           nn::freeDimensions(TensorBuilder::rankOf(op.getRhs()), op.getRhsBatch(), op.getRhsContract())};
  int64_t batches = lhs.batch.size(), middle = batches + static_cast<int64_t>(lhs.free.size());
  auto lhsInResult = llvm::to_vector(llvm::seq<int64_t>(batches, middle));
  auto rhsInResult = llvm::to_vector(llvm::seq<int64_t>(middle, TensorBuilder::rankOf(dy)));
  return {
      request.wants(0) ? Gradient(differentiateSide(lhs, rhs, dy, lhsInResult, rhsInResult, op.getExact(), b))
                       : request.unwanted(),
      request.wants(1) ? Gradient(differentiateSide(rhs, lhs, dy, rhsInResult, lhsInResult, op.getExact(), b))
                       : request.unwanted()};
}

void attachContractionRules(MLIRContext *context) { attachRule<nn::DotOp, differentiateDot>(context); }

} // namespace ortc::autodiff
