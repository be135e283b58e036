// The head of a model in chunks of rows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A classifier over many classes gives a row of logits for each sample or token, and its loss is a sum over the rows.
// A loop over chunks of rows computes logits, their part of the sum, and right away the gradients of this part, so that
// logits and their gradients exist for one chunk at a time, and nothing is computed twice: the gradient of the loss is
// that of the sum times a number (as Liger Kernel does it: Hsu et al., 2024).
#pragma once

#include "compiler/autodiff/Differentiate.h"

#include <optional>

namespace ortc::train {

/// What stands in the block instead of the head.
struct ChunkedHead {
  mlir::Value before;                    ///< the sum that stood there
  mlir::Value sum;                       ///< over all rows: a scalar, detached from the loop that computes it
  llvm::SmallVector<mlir::Value> inputs; ///< what the head read: activations, weights, ...
  llvm::SmallVector<mlir::Value> gradients; ///< of the sum, of the same types
};

/// Looks in the builder's block, in front of its insertion point, for a product with a matrix from which nothing but a
/// sum over all rows is computed, and which reads nothing else as large; takes the largest. Replaces it by a loop over
/// chunks of at most `rows` rows; 0: of 64 MiB, where the result is 1.5 times as large as that and the matrix together.
/// None where there is no such product, or where rows cannot be parted into equal chunks. Fails, with an error, where
/// something in it has no gradient.
mlir::FailureOr<std::optional<ChunkedHead>> chunkHead(nn::TensorBuilder &builder, int64_t rows,
                                                      const autodiff::DifferentiateOptions &options = {});

} // namespace ortc::train
