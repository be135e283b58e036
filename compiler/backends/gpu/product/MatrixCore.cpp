// Instructions that multiply matrices, as processors have them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/product/MatrixCore.h"

#include "compiler/backends/gpu/product/AmdCores.h"
#include "compiler/backends/gpu/product/TensorCore.h"
#include "llvm/ADT/StringSwitch.h"

namespace ortc::gpu {

const MatrixCore *findMatrixCore(const Processor &processor) {
  static const TensorCore kTensorCore;
  static const MfmaCore kCdna2(/*hasHalf=*/false), kCdna3(/*hasHalf=*/true);
  static const WmmaCore kRdna3;
  if (processor.isNvidia())
    return &kTensorCore;
  return llvm::StringSwitch<const MatrixCore *>(processor.name)
      .Case("gfx90a", &kCdna2)
      .Case("gfx942", &kCdna3)
      .Case("gfx1100", &kRdna3)
      .Default(nullptr);
}

const MatrixCore *findTf32Core(const Processor &processor) {
  static const RoundingCore kRoundingCore;
  return processor.isNvidia() ? &kRoundingCore : nullptr;
}

} // namespace ortc::gpu
