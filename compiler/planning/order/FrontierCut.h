// What to keep and what to make again at one moment of a schedule: a minimum cut between bytes and time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/order/MinCut.h"
#include "compiler/planning/recompute/RecomputeGraph.h"

namespace ortc::planning {

/// At a moment when some steps have run and others wait, every value that those have made and these want is
/// either kept or made again, with whatever that needs and is not kept either. Bytes have a price: the
/// cheapest choice is a minimum cut.
///
/// Network: source -> P(v) (infinite) when a waiting step reads v; P(v) -> Q(maker of v) (price of its bytes: keep v);
/// Q(s) -> sink (time of s: run s again); Q(s) -> P(u) (infinite) for what s reads.
class FrontierCut {
public:
  /// Time units for 2^24 bytes.
  using Price = uint64_t;
  static constexpr unsigned kPriceShift = 24;
  static constexpr Price kMostPrice = Price(1) << 50;
  /// Instead of a price: bytes are all that counts.
  static constexpr Price kTimeIsFree = UINT64_MAX;

  explicit FrontierCut(const RecomputeGraph &graph);

  /// Per step: has it run?
  void setFrontier(const std::vector<bool> &hasRun);
  /// The moment when `step` runs for the first time in whatever schedule: what must come before it has run,
  /// what must come after it waits, everything else counts for neither.
  void setStep(StepId step);

  /// Bytes that are there whatever is chosen: wanted values that cannot be made again and, of a step, all
  /// that it touches and its workspace, less what it can write in place.
  uint64_t fixedBytes() const { return fixed; }

  /// What choose() has no choice about, until the next moment is set: kept (its bytes are the caller's to
  /// count) or not kept.
  enum class Decision : uint8_t { kOpen, kKept, kDropped };
  void decide(ValueId value, Decision decision) { decisions[value] = decision; }

  struct Choice {
    uint64_t keptBytes = 0; ///< beside fixedBytes() and what decide() says is kept
    uint64_t time = 0;      ///< of the steps that run again
    uint64_t cost = 0;      ///< at most time + price * keptBytes: bytes' prices are rounded down
  };
  /// The choice of least time + price * bytes. kTimeIsFree: `cost` is the least bytes. `weights` (empty: 1
  /// each) are per value, in 1/256, and scale its price. Adds to `work`.
  Choice choose(Price price, const std::vector<uint32_t> &weights, uint64_t &work);

  /// After choose(): the values that were chosen from, and whether each is kept.
  const std::vector<ValueId> &values() const { return considered; }
  bool isKept(ValueId value) const;

private:
  void clear();
  void want(ValueId value);
  void build();

  const RecomputeGraph &graph;
  uint64_t fixed = 0;
  std::vector<uint8_t> hasRun, isFree; ///< per step, per value: at hand without a choice
  std::vector<Decision> decisions;     ///< per value
  std::vector<ValueId> wanted, considered;
  std::vector<StepId> makers;
  std::vector<uint32_t> valueNode, stepNode;
  std::vector<StepId> stack;
  MinCut network;
};

} // namespace ortc::planning
