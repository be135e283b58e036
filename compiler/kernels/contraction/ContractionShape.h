// The dims of a contraction: which it sums over, and in which order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/Types.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace ortc::kernels {

/// One dimension of a contraction: how far each operand moves per step, in elements (`strides[i]` belongs to
/// `operands[i]`; 0 = the operand does not have the dimension).
struct ContractionDim {
  int64_t size = 1;
  llvm::SmallVector<int64_t, 4> strides;
};

/// A buffer as the contraction sees it. Operands 0 and 1 are A and B; the others belong to the epilogue, which reads
/// or writes them at the position of an element of C.
struct ContractionOperand {
  unsigned buffer = 0; ///< position among the kernel's inputs, then outputs
  int64_t offset = 0;  ///< of the first element
};

/// C[b, m, n] = epilogue(sum over k of A[b, m, k] * B[b, k, n]).
struct ContractionShape {
  /// A, B, then what the epilogue touches. Without epilogue operand 2 is C and gets the sums as they are.
  llvm::SmallVector<ContractionOperand> operands;
  /// Outermost first. m has A and not B, n has B and not A, k has A and B and nothing else.
  llvm::SmallVector<ContractionDim> batch, m, n, k;
  /// f32 or f64. A and B have this element type, or are stored as `narrowA`, `narrowB` say.
  mlir::Type accumulatorType;
  /// Types of operands that are extended to f32 (`Widening`), null otherwise. f16 and bf16 are stored as i16.
  mlir::Type narrowA, narrowB;
  /// The same of operand 0 or 1.
  mlir::Type narrow(unsigned operand) const { return operand == 0 ? narrowA : narrowB; }

  /// Multiplications and additions.
  int64_t flops() const;
};

/// Positions over all of `dims`.
int64_t sizeOf(llvm::ArrayRef<ContractionDim> dims);

/// Removes dims of size one and merges dims that are one for every operand.
llvm::SmallVector<ContractionDim> collapseDims(llvm::ArrayRef<ContractionDim> dims);

/// True for thin shapes whose long dim is contiguous along k in both operands: they are summed along k in 16 lanes.
/// Depends on the shape only, since the order of summation does.
bool usesDotKernel(const ContractionShape &shape);

/// The dims of a tile, those around it, and blocks of k. The order of sums follows from it, so it depends on
/// the shape alone.
struct ContractionAxes {
  /// The operand that is broadcast and the one whose vectors are loaded: 0 and 1, or swapped.
  unsigned rowOperand = 0, laneOperand = 1;
  llvm::SmallVector<ContractionDim> outer;   ///< iterated around the tile: batch and all but one m and n dim
  ContractionDim row, lane;                  ///< the dims of the tile
  llvm::SmallVector<ContractionDim> kBlocks; ///< outer k dims, one block per index
  llvm::SmallVector<ContractionDim>
      kLoops; ///< k dims inside the tile; the last one is cut in blocks of kBlock
  int64_t kBlock = 0;
  int64_t kBlockCount = 1; ///< blocks along the last of kLoops
  int64_t outerTotal = 1;

  /// All dims of k, outermost first: every sum runs along them.
  llvm::SmallVector<ContractionDim> depthDims() const {
    llvm::SmallVector<ContractionDim> dims(kBlocks);
    dims.append(kLoops.begin(), kLoops.end());
    return dims;
  }
  /// Blocks of k in all.
  int64_t blocks() const { return sizeOf(kBlocks) * kBlockCount; }
  /// Elements of k in a block (the largest).
  int64_t blockDepth() const;
  /// Whether rows of the broadcast operand are neighbours in memory. Else each is a stream of its own, and
  /// many rows of a large pitch share few cache sets.
  bool areRowsContiguous() const { return row.strides[rowOperand] == 1; }
};

/// `output`: the operand that decides about the direction of lanes, the first one written.
ContractionAxes chooseAxes(const ContractionShape &shape, unsigned output);

} // namespace ortc::kernels
