// Attention in a tensor program: which operations it is made of.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mixed values of a head are `softmax(f(q k')) v`: two contractions, a softmax along the keys, and elementwise work
// between them, on tensors with a row of scores for each query. `f` scales, adds biases, hides; behind the softmax may
// stand dropout. All of it is recognised by its shapes; what it computes does not matter.
#pragma once

#include "dialects/nn/TensorBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

namespace ortc::attention {

/// What a dimension of a value is to the scores. The leading dimensions of the scores, batch and heads, are one index,
/// counted in row-major order; a lead is the part of it with `size` values, each `outer` of those before it.
struct Dim {
  enum Kind { one, lead, row, key } kind = one;
  int64_t outer = 1, size = 1; ///< of a lead

  bool operator==(const Dim &) const = default;
};
using Dims = llvm::SmallVector<Dim, 5>;

bool hasKind(llvm::ArrayRef<Dim> dims, Dim::Kind kind);

struct Match {
  nn::DotOp scores; ///< queries, keys
  nn::SoftmaxOp softmax;
  nn::DotOp mix; ///< weights, values, in either order
  bool weightsAreLeft = true;
  int64_t batch = 1;  ///< leading index: of the contractions
  int64_t groups = 1; ///< query heads of a key head, behind it
  int64_t rows = 1, keys = 1;
  /// Every value between and beside: those computed for a tile of the scores, and the others, `inputs`.
  llvm::DenseMap<mlir::Value, Dims> values;
  llvm::MapVector<mlir::Value, Dims> inputs;
  llvm::SetVector<mlir::Value> random; ///< bits for every score, which are drawn in the tile
  bool dropsHidden = false;            ///< what a mask hides is mixed as zero
  /// Constants that are the same for all leads, and that one.
  llvm::DenseMap<mlir::Value, mlir::Value> tables;

  mlir::Value weights() { return weightsAreLeft ? mix.getLhs() : mix.getRhs(); }
  mlir::Value mixed() { return weightsAreLeft ? mix.getRhs() : mix.getLhs(); }
};

/// The attention whose weights `softmax` makes; none where something else reads scores or weights, or where what is
/// beside them is as large as they are, and with fewer than `least` scores a head.
std::optional<Match> matchAttention(nn::SoftmaxOp softmax, int64_t least);

} // namespace ortc::attention
