// What a gradient rule is given.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/autodiff/DifferentiableOpInterface.h"

using namespace mlir;

#include "compiler/autodiff/DifferentiableOpInterface.cpp.inc"

namespace ortc::autodiff {

Value GradientRequest::cotangent(unsigned i) {
  return cotangents[i] ? cotangents[i] : builder.zerosLike(op->getResult(i));
}

Value addGradients(nn::TensorBuilder &builder, Value a, Value b) {
  Type element = nn::TensorBuilder::elementOf(a), wide = builder.getF32Type();
  if (!element.isF16() && !element.isBF16())
    return builder.add(a, b);
  return builder.cast(builder.add(builder.cast(a, wide), builder.cast(b, wide)), element);
}

} // namespace ortc::autodiff
