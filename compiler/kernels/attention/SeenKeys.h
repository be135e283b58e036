// Which keys the rows of attention see, where that is known at compile time: causality and windows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/attention/AttentionForm.h"

#include <vector>

namespace ortc::kernels {

/// Steps of keys [first, end) of a tile of rows.
struct SeenKeys {
  int64_t first = 0, end = 0;

  bool operator==(const SeenKeys &other) const { return first == other.first && end == other.end; }
};

/// Of every tile of `rows` rows, from the first to the last step of `keys` keys that one of them sees: all others add
/// nothing to any sum, and mix nothing. All steps where that is not known.
std::vector<SeenKeys> findSeenKeys(const AttentionForm &form, int64_t rows, int64_t keys);

} // namespace ortc::kernels
