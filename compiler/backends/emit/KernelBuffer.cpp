// Buffer arguments of kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/emit/KernelBuffer.h"

#include "compiler/backends/emit/ElementEmitter.h"
#include "dialects/plan/PlanDialect.h"

using namespace mlir;

namespace ortc::emit {

SmallVector<KernelBuffer> kernelBuffers(func::FuncOp function) {
  SmallVector<KernelBuffer> buffers;
  auto add = [&](Type type, bool written) {
    auto tensor = cast<RankedTensorType>(type);
    buffers.push_back({bufferType(tensor.getElementType()), tensor.getNumElements(), written, true});
  };
  for (Type type : function.getArgumentTypes())
    add(type, false);
  for (Type type : function.getResultTypes())
    add(type, true);
  if (auto pairs = function->getAttrOfType<DenseI64ArrayAttr>(plan::kInPlace))
    for (int64_t i = 0; i + 1 < pairs.size(); i += 2) {
      buffers[pairs[i]].distinct = false;
      buffers[function.getNumArguments() + pairs[i + 1]].distinct = false;
    }
  return buffers;
}

} // namespace ortc::emit
