// How the operands of a kernel follow the positions of one tensor, and dims cut so that all do so in strides.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/contraction/ContractionShape.h"
#include "compiler/kernels/loop/LoopProgram.h"

namespace ortc::kernels {

/// The elements at positions [low, high) of a row-major tensor, in steps of `low`: a digit of the position. Per step,
/// operand i moves by strides[i].
struct Digit {
  int64_t low, high;
  llvm::SmallVector<int64_t, 4> strides;
};

/// How operands follow the positions of a tensor.
struct View {
  llvm::SmallVector<Digit> digits; ///< from the innermost, without gaps
  llvm::SmallVector<ContractionOperand> operands;
};

/// Digits of the positions that `position` makes of the program's dims; fails unless every position occurs once.
bool readDigits(const LoopProgram &program, const IndexExpr &position, int64_t total,
                llvm::SmallVectorImpl<Digit> &digits);

/// Appends an operand that moves along the program's dims as `at` says; `position` is what the digits were read from.
void addOperand(View &view, const LoopProgram &program, const IndexExpr &position, const IndexExpr &at,
                unsigned buffer);

/// One dim of a tensor (or of several, each with a view) as dims of a kernel, cut where a view asks for it. A stride of
/// zero elements means that the tensor lacks the dim. Fails where views cut it in ways that do not fit.
bool appendDims(int64_t size, llvm::ArrayRef<const View *> views, llvm::ArrayRef<int64_t> strides,
                llvm::SmallVectorImpl<ContractionDim> &dims);

} // namespace ortc::kernels
