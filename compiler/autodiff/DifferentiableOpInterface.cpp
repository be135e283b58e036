//===- DifferentiableOpInterface.cpp - what a gradient rule is given -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/autodiff/DifferentiableOpInterface.h"

using namespace mlir;

#include "compiler/autodiff/DifferentiableOpInterface.cpp.inc"

namespace ortc::autodiff {

Value GradientRequest::cotangent(unsigned i) {
  return cotangents[i] ? cotangents[i] : builder.zerosLike(op->getResult(i));
}

} // namespace ortc::autodiff
