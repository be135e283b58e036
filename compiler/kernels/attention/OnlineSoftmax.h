// A softmax along the keys that is mixed in the pass that finds its maximum and its sum.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/loop/LoopProgram.h"

#include <optional>

namespace ortc::kernels {

/// Exponentials of scores below the largest one so far can be summed and mixed at once, and what has been mixed is
/// scaled when a larger score comes ("Online normalizer calculation for softmax", Milakov and Gimelshein, 2018). All
/// that is mixed must be proportional to them, and to a factor of the row that follows from their sum.
struct OnlineSoftmax {
  unsigned maximum = 0, sum = 0;                    ///< reductions
  unsigned scores = 0, exponential = 0, factor = 0; ///< nodes; the factor is that of a row
};

/// Nothing where the passes of the program are others.
std::optional<OnlineSoftmax> findOnlineSoftmax(const LoopProgram &program);

} // namespace ortc::kernels
