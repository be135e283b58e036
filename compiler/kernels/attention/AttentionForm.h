// Attention and its gradients: products of scores, as one kernel that stores no scores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scores are products of short sums, one for every pair of a row and a key. What is computed from them, element by
// element and with sums and maxima along the keys, is mixed: another product sums it along the keys. Forward attention
// is such a program (rows are queries), and so are the gradients of queries (the same) and of keys and values (rows are
// keys, keys are queries). Scores are computed anew in every pass over the keys, a tile at a time, and never stored.
#pragma once

#include "compiler/kernels/FusionLimits.h"
#include "compiler/kernels/contraction/ContractionForm.h"
#include "compiler/kernels/loop/LoopProgram.h"

namespace ortc::kernels {

/// A product of one batch index, whose elements are named by positions: those of the scores as the loop program counts
/// them, row-major over its dims.
struct AttentionForm {
  /// Positions `step`, 2 `step`, ... apart.
  struct Axis {
    int64_t size = 1, step = 0;

    bool operator==(const Axis &other) const { return size == other.size && step == other.step; }
  };
  /// A dim of a product and how far apart its indices are in the positions of its scores.
  struct ScoreDim {
    ContractionDim dim;
    int64_t step = 1;
  };
  /// A product that makes scores. Positions are those of its result.
  struct Scores {
    nn::DotOp dot;
    ContractionShape shape;
    llvm::SmallVector<ScoreDim> dims; ///< all but the depth
    ContractionDim depth;
    unsigned buffer = 0;     ///< of `program`, in place of its result
    unsigned rowOperand = 0; ///< the operand that has the rows; the other one has the keys
    int64_t rowStride = 0, keyStride = 0;
  };
  /// A product that sums along the keys. Positions are those of the loop program.
  struct Mix {
    ContractionForm form;
    llvm::SmallVector<ScoreDim> dims; ///< of the scores but the keys, with the row and the groups
    ContractionDim row, key, column;  ///< `key`: as the mixed operand has them
    unsigned output = 0;              ///< of `program`: the mixed scores
    unsigned scoreOperand = 0;
    unsigned mixedOperand() const { return 1 - scoreOperand; }
  };

  /// Its buffers are the inputs of the kernel, the results of `scores`, then those of `mixes` in place of the scores
  /// that they take, and the results of rows.
  LoopProgram program;
  Axis row, key;
  llvm::SmallVector<Axis> groups; ///< of keys, which are summed up, too: the query heads of a key head
  llvm::SmallVector<Axis>
      others; ///< all positions of the program are sums of these, a group, a row and a key
  llvm::SmallVector<Scores, 2> scores;
  llvm::SmallVector<Mix, 2> mixes;
  /// Outputs of the kernel that `mixes` make, then those that rows have, as numbers of outputs.
  llvm::SmallVector<unsigned> mixOutputs, rowOutputs;

  int dimOf(const Axis &axis) const; ///< of the program, which has all of the axis; -1: none has
  int64_t products() const;          ///< blocks of rows beside each other
  int64_t groupCount() const;        ///< that a row is summed over

  /// Nothing, with a `reason`, where `outputs` are not those of attention. Everything between them and `inputs` is
  /// defined by operations outside of any plan.kernel.
  static std::optional<AttentionForm> analyze(mlir::ValueRange inputs, mlir::ValueRange outputs,
                                              std::string &reason);

  /// Whether its kernel is worth having. `reason` says what stands against it.
  bool suits(const FusionLimits &limits, std::string &reason) const;

  KernelWork work() const; ///< without bytes
};

/// Whether a kernel computes attention of these sizes: heads have `depth` elements of queries and keys and `columns` of
/// values, each multiplied as `parts` numbers of 16 bits, of which it takes `most` in all.
bool fitsAttention(int64_t rows, int64_t keys, int64_t depth, int64_t columns, int64_t parts, int64_t most);

/// Whether a kernel of these operations is attention: it has several products.
bool isAttention(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace ortc::kernels
