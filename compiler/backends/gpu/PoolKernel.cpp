// Pooling and its gradients on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/PoolKernel.h"

#include "compiler/backends/emit/PoolElement.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::gpu {

LogicalResult generatePool(KernelBuilder &kernel, func::FuncOp function) {
  Operation *op = &function.getBody().front().front();
  if (!isPool(op))
    return op->emitError("no kernel generator takes this operation");
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  auto body = [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value i) {
    SmallVector<Value> position = delinearize(b, i, shape);
    Value channel = position.pop_back_val();
    emitPoolElement(b, op, arguments.buffers, position, channel, /*width=*/0);
  };
  kernel.launchThreads(nn::elementCount(shape), body);
  return success();
}

} // namespace ortc::gpu
