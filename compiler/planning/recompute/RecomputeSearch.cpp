// Searches for what to drop and make again: frontier cuts under perturbed prices, then single gaps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/recompute/RecomputeSearch.h"

#include <algorithm>

namespace ortc::planning {

RecomputeSearch::RecomputeSearch(const RecomputeGraph &graph, const Order &base, uint64_t seed)
    : graph(graph), replay(graph, base), cut(graph), random(seed) {
  for (const Gap &gap : replay.gaps())
    plain.push_back(kKeepInside | (gap.end != kNone ? kKeepAtBegin : 0));
  frontier = findFrontier();
  std::vector<bool> hasRun(graph.steps.size(), false);
  for (uint32_t p = 0; p <= frontier && p < base.size(); ++p)
    hasRun[base[p]] = true;
  cut.setFrontier(hasRun);
}

/// The position behind which most bytes wait that could be made again.
uint32_t RecomputeSearch::findFrontier() const {
  std::vector<int64_t> change(replay.baseOrder().size() + 1, 0);
  for (const Gap &gap : replay.gaps())
    if (gap.end != kNone && graph.maker[gap.value] != kNone) {
      change[gap.begin] += int64_t(graph.graph.values[gap.value].bytes);
      change[gap.end] -= int64_t(graph.graph.values[gap.value].bytes);
    }
  int64_t bytes = 0, most = -1;
  uint32_t position = 0;
  for (uint32_t p = 0; p < change.size(); ++p)
    if ((bytes += change[p]) > most) {
      most = bytes;
      position = p;
    }
  return position;
}

uint64_t RecomputeSearch::score(const Replay::Result &result) const {
  if (!result.legal)
    return UINT64_MAX;
  if (result.peak <= budget)
    return result.time;
  unsigned __int128 over =
      (unsigned __int128)(result.peak - budget) * plainTime * 20 / std::max<uint64_t>(budget, 1);
  uint64_t most = uint64_t(1) << 60;
  return result.time + plainTime / 2 + (over < most ? uint64_t(over) : most);
}

/// Whether one schedule is better than another: within the budget first, then by time; above it by bytes.
bool RecomputeSearch::isBetter(const Replay::Result &one, const Replay::Result &other) const {
  if (!one.legal || !other.legal)
    return one.legal;
  bool fits = one.peak <= budget;
  if (fits != (other.peak <= budget))
    return fits;
  uint64_t first = fits ? one.time : one.peak, second = fits ? other.time : other.peak;
  return first != second ? first < second : fits ? one.peak < other.peak : one.time < other.time;
}

bool RecomputeSearch::consider(const KeptGaps &kept, const Replay::Result &result) {
  if (!isBetter(result, bestResult))
    return false;
  best = kept;
  bestResult = result;
  return true;
}

/// What the cheapest choice at the frontier drops, dropped there; everything else as if nothing were.
void RecomputeSearch::cutAt(FrontierCut::Price price, const std::vector<uint32_t> &weights, KeptGaps &kept) {
  cut.choose(price, weights, cutWork);
  kept = plain;
  for (ValueId v : cut.values())
    if (GapId gap = replay.gapAt(v, frontier); gap != kNone)
      kept[gap] = kKeepInside | (cut.isKept(v) ? kKeepAtBegin : 0);
}

void RecomputeSearch::sweep() {
  KeptGaps kept;
  for (unsigned k = 0; k < 4 * 50; ++k) {
    FrontierCut::Price price = FrontierCut::Price(4 + k % 4) << (k / 4);
    if (price > FrontierCut::kMostPrice)
      break;
    cutAt(price >> 2, {}, kept);
    if (consider(kept, replay.run(kept)))
      bestPrice = price >> 2;
  }
}

/// How far back a move may go: a random part of a limit that falls to zero at the end of the work.
uint64_t RecomputeSearch::threshold(uint64_t shift, uint64_t begin, uint64_t limit) {
  uint64_t now = work();
  if (now >= limit || limit == begin)
    return 0;
  uint64_t most = plainTime >> shift;
  uint64_t left = uint64_t((unsigned __int128)most * (limit - now) / (limit - begin));
  uint64_t first = random.below(1u << 16), second = random.below(1u << 16); // draws in a fixed order
  return uint64_t((unsigned __int128)left * first >> 16) * second >> 16;
}

/// Factors between 1/8 and 8 on some prices: of single values, of many, or of a run of layers.
void RecomputeSearch::perturb(std::vector<uint32_t> &weights, const std::vector<ValueId> &values,
                              uint32_t peakPosition) {
  static constexpr uint32_t kFactors[] = {32, 64, 128, 181, 215, 304, 362, 512, 1024, 2048}; // of 256
  auto scale = [&](ValueId v, uint32_t factor) {
    uint64_t scaled = uint64_t(weights[v]) * factor >> 8;
    weights[v] = uint32_t(std::clamp<uint64_t>(scaled, 4, 1 << 16));
  };
  uint32_t count = uint32_t(values.size());
  uint32_t mode = random.below(6);
  if (mode >= 4) { // all that still waits at one time: at the peak, or anywhere behind the frontier
    uint32_t end = uint32_t(replay.baseOrder().size());
    uint32_t position = mode == 4 ? peakPosition : frontier + random.below(end - frontier);
    uint32_t factor =
        mode == 4 && random.below(4) > 0 ? 256 + random.below(128) : kFactors[2 + random.below(6)];
    for (ValueId v : values)
      if (GapId gap = replay.gapAt(v, frontier); gap != kNone && replay.gaps()[gap].end > position)
        scale(v, factor);
    return;
  }
  if (mode == 3) {
    uint32_t begin = random.below(count), length = 1 + random.below(20), factor = kFactors[random.below(10)];
    for (uint32_t i = begin; i < std::min(count, begin + length); ++i)
      scale(values[i], factor);
    return;
  }
  uint32_t times = mode == 0 ? 1 + random.below(3) : mode == 1 ? 1 + count / 32 : 1 + count / 5;
  for (uint32_t i = 0; i < times; ++i) {
    ValueId value = values[random.below(count)];
    scale(value, mode == 0 ? kFactors[random.below(10)] : kFactors[2 + random.below(6)]);
  }
}

void RecomputeSearch::searchPrices(uint64_t workLimit) {
  std::vector<ValueId> values = cut.values();
  std::sort(values.begin(), values.end());
  if (values.empty())
    return;
  std::vector<uint32_t> weights(graph.maker.size(), 256), next;
  FrontierCut::Price price = std::max<FrontierCut::Price>(bestPrice, 1);
  uint64_t present = score(bestResult), begin = work();
  uint32_t presentPeak = bestResult.peakPosition;
  KeptGaps kept;
  while (work() < workLimit) {
    next = weights;
    FrontierCut::Price nextPrice = price;
    if (random.below(2) == 0)
      nextPrice = std::clamp<FrontierCut::Price>(
          uint64_t((unsigned __int128)price * (200 + random.below(128)) >> 8), 1, FrontierCut::kMostPrice);
    perturb(next, values, presentPeak);
    cutAt(nextPrice, next, kept);
    Replay::Result result = replay.run(kept);
    consider(kept, result);
    uint64_t value = score(result);
    if (value <= present || value - present <= threshold(7, begin, workLimit)) {
      present = value;
      presentPeak = result.peakPosition;
      weights.swap(next);
      price = nextPrice;
    }
  }
}

/// About what it takes to make the value of a gap again for the step behind it: its maker, and those of what
/// that needs and would not find.
uint64_t RecomputeSearch::remakingTime(const KeptGaps &kept, GapId gap) {
  const Gap &at = replay.gaps()[gap];
  uint32_t position = at.end == kNone ? uint32_t(replay.baseOrder().size()) - 1 : at.end;
  pending.assign(1, at.value);
  seenMakers.clear();
  uint64_t time = 0;
  for (size_t i = 0; i < pending.size() && seenMakers.size() < 24; ++i) {
    StepId maker = graph.maker[pending[i]];
    if (maker == kNone || std::find(seenMakers.begin(), seenMakers.end(), maker) != seenMakers.end())
      continue;
    seenMakers.push_back(maker);
    time += graph.steps[maker].time;
    for (ValueId u : graph.steps[maker].reads)
      if (GapId other = replay.gapAt(u, position - 1); other != kNone && !(kept[other] & kKeepAtBegin))
        pending.push_back(u);
  }
  return time;
}

/// Drops, one after the other, what lies idle at the peak and frees many bytes for little time, until the
/// budget is kept. Ends early when nothing is left to drop, or when it has become worse than `limit`.
Replay::Result RecomputeSearch::repair(KeptGaps &kept, uint64_t limit) {
  Replay::Result result = replay.run(kept);
  for (int round = 0; round < 96 && result.legal && result.peak > budget && result.time <= limit; ++round) {
    GapId chosen = kNone;
    uint64_t most = 0;
    for (ValueId v : replay.idleAtPeak()) {
      GapId gap = replay.gapAt(v, result.peakPosition);
      if (gap == kNone || kept[gap] == 0)
        continue;
      uint64_t bytes = std::min(graph.graph.values[v].bytes, 2 * (result.peak - budget));
      unsigned __int128 worth = (unsigned __int128)bytes << 24;
      uint64_t rate = uint64_t(worth / (remakingTime(kept, gap) + 1)) >> 4;
      rate = (rate + 1) * (8 + random.below(16));
      if (rate > most) {
        most = rate;
        chosen = gap;
      }
    }
    if (chosen == kNone)
      break;
    // What was dropped and is there all the same was made for something else.
    kept[chosen] &= uint8_t(kept[chosen] & kKeepAtBegin ? ~kKeepAtBegin : ~kKeepInside);
    cutWork += 256;
    result = replay.run(kept);
    consider(kept, result);
  }
  return result;
}

/// Keeps some of what was dropped: a few, a part of all, or all in a range of the order; or turns single
/// decisions round.
void RecomputeSearch::ruin(KeptGaps &kept, const std::vector<GapId> &large) {
  uint32_t count = uint32_t(large.size());
  uint32_t mode = random.below(8);
  if (mode < 2) {
    for (uint32_t times = 1 + random.below(3); times > 0; --times)
      kept[large[random.below(count)]] ^= mode == 0 ? kKeepAtBegin : kKeepInside;
    return;
  }
  uint32_t begin = 0, end = count, share = 1 + random.below(12);
  if (mode < 6) {
    begin = random.below(count);
    end = std::min(count, begin + 1 + random.below(1 + count / (mode < 4 ? 40 : 8)));
    share = 12;
  }
  for (uint32_t i = begin; i < end; ++i)
    if (random.below(12) < share) {
      const Gap &gap = replay.gaps()[large[i]];
      kept[large[i]] |= uint8_t(kKeepInside | (gap.end != kNone ? kKeepAtBegin : 0));
    }
}

void RecomputeSearch::searchGaps(uint64_t workLimit, bool untilFits) {
  const std::vector<Gap> &gaps = replay.gaps();
  std::vector<GapId> large;
  for (GapId g = 0; g < gaps.size(); ++g)
    if (graph.maker[gaps[g].value] != kNone &&
        graph.graph.values[gaps[g].value].bytes > bestResult.peak / 20000)
      large.push_back(g);
  if (large.empty())
    return;
  KeptGaps present = best, next;
  uint64_t presentScore = score(bestResult), begin = work();
  while (work() < workLimit && !(untilFits && bestResult.peak <= budget)) {
    next = present;
    ruin(next, large);
    uint64_t limit = presentScore + threshold(9, begin, workLimit);
    Replay::Result result = repair(next, limit);
    consider(next, result);
    if (uint64_t value = score(result); value <= limit) {
      presentScore = value;
      present.swap(next);
    }
  }
}

/// The best decisions of another search, in gaps of this one: those behind the same use of the same value.
KeptGaps RecomputeSearch::translate(const RecomputeSearch &other) const {
  KeptGaps result = plain;
  std::vector<uint32_t> position(graph.steps.size());
  for (uint32_t p = 0; p < position.size(); ++p)
    position[other.replay.baseOrder()[p]] = p;
  for (GapId g = 0; g < result.size(); ++g) {
    const Gap &gap = replay.gaps()[g];
    GapId from = other.replay.gapAt(gap.value, position[replay.baseOrder()[gap.begin]]);
    uint8_t dropped = uint8_t(other.plain[from] & ~other.best[from]);
    result[g] &= uint8_t(~dropped);
  }
  return result;
}

/// Forgets what was found: nothing is dropped.
void RecomputeSearch::start(uint64_t most) {
  budget = most;
  bestResult = Replay::Result();
  Replay::Result whole = replay.run(plain);
  plainTime = whole.time;
  consider(plain, whole);
}

void RecomputeSearch::run(uint64_t most, uint64_t workLimit, const RecomputeSearch *before) {
  start(most);
  if (bestResult.peak <= budget)
    return;
  uint64_t begin = work(), limit = begin + workLimit;
  if (before) {
    KeptGaps kept = translate(*before);
    consider(kept, replay.run(kept));
    repair(kept, UINT64_MAX); // which considers what it makes of it
  } else {
    sweep();
    searchPrices(begin + workLimit / 3);
  }
  searchGaps(limit, /*untilFits=*/false);
}

void RecomputeSearch::shrink(uint64_t least, uint64_t workLimit) {
  start(least);
  uint64_t limit = work() + workLimit;
  sweep();
  // A budget a little below the best so far is found or not; then one further below, or less far.
  for (unsigned shift = 2; shift < 10 && bestResult.peak > least && work() < limit;) {
    budget = std::max(least, bestResult.peak - std::max<uint64_t>(1, bestResult.peak >> shift));
    searchGaps(std::min(limit, work() + workLimit / 16), /*untilFits=*/true);
    shift += bestResult.peak > budget;
  }
}

std::vector<StepRun> RecomputeSearch::runs(const Problem &problem) {
  replay.run(best);
  return replay.runs(problem);
}

} // namespace ortc::planning
