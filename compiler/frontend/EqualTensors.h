// Tensors that hold the same elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What folding makes of one weight: bitwise equal tensors, transposes and reshapes of each other. No graph is
// looked at.
#pragma once

#include "compiler/frontend/Model.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ortc::frontend {

/// How a copy is made from an original: reshaped to `shape`, transposed by `permutation` (as the operator
/// Transpose has it), then reshaped to its own shape.
struct TensorView {
  std::vector<int64_t> shape;
  std::vector<int64_t> permutation; ///< of `shape`; empty: the elements stand in the same order

  bool isTransposed() const { return !permutation.empty(); }
};

/// Elements that may be compared to find out whether tensors of that many, all together, are views: enough
/// for all permutations of 4 dimensions, and of 6 where one tensor has no more than 512 elements.
size_t comparisonsFor(size_t elements);

/// How `copy` is a view of `original`, bit for bit; nothing where it is none, or where finding it takes more
/// comparisons of elements than `comparisons`, which it takes from. A wrong permutation ends at its first
/// difference: early in elements drawn at random, at the end in those that are nearly all zero. More than 6
/// dimensions above 1 are compared in their own order only.
std::optional<TensorView> findView(const TensorData &original, const TensorData &copy, size_t &comparisons);
/// With as many comparisons as one pair needs.
std::optional<TensorView> findView(const TensorData &original, const TensorData &copy);

/// The same for all views of one tensor, and different for tensors that differ, but for chance. Constant
/// time: reads the ends.
uint64_t hashEnds(const TensorData &tensor);
/// As `hashEnds`, of all elements.
uint64_t hashElements(const TensorData &tensor);

/// Whether the elements look drawn at random, so that no other tensor has the same ones by chance: not fewer
/// than 4 different values, at least every second element different, and not evenly spaced by difference or
/// ratio. Constant fills, identity matrices, masks, filters written by hand and ramps do not. Floating-point
/// types only. Looks at no more than 16 stretches of 4096 elements; one such stretch is enough.
bool looksRandom(const TensorData &tensor);

} // namespace ortc::frontend
