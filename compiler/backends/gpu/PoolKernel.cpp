// Pooling and its gradients on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/PoolKernel.h"

#include "compiler/backends/emit/PoolElement.h"
#include "compiler/backends/gpu/loop/PointRuns.h"
#include "dialects/nn/NnShapes.h"

#include <numeric>

using namespace mlir;

namespace ortc::gpu {

/// Channels of a thread: 16 bytes of the numbers that are pooled, where all buffers are aligned and threads suffice.
static int64_t chooseWidth(const KernelBuilder &kernel, RankedTensorType type, unsigned buffers) {
  int64_t width = std::gcd(kAccessBytes * 8 / type.getElementTypeBitWidth(), type.getShape().back());
  for (unsigned buffer = 0; buffer < buffers; ++buffer)
    if (kernel.alignmentOf(buffer) < kAccessBytes)
      return 1;
  return fillsDevice(type.getNumElements() / width) ? width : 1;
}

LogicalResult generatePool(KernelBuilder &kernel, func::FuncOp function) {
  Operation *op = &function.getBody().front().front();
  if (!isPool(op))
    return op->emitError("no kernel generator takes this operation");
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto shape = llvm::to_vector(type.getShape());
  int64_t width = chooseWidth(kernel, type, function.getNumArguments() + op->getNumResults());
  shape.back() /= width;
  auto body = [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value i) {
    SmallVector<Value> position = delinearize(b, i, shape);
    Value channel = b.mul(position.pop_back_val(), width);
    emitPoolElement(b, op, arguments.buffers, position, channel, width > 1 ? width : 0);
  };
  kernel.launchThreads(nn::elementCount(shape), body, {.resident = KernelBuilder::kOneBlock});
  return success();
}

} // namespace ortc::gpu
