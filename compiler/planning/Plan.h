// What the memory planner answers: an order of the steps and a place for every buffer, with its bounds.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/Problem.h"
#include "support/Expected.h"

namespace ortc::planning {

/// Limits of the searches, all in counted work, none in time: the same problem and options give the same
/// plan on every machine. A unit is about one to three nanoseconds.
struct PlanOptions {
  bool reorder = true; ///< false keeps the source order
  bool release = true; ///< with reorder=false: still run consumer-only steps (updates) as early as possible
  bool inPlace = true; ///< use the in-place candidates
  uint64_t orderWork = 200'000'000; ///< local search over orders
  /// all orders of small problems, where the search ends above the bound
  uint64_t exactOrderWork = 20'000'000;
  uint64_t boundWork = 200'000'000;  ///< lower bound of the order; a spent limit leaves a weaker bound
  uint64_t offsetWork = 300'000'000; ///< offsets beyond the first placements
  /// exact offset search for small hard cases where the rest misses max-live
  uint64_t exactWork = 50'000'000;
  uint64_t arenaTarget = 0; ///< offsets are good enough when the arena has at most so many bytes
};

inline constexpr uint32_t kNoStorage = UINT32_MAX;
inline constexpr uint64_t kNoOffset = UINT64_MAX;

/// Figures about a plan that nothing depends on.
struct PlanStatistics {
  std::string orderSource;      ///< candidate the order came from, e.g. "source+release"
  std::string offsetSource;     ///< placement the offsets came from, e.g. "skyline:area"
  uint64_t plainSourcePeak = 0; ///< max-live of the untouched source order
  uint64_t inPlaceWrites = 0;
  uint64_t inPlaceBytes = 0;
  uint64_t storages = 0;
  uint64_t orderWork = 0, boundWork = 0, offsetWork = 0; ///< work done
  bool boundComplete = false; ///< false: boundWork was spent, orderBound may be below the true bound
};

/// The plan of a problem; indices are those of the problem.
struct Plan {
  std::vector<StepId> order;          ///< steps in the order they run
  std::vector<uint32_t> storageOf;    ///< per buffer: buffers of one storage share bytes; kNoStorage: 0 bytes
  std::vector<uint64_t> offsetOf;     ///< per buffer: arena offset of its first byte
  std::vector<uint64_t> workspaceOf;  ///< per step: arena offset of the workspace, kNoOffset if none
  std::vector<uint64_t> innerArenaOf; ///< per step: arena offset where the inner arena starts, or kNoOffset
  std::vector<std::vector<InPlace>> inPlace;      ///< per step: the candidates taken
  std::vector<std::shared_ptr<const Plan>> inner; ///< per step: plan of the body, or null

  uint64_t arenaBytes = 0;
  uint64_t arenaAlignment = kDefaultAlignment; ///< of the arena's first byte

  /// Most bytes alive at one step of `order`, sizes rounded up to the smallest alignment of the problem (at
  /// most 64): no offsets can need less. A write in place of a larger buffer keeps its own bytes only.
  uint64_t maxLive = 0;
  uint64_t sourcePeak = 0; ///< max-live of the source order with consumer-only steps as early as possible
  uint64_t orderBound = 0; ///< no order can have a max-live below this

  PlanStatistics statistics;
};

/// Plans `problem`. The result has passed validate(). Deterministic; thread-safe.
/// Refuses a problem that contradicts itself, or whose sizes or ids are too large, naming the buffer or step.
Expected<Plan> plan(const Problem &problem, const PlanOptions &options = {});

/// Says whether plan() would take `problem` (nested ones too), without planning.
Status check(const Problem &problem);

/// Checks a plan against its problem, from nothing but the two and with none of the planner's code: order
/// and dependencies, liveness, bounds, alignment, in-place legality, no overlap of live bytes, max-live.
/// Nested plans too. `problem` must be one that check() accepts. Fails with a message that
/// names the buffer or step.
Status validate(const Problem &problem, const Plan &plan);

} // namespace ortc::planning
