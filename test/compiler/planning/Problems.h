// Problems for the planner's tests: a small builder and seeded random problems.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/Plan.h"

#include <algorithm>
#include <random>

namespace ortc::planning::test {

/// Adds a buffer of `bytes` and returns its id.
inline BufferId addBuffer(Problem &problem, const char *name, uint64_t bytes, bool atStart = false,
                          bool atEnd = false) {
  problem.buffers.push_back({name, bytes, kDefaultAlignment, atStart, atEnd});
  return BufferId(problem.buffers.size() - 1);
}

inline Step &addStep(Problem &problem, const char *name, std::vector<BufferId> reads,
                     std::vector<BufferId> writes) {
  Step step;
  step.name = name;
  step.reads = std::move(reads);
  step.writes = std::move(writes);
  problem.steps.push_back(std::move(step));
  return problem.steps.back();
}

/// A number in [low, high] that is the same on every machine.
inline uint32_t draw(std::mt19937 &random, uint32_t low, uint32_t high) {
  return low + random() % (high - low + 1);
}

struct RandomOptions {
  uint32_t steps = 8;
  uint32_t largest = 10; ///< sizes are 1..largest times 64
  bool views = true, inPlace = true, workspaces = true, segments = false, bodies = false;
  bool oddSizes = false; ///< sizes and alignments that are not multiples of 64
};

/// A legal problem with every feature that is switched on: each step writes one or two buffers (sometimes
/// parts of one that was cut in views) and reads some of the earlier ones.
inline Problem randomProblem(uint32_t seed, const RandomOptions &options) {
  std::mt19937 random(seed);
  Problem problem;
  std::vector<BufferId> readable;
  auto size = [&]() -> uint64_t {
    if (options.oddSizes)
      return draw(random, 0, 64 * options.largest);
    return 64ull * draw(random, 1, options.largest);
  };
  auto add = [&](uint64_t bytes, bool start, bool end) {
    problem.buffers.push_back({"b" + std::to_string(problem.buffers.size()), bytes,
                               options.oddSizes ? 1ull << draw(random, 0, 8) : kDefaultAlignment, start,
                               end});
    return BufferId(problem.buffers.size() - 1);
  };
  // One draw per statement: the order of arguments is the compiler's choice.
  for (uint32_t i = draw(random, 0, 2); i > 0; --i) {
    uint64_t bytes = size();
    readable.push_back(add(bytes, true, draw(random, 0, 4) == 0));
  }
  for (uint32_t s = 0; s < options.steps; ++s) {
    Step step;
    step.name = "s" + std::to_string(s);
    for (uint32_t i = draw(random, 0, 3); i > 0 && !readable.empty(); --i) {
      uint32_t recent = std::min<uint32_t>(uint32_t(readable.size()), 6);
      step.reads.push_back(readable[readable.size() - 1 - draw(random, 0, recent - 1)]);
    }
    bool consumer = draw(random, 0, 3) == 0;
    if (!consumer)
      for (uint32_t i = draw(random, 1, 2); i > 0; --i) {
        uint64_t bytes = size();
        BufferId b = add(bytes, false, draw(random, 0, 9) == 0);
        step.writes.push_back(b);
        readable.push_back(b);
        if (options.views && draw(random, 0, 3) == 0) {
          uint64_t offset = 64 * draw(random, 0, uint32_t(bytes / 64));
          BufferId view = add(draw(random, 0, uint32_t(bytes - offset)), false, false);
          problem.buffers[view].alignment = std::min<uint64_t>(problem.buffers[view].alignment, 64);
          problem.views.push_back({view, b, offset});
          readable.push_back(view);
        }
        if (options.inPlace)
          for (BufferId read : step.reads)
            if (draw(random, 0, 1) == 0)
              step.inPlace.push_back({read, b});
      }
    if (options.views && !consumer && draw(random, 0, 5) == 0 && s > 0) {
      // A concatenation: this step writes the first part, the next ones may fill the second.
      BufferId whole = add(128, false, false);
      BufferId part = add(64, false, false);
      problem.buffers[whole].alignment = problem.buffers[part].alignment = kDefaultAlignment;
      problem.views.push_back({part, whole, 64 * draw(random, 0, 1)});
      step.writes.push_back(part);
      readable.push_back(whole);
    }
    if (s > 0 && draw(random, 0, 4) == 0)
      step.after.push_back(draw(random, 0, s - 1));
    if (options.workspaces && draw(random, 0, 3) == 0)
      step.workspace = draw(random, 1, 64 * options.largest);
    if (options.segments)
      step.segment = s / 3;
    if (options.bodies && draw(random, 0, 3) == 0) {
      RandomOptions inner = options;
      inner.steps = draw(random, 1, 4);
      inner.bodies = draw(random, 0, 2) == 0;
      inner.segments = false;
      step.inner = std::make_shared<const Problem>(randomProblem(random(), inner));
    }
    problem.steps.push_back(std::move(step));
  }
  return problem;
}

} // namespace ortc::planning::test
