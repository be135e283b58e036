// Searches for what to drop and make again: frontier cuts under perturbed prices, then single gaps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/Arithmetic.h"
#include "compiler/planning/order/FrontierCut.h"
#include "compiler/planning/recompute/Replay.h"

namespace ortc::planning {

/// Looks for the schedule of least time whose peak is within a budget; of what is above it, the one with the
/// smallest peak. Acceptance is by threshold: a step back of up to a limit that falls to zero is taken.
class RecomputeSearch {
public:
  RecomputeSearch(const RecomputeGraph &graph, const Order &base, uint64_t seed);

  /// The best schedule that the work allows. `before`, of a search with perhaps another base order: where to begin.
  void run(uint64_t budget, uint64_t workLimit, const RecomputeSearch *before = nullptr);
  /// The schedule of smallest peak that the work allows; none is below `least` bytes.
  void shrink(uint64_t least, uint64_t workLimit);

  const Replay::Result &result() const { return bestResult; }
  /// The schedule behind result().
  std::vector<StepRun> runs(const Problem &problem);
  uint64_t work() const { return replay.work() + cutWork; }

private:
  uint64_t score(const Replay::Result &result) const;
  uint32_t findFrontier() const;
  void cutAt(FrontierCut::Price price, const std::vector<uint32_t> &weights, KeptGaps &kept);
  bool isBetter(const Replay::Result &one, const Replay::Result &other) const;
  KeptGaps translate(const RecomputeSearch &other) const;
  bool consider(const KeptGaps &kept, const Replay::Result &result);
  void start(uint64_t budget);
  void sweep();
  void searchPrices(uint64_t workLimit);
  void searchGaps(uint64_t workLimit, bool untilFits);
  void ruin(KeptGaps &kept, const std::vector<GapId> &large);
  Replay::Result repair(KeptGaps &kept, uint64_t limit);
  uint64_t remakingTime(const KeptGaps &kept, GapId gap);
  void perturb(std::vector<uint32_t> &weights, const std::vector<ValueId> &values, uint32_t peakPosition);
  uint64_t threshold(uint64_t shift, uint64_t begin, uint64_t limit);

  const RecomputeGraph &graph;
  Replay replay;
  FrontierCut cut;
  Random random;
  uint32_t frontier = 0;
  uint64_t budget = 0, plainTime = 0, cutWork = 0;
  std::vector<ValueId> pending; ///< of remakingTime()
  std::vector<StepId> seenMakers;
  KeptGaps plain; ///< nothing is dropped
  KeptGaps best;
  Replay::Result bestResult;
  FrontierCut::Price bestPrice = 0;
};

} // namespace ortc::planning
