// Contractions with views of their operands and elementwise operations on their result.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/FusionLimits.h"
#include "compiler/kernels/KernelWork.h"
#include "compiler/kernels/contraction/FusedEpilogue.h"
#include "dialects/nn/NnDialect.h"

#include <memory>
#include <optional>
#include <string>

namespace ortc::kernels {

/// One nn.dot. Between inputs and dot stands only movement that strides can say (transpose, reshape, broadcast, slice);
/// behind it elementwise operations on every element of the result once, which may be reshaped and transposed and read
/// inputs broadcast.
struct ContractionForm {
  nn::DotOp dot;
  ContractionShape shape;
  std::shared_ptr<FusedEpilogue> epilogue;

  /// Nothing, with a `reason`, when `inputs` and `outputs` are not those of a contraction. Everything between
  /// them is defined by operations outside of any plan.kernel.
  static std::optional<ContractionForm> analyze(mlir::ValueRange inputs, mlir::ValueRange outputs,
                                                std::string &reason);

  /// Whether its kernel is worth having: vectors of the result stay vectors in every operand of the epilogue,
  /// and a tile is not smaller than `limits` want it for being cut by views. `reason` says what stands
  /// against it.
  bool suits(const FusionLimits &limits, std::string &reason) const;

  /// Pairs of an input and an output, one after the other, that may share memory: the epilogue reads
  /// the input at the element that it writes, and nowhere else.
  llvm::SmallVector<int64_t> inPlacePairs() const;

  KernelWork work() const; ///< without bytes
};

} // namespace ortc::kernels
