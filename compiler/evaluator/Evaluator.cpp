// The dialects nn, arith and math on host tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/evaluator/Evaluator.h"

#include "compiler/evaluator/Kernels.h"
#include "dialects/nn/NnDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace ortc::evaluator {

bool Evaluator::isKnown(Operation *op) {
  return isa<arith::ArithDialect, math::MathDialect, nn::NnDialect>(op->getDialect());
}

/// Slice `at` along the leading dimension.
static HostTensor sliceOf(const HostTensor &all, RankedTensorType type, int64_t at) {
  HostTensor slice(type);
  slice.copy(0, all, at * slice.size(), slice.size());
  return slice;
}

FailureOr<SmallVector<HostTensor>> Evaluator::evaluateScan(nn::ScanOp scan,
                                                           ArrayRef<const HostTensor *> operands) const {
  Block &block = scan.getBlock();
  unsigned carried = scan.getNumCarried(), sequences = scan.getSequences().size();
  SmallVector<HostTensor> arguments(block.getNumArguments()), results(scan->getNumResults());
  for (auto [argument, operand] : llvm::zip_equal(arguments, operands.take_front(arguments.size())))
    argument = *operand;
  for (unsigned i = carried; i < results.size(); ++i)
    results[i] = HostTensor(cast<RankedTensorType>(scan.getResult(i).getType()));
  int64_t count = scan.getTripCount(), limit = scan.getLimit() ? operands.back()->getInt(0) : count;
  for (int64_t step = 0; step < count && (step == 0 || step < limit); ++step) {
    int64_t at = scan.getReverse() ? count - 1 - step : step;
    for (unsigned i = carried; i < carried + sequences; ++i)
      arguments[i] = sliceOf(*operands[i], cast<RankedTensorType>(block.getArgument(i).getType()), at);
    auto yielded = evaluate(block, arguments);
    if (failed(yielded))
      return failure();
    for (unsigned i = 0; i < results.size(); ++i) {
      if (i < carried) {
        arguments[i] = std::move((*yielded)[i]);
        continue;
      }
      const HostTensor &item = (*yielded)[i];
      results[i].copy(at * item.size(), item, 0, item.size());
    }
  }
  std::move(arguments.begin(), arguments.begin() + carried, results.begin());
  return results;
}

FailureOr<SmallVector<HostTensor>> Evaluator::evaluate(Operation *op,
                                                       ArrayRef<const HostTensor *> operands) const {
  if (auto scan = dyn_cast<nn::ScanOp>(op))
    return evaluateScan(scan, operands);
  for (Type type : op->getResultTypes())
    if (!isa<RankedTensorType>(type))
      return failure();
  for (auto family :
       {evaluateElementwise, evaluateMovement, evaluateReduction, evaluateContraction, evaluateIndexing}) {
    FamilyResult results = family(op, operands);
    if (!results)
      continue;
    if (failed(*results))
      return failure();
    for (HostTensor &tensor : **results)
      if (!tensor.isFloat())
        tensor.wrap();
      else if (precision == Precision::declared)
        tensor.round();
    return std::move(**results);
  }
  return failure();
}

FailureOr<SmallVector<HostTensor>> Evaluator::evaluate(Block &block, ArrayRef<HostTensor> arguments) const {
  llvm::DenseMap<Value, HostTensor> values;
  for (auto [argument, tensor] : llvm::zip_equal(block.getArguments(), arguments))
    values[argument] = tensor;
  for (Operation &op : block.without_terminator()) {
    SmallVector<const HostTensor *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(&values[operand]);
    auto results = evaluate(&op, operands);
    if (failed(results))
      return op.emitError("cannot be evaluated"), failure();
    for (auto [value, tensor] : llvm::zip_equal(op.getResults(), *results))
      values[value] = std::move(tensor);
  }
  SmallVector<HostTensor> results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(values[value]);
  return results;
}

} // namespace ortc::evaluator
