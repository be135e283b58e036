// Convolutions and their gradients on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/conv/ConvKernel.h"

#include "compiler/backends/gpu/conv/ConvAccess.h"

using namespace mlir;

namespace ortc::gpu {

LogicalResult generateConv(KernelBuilder &kernel, func::FuncOp function, const GeneratorOptions &options) {
  std::string reason;
  auto outputs = function.getBody().front().getTerminator()->getOperands();
  auto form = ConvForm::analyze(function.getArguments(), outputs, reason);
  if (!form)
    return function.emitError() << "no convolution kernel can be made of this program: " << reason;
  MathOptions math = options.math();
  ConvProduct product = makeConvProduct(*form, math, kernel);
  emitProduct(kernel, product.shape, product.makeAccess, math);
  return success();
}

} // namespace ortc::gpu
