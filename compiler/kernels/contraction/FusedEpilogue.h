// Elementwise operations behind a tensor that a kernel computes: on its vectors, before they are stored.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/contraction/StridedView.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <memory>
#include <string>

namespace ortc::kernels {

/// Elementwise operations on `result`, the tensor that a contraction or convolution makes.
struct FusedEpilogue {
  mlir::Type element;  ///< of the result
  LoopProgram program; ///< all values are lanes
  /// The operands that it touches, beside the positions of the result. The first of them is operand `firstOperand`.
  View view;
  /// Loads of the result, operand of every other load, operand and node of every output.
  llvm::DenseSet<unsigned> resultNodes;
  llvm::DenseMap<unsigned, unsigned> loadOperand;
  llvm::SmallVector<std::pair<unsigned, unsigned>> outputs;
  /// False when the result is stored as it is.
  bool computes = false;
  int64_t flops = 0;

  /// Operands 0 and 1 are those of the operation in front.
  static constexpr unsigned firstOperand = 2;

  /// Fails, with a `reason`, unless `outputs` are elementwise functions of every element of `result` once and
  /// of `inputs`; they may be reshaped and transposed, and inputs broadcast. Buffers are the inputs, then the
  /// outputs.
  static std::shared_ptr<FusedEpilogue> analyze(mlir::ValueRange inputs, mlir::ValueRange outputs,
                                                mlir::Value result, std::string &reason);

  /// Pairs of an input and an output, one after the other, that may share memory: the epilogue reads the
  /// input at the element that it writes, and nowhere else. `operands`: buffers that the operation in front
  /// reads, wherever it likes.
  llvm::SmallVector<int64_t> inPlacePairs(llvm::ArrayRef<unsigned> operands) const;

  /// Whether it is too long to be emitted for every vector of a tile.
  bool isLong() const;
};

} // namespace ortc::kernels
