// Instructions that multiply matrices, as processors have them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/product/MatrixCore.h"

#include "compiler/backends/gpu/product/TensorCore.h"

namespace ortc::gpu {

const MatrixCore *findMatrixCore(const Processor &processor) {
  static const TensorCore kTensorCore;
  return processor.isNvidia() ? &kTensorCore : nullptr;
}

} // namespace ortc::gpu
