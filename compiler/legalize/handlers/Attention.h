// What operators with attention share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/legalize/Node.h"

#include <array>

namespace ortc::legalize {

/// [batch, time, heads * size] -> [batch, heads, time, size], and back.
Value splitHeads(TensorBuilder &b, Value x, int64_t heads);
Value joinHeads(TensorBuilder &b, Value x);

/// What a query sees: `bias` is added to the scores, `allowed` (booleans) hides the rest. Either may be null.
struct Visibility {
  Value bias, allowed;
  bool mayBeEmpty = false; ///< a query may see no key at all

  void restrict(TensorBuilder &b, Value condition) {
    allowed = allowed ? b.logicalAnd(allowed, condition) : condition;
  }
};

/// The scores on their way: scaled products, soft-capped, masked, as weights.
using ScoreSteps = std::array<Value, 4>;

/// softmax(scale * q k' [softcapped] [masked]) v; query heads are a multiple of key heads. [batch, heads, time, size].
Value attend(TensorBuilder &b, Value q, Value k, Value v, double scale, double softcap, const Visibility &see,
             ScoreSteps &steps);

/// The rows of a table that `positions` (checked) name.
Value takeRows(TensorBuilder &b, Value table, Value positions);

/// Turns pairs of the first `size` features of x, [batch, heads, time, features], by angles whose cosines and
/// sines are [batch, time, size / 2]. Shapes have been checked.
Value rotate(TensorBuilder &b, Value x, Value cosine, Value sine, int64_t size, bool interleaved);

} // namespace ortc::legalize
