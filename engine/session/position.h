// Where a training stands, and the metadata that carries it from run to run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <optional>
#include <string>

#include "support/Schedule.h"

namespace ortc::engine {

/// All that a resumed run needs beside parameters and state. It travels in the metadata of a checkpoint under
/// keys that begin with "run.".
struct Position {
  uint64_t seed = 0;
  bool shuffle = true;
  int64_t step = 0;             ///< steps done over all runs
  int64_t epoch = 0, slice = 0; ///< of the next step
  int64_t items = 0;            ///< of the data: samples of a batch, else slices
  int64_t world = 1;            ///< processes that share them, on which it depends what a slice is
  double lr = 0;                ///< base of the schedule
  Schedule schedule;
};

/// The most steps, epochs, slices and items of a training, and the most steps of a run: what a double counts
/// exactly. Sums of them do not overflow.
constexpr int64_t kMostSteps = int64_t(1) << 53;

std::map<std::string, std::string> formatPosition(const Position &position);

/// Reads it back. No "run." keys: `position` stays empty, which is fine. Anything that is missing or
/// malformed among them is a failure: a training must not silently go on from somewhere else.
Status parsePosition(const std::map<std::string, std::string> &metadata, const std::string &path,
                     std::optional<Position> &position);

} // namespace ortc::engine
