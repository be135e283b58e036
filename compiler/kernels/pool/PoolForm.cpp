// Pooling and its gradients.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/pool/PoolForm.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ortc::kernels {

KernelWork workOfPool(Operation *op) {
  int64_t taps = llvm::TypeSwitch<Operation *, int64_t>(op)
                     .Case<nn::MaxPoolOp, nn::MaxPoolGradOp, nn::AvgPoolOp, nn::AvgPoolGradOp>(
                         [](auto pool) { return nn::elementCount(pool.getWindow()); });
  const bool isForward = isa<nn::MaxPoolOp, nn::AvgPoolOp>(op);
  auto windows = cast<RankedTensorType>(isForward ? op->getResult(0).getType() : op->getOperand(0).getType());
  KernelWork work;
  work.cost = windows.getNumElements() * taps;
  if (isa<nn::AvgPoolOp, nn::AvgPoolGradOp>(op)) // the others compare
    work.flops = work.cost;
  return work;
}

} // namespace ortc::kernels
