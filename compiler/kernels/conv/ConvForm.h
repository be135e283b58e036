// Convolutions with elementwise operations on their result.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/KernelWork.h"
#include "compiler/kernels/contraction/FusedEpilogue.h"
#include "compiler/kernels/conv/ConvShape.h"

#include <array>
#include <memory>
#include <optional>
#include <string>

namespace ortc::kernels {

/// A buffer and how it follows the dimensions of the result (strides are empty for the convolution's own operands).
struct ConvOperand {
  unsigned buffer = 0; ///< position among the kernel's inputs, then outputs
  int64_t offset = 0;  ///< of the first element
  llvm::SmallVector<int64_t, 5> strides;
};

/// One convolution or gradient of f32 or f64, on inputs as they are, or extended to f32; behind it elementwise
/// operations on every element of the result once, whose operands lie along the features as the result does or do not
/// change with them. A conv_filter_grad takes some only where it has whole sums before any is stored.
struct ConvForm {
  mlir::Operation *op = nullptr;
  /// Those of the operation, then those of the epilogue; without epilogue operand 2 is the result.
  llvm::SmallVector<ConvOperand> operands;
  /// Types of the operation's operands that are extended to f32 (`Widening`), null of others. f16 and bf16 are
  /// stored as i16.
  std::array<mlir::Type, 2> narrow;
  std::shared_ptr<FusedEpilogue> epilogue;

  /// Nothing, with a `reason`, when `inputs` and `outputs` are not those of a convolution. Everything between
  /// them is defined by operations outside of any plan.kernel.
  static std::optional<ConvForm> analyze(mlir::ValueRange inputs, mlir::ValueRange outputs,
                                         std::string &reason);

  /// Pairs of an input and an output that may share memory (FusedEpilogue::inPlacePairs).
  llvm::SmallVector<int64_t> inPlacePairs() const;

  KernelWork work() const; ///< without bytes
};

/// Whether a convolution's kernel has the whole sum of an element before it is stored, once, so that it can compute
/// with it. Of filter gradients not all have: others are stored as they are.
bool storesWholeSums(mlir::Operation *conv);

} // namespace ortc::kernels
