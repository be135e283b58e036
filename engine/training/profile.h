// Where the time of training steps goes: kernels by time, beside what the machine could do.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/artifact/kernel_table.h"
#include "support/Machine.h"

namespace ortc::engine {

/// The sums over the steps that were measured.
struct StepTimes {
  struct Kernel {
    double seconds = 0;
    int64_t calls = 0;
  };
  std::vector<Kernel> kernels; ///< by the number that a trace hook gets
  int64_t steps = 0, warmUp = 0;
  double dataSeconds = 0; ///< the inputs' copies
  double stepSeconds = 0; ///< the calls of the step
};

/// Takes the times of kernels as a trace hook of a session. The first steps are not counted.
class Profiler {
public:
  /// The hook; `context` is the profiler. Between steps it does nothing.
  static void trace(void *context, uint32_t kernel, uint32_t phase);

  /// `steps`: of the run. A tenth of them, from 1 to 10, are for warming up; of a single step none.
  void start(int64_t steps, size_t kernels);
  void beginStep();
  /// What the two parts of the step have taken.
  void endStep(double dataSeconds, double stepSeconds);
  const StepTimes &getTimes() const { return times; }

private:
  StepTimes times;
  std::vector<StepTimes::Kernel> current; ///< of this step, in ticks
  int64_t waiting = 0;                    ///< steps that still are for warming up
  uint64_t begun = 0, stepBegun = 0;
  bool isActive = false;
};

/// A kernel's line. Everything is of one step, on average.
struct ProfileRow {
  const KernelFacts *kernel = nullptr;
  double calls = 0, seconds = 0, flops = 0, bytes = 0;
  double bound = 0; ///< seconds that its work takes at least on this machine; 0: not known
};

/// The times of steps, beside the least that this machine needs for their work.
struct Profile {
  std::vector<ProfileRow> rows; ///< kernels that ran, slowest first
  ProfileRow total;             ///< the whole step
  double between = 0, data = 0; ///< seconds between kernels, and for the inputs
  int64_t steps = 0, warmUp = 0;
  Machine single, all; ///< one core, and all threads of the session
  bool isDouble = false;
};

/// `single` and `all` say what the machine can do in f32. The table must outlive the result.
Profile makeProfile(const StepTimes &times, const KernelTable &table, const Machine &single,
                    const Machine &all);

/// The table that `ortc run --profile` ends with, of at most `most` kernels; the others share a line.
std::string formatProfile(const Profile &profile, const std::string &target, size_t most = 30);

/// Pairs of a key and a JSON value, for the event of the metrics.
std::vector<std::pair<std::string, std::string>> describeProfile(const Profile &profile);

} // namespace ortc::engine
