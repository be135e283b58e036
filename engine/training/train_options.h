// The options of a training.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/training/follower.h"
#include "engine/training/watch.h"
#include "support/Schedule.h"
#include "support/Status.h"

namespace ortc::engine {

/// Steps between two looks at watched tensors: they take as long as a copy of all of them.
constexpr int64_t kWatchEvery = 100;

/// The learning rate of a step, counted from 0 over all runs.
using RateFunction = std::function<Status(int64_t step, double &rate)>;

/// Flags of `ortc run`. A host program that trains by itself leaves those of files to its own parts, whose names
/// messages have from here.
struct TrainOptions {
  std::string artifact, data, evalData, binding;
  std::string buckets; ///< the array of lengths that chooses the binding of every step; empty: one binding
  std::string device = "cpu";           ///< as Device has it
  std::optional<int64_t> epochs, steps; ///< at most one of them; neither: one epoch. Of this run, not in all
  bool shuffle = true;
  int64_t rank = 0, world = 1; ///< this process and all that share the data
  std::optional<uint64_t> seed;
  std::optional<double> lr;
  std::optional<Schedule> schedule;
  RateFunction rate;                    ///< of a host program: instead of both
  std::vector<std::string> evalMetrics; ///< as --metric has them
  Watch watch;                          ///< tensors to see in the metrics
  int64_t watchEvery = 0;               ///< steps; 0: kWatchEvery
  std::string metrics, save, load;
  std::string evalWeights; ///< averages that evaluations take, as AveragesInPlace has them
  int64_t saveEvery = 0;   ///< steps; 0: at the end only
  int64_t keep = 0;        ///< checkpoints of saveEvery that stay; 0: the newest, without a name of its own
  int64_t evalEvery = 0;   ///< steps; 0: an epoch
  FollowOptions follow;    ///< what evaluations are for
  std::string saveBest;
  bool stopOnNan = false, quiet = false;
  bool profile = false; ///< ends with a table of the kernels by time
  uint32_t threads = 0;
};

} // namespace ortc::engine
