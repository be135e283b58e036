// The head of a model in chunks of rows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A classifier over many classes gives a row of logits for each sample or token, and its loss is a function of a sum
// over the rows. A loop over chunks of rows computes logits, their part of the sum, and right away the gradients of
// this part, so that logits and their gradients exist for one chunk at a time, and nothing is computed twice (as Liger
// Kernel does it: Hsu et al., 2024). Rows whose term is zero, of labels that are ignored, come last, and chunks of such
// rows alone are left out.
#pragma once

#include "compiler/autodiff/Differentiate.h"

#include <optional>

namespace ortc::train {

/// What is differentiated: values with a cotangent each. `replaced`: values of the block, and which stand for them now.
struct Differentiation {
  llvm::SmallVector<mlir::Value> sources, cotangents;
  llvm::DenseMap<mlir::Value, mlir::Value> replaced;
};

/// Looks in the builder's block, in front of its insertion point at the end, for a product with a matrix from which
/// nothing but a sum over all rows is computed, and which reads nothing else as large; takes the largest. Replaces it
/// by a loop over chunks of at most `rows` rows; not given: of `bytes`, where the result is 1.5 times as large as that
/// and the matrix together. The sources are functions of the sum then, which is detached, and what the head reads is
/// among them, with its gradients. Changes nothing where there is no such product, where rows cannot be parted into
/// equal chunks, or where the gradient of the sum depends on the sum. Fails, with an error, where something has no
/// gradient.
mlir::LogicalResult chunkHead(nn::TensorBuilder &builder, std::optional<int64_t> rows, int64_t bytes,
                              const autodiff::DifferentiateOptions &options, Differentiation &what);

} // namespace ortc::train
