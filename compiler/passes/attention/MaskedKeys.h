// Which keys a known mask hides.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/evaluator/HostTensor.h"
#include "compiler/passes/attention/TileValues.h"

namespace ortc::attention {

/// Finds the keys that rows of attention see, where that is known at compile time: causality, windows, constant masks.
class MaskedKeys {
public:
  /// From the first to the last key that some of `rows` see; all of them where a mask is not known, or where a row
  /// sees none.
  Range find(Match &match, Range rows);

private:
  using Key = std::tuple<const void *, bool, bool, int64_t, int64_t>;
  std::map<Key, Range> found; ///< by the mask, where it is the only one: layers share it
};

} // namespace ortc::attention
