// Deltas: the difference of two checkpoints, as devices write it (ortc/delta.h), and their mean.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/Status.h"

namespace ortc::engine {

/// `ortc delta`.
struct DeltaOptions {
  std::string base; ///< a checkpoint or an artifact
  std::string trained, output;
  bool int8 = false, quiet = false;
};

/// Writes the difference of `trained` from `base`; the bytes are those that ortc_delta_write gives.
Status makeDelta(const DeltaOptions &options);

/// `ortc merge`.
struct MergeOptions {
  std::vector<std::string> files; ///< checkpoints; with `base`: deltas
  std::string base;               ///< empty: none
  std::string output;
  std::vector<double> weights; ///< one for each file; empty: all alike
  bool quiet = false;
};

/// Writes the weighted mean of checkpoints, or a base and the weighted mean of deltas from it.
Status mergeFiles(const MergeOptions &options);

} // namespace ortc::engine
