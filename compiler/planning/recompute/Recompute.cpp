// Runs cheap steps again so that what they make need not be kept: fits a training step into a budget of bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/recompute/Recompute.h"

#include "compiler/planning/Liveness.h"
#include "compiler/planning/order/OrderCandidates.h"
#include "compiler/planning/recompute/RecomputeBound.h"
#include "compiler/planning/recompute/RecomputeSearch.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

namespace ortc::planning {

namespace {

constexpr uint64_t kWorkForStep = 4'000'000;

/// Makes the problem whose steps are runs. Buffers are numbered by their first use.
class Expansion {
public:
  Expansion(const Problem &problem, const std::vector<StepRun> &runs) : problem(problem), runs(runs) {
    viewOf.assign(problem.buffers.size(), kNone);
    for (uint32_t i = 0; i < problem.views.size(); ++i)
      viewOf[problem.views[i].view] = i;
  }

  Problem build() {
    std::vector<uint32_t> firstRun(problem.steps.size(), kNone);
    std::vector<std::vector<StepId>> runsOf(problem.steps.size());
    for (uint32_t r = 0; r < runs.size(); ++r) {
      StepId id = runs[r].step;
      const Step &from = problem.steps[id];
      bool isFirst = firstRun[id] == kNone;
      Step step = from;
      for (size_t i = 0; i < from.reads.size(); ++i) {
        uint32_t source = runs[r].sources[i];
        bool isOriginal = source == kNone || firstRun[runs[source].step] == source;
        step.reads[i] = bufferOf(from.reads[i], isOriginal ? kNone : source);
      }
      for (size_t i = 0; i < from.writes.size(); ++i)
        step.writes[i] = bufferOf(from.writes[i], isFirst ? kNone : r);
      for (InPlace &pair : step.inPlace) {
        pair.read =
            step.reads[std::find(from.reads.begin(), from.reads.end(), pair.read) - from.reads.begin()];
        pair.write =
            step.writes[std::find(from.writes.begin(), from.writes.end(), pair.write) - from.writes.begin()];
      }
      step.after.clear();
      for (StepId earlier : from.after)
        step.after.insert(step.after.end(), runsOf[earlier].begin(), runsOf[earlier].end());
      std::sort(step.after.begin(), step.after.end());
      if (isFirst)
        firstRun[id] = r;
      runsOf[id].push_back(r);
      result.steps.push_back(std::move(step));
    }
    for (BufferId b = 0; b < problem.buffers.size(); ++b)
      if (problem.buffers[b].aliveAtStart || problem.buffers[b].aliveAtEnd)
        bufferOf(b, kNone);
    return std::move(result);
  }

private:
  /// The buffer that stands for `b` as written by `run`; kNone: as in the problem.
  BufferId bufferOf(BufferId b, uint32_t run) {
    auto found = known.find({b, run});
    if (found != known.end())
      return found->second;
    std::optional<View> view;
    if (viewOf[b] != kNone) {
      view = problem.views[viewOf[b]];
      view->base = bufferOf(view->base, run);
    }
    BufferId id = BufferId(result.buffers.size());
    result.buffers.push_back(problem.buffers[b]);
    if (run != kNone)
      result.buffers.back().aliveAtEnd = false;
    if (view) {
      view->view = id;
      result.views.push_back(*view);
    }
    known[{b, run}] = id;
    return id;
  }

  const Problem &problem;
  const std::vector<StepRun> &runs;
  std::vector<uint32_t> viewOf; ///< per buffer: index among the views
  std::map<std::pair<BufferId, uint32_t>, BufferId> known;
  Problem result;
};

/// Searches and plans in turns. The planner may find a better order for the steps and what repeats of them,
/// and the next search goes on in that one.
class Attempts {
public:
  Attempts(const Problem &problem, const RecomputeGraph &graph, const RecomputeOptions &options,
           const Recomputation &known)
      : problem(problem), graph(graph), options(options), result(known) {}

  /// Half of the work goes to the orders, one search each, half to going on from the best.
  Expected<Recomputation> run(const std::vector<Order> &orders) {
    auto isDone = [&] { return result.fits && result.time <= result.leastTime; };
    uint64_t work = options.searchWork / 2,
             least = kLeastWorkForStep * std::max<size_t>(1, problem.steps.size());
    bool isHopeless = result.leastBudget > options.budget;
    uint64_t count = std::clamp<uint64_t>(work / least, 1, orders.size());
    if (isHopeless)
      count = options.findSmallest ? 0 : 1;
    for (uint64_t i = 0; i < count && !isDone(); ++i)
      ORTC_TRY(search(orders[i], work / count, nullptr));
    uint64_t rounds = isHopeless ? 0 : std::clamp<uint64_t>(work / least, 1, kRounds);
    for (uint64_t i = 0; i < rounds && !isDone(); ++i) {
      // what brought nothing is not tried twice: begin again in that order
      bool isNew = best.number + 1 == searches;
      ORTC_TRY(search(best.order, work / rounds, isNew ? best.search : nullptr));
    }
    if (result.fits || !options.findSmallest)
      return std::move(result);
    ORTC_TRY(findSmallest(orders));
    return std::move(result);
  }

private:
  static constexpr unsigned kRounds = 8, kBelow = 12;
  static constexpr uint64_t kLeastWorkForStep = 20'000; ///< a search with less is none

  /// A search in one order, from what another has found, if any.
  Status search(const Order &base, uint64_t work, std::shared_ptr<const RecomputeSearch> start) {
    auto found = std::make_shared<RecomputeSearch>(graph, base, options.seed + searches++);
    found->run(target, work, start.get());
    std::vector<StepRun> runs;
    Expected<Plan> next = planFound(*found, runs, options.budget);
    if (!next)
      return next.getStatus();
    uint64_t arena = next->arenaBytes, time = found->result().time;
    bool fits = arena <= options.budget;
    if (isBetter(arena, time)) {
      best = {found, firstRuns(next->order, runs), searches - 1};
      keep(std::move(runs), std::move(*next), time);
    }
    // Gaps between buffers: aim lower by as much.
    if (!fits && found->result().peak <= target && arena - options.budget < target)
      target -= arena - options.budget;
    return {};
  }

  /// The smallest plan of searches that do not depend on the budget: no larger budget is refused. First down
  /// from budget to budget, then in every order, and in the planner's, for what is a little below the best so
  /// far.
  Status findSmallest(const std::vector<Order> &orders) {
    result.fits = false;
    result.runs.clear();
    RecomputeSearch smallest(graph, orders.front(), options.seed);
    smallest.shrink(result.leastBudget, options.searchWork);
    ORTC_TRY(consider(smallest));
    for (unsigned i = 0; i < kBelow && result.plan.arenaBytes > result.leastBudget; ++i) {
      size_t number = i % (orders.size() + 1);
      RecomputeSearch below(graph, number ? orders[number - 1] : firstRuns(result.plan.order, result.runs),
                            options.seed + i);
      uint64_t arena = result.plan.arenaBytes, step = arena >> (4 + i % 3); // a 16th to a 64th
      below.run(std::max(result.leastBudget, arena - step), options.searchWork / (2 * kBelow));
      ORTC_TRY(consider(below));
    }
    return {};
  }

  /// The runs that a search has found, and their plan, with no more work once it is within `budget`.
  Expected<Plan> planFound(RecomputeSearch &search, std::vector<StepRun> &runs, uint64_t budget) {
    result.searchWork += search.work();
    runs = search.runs(problem);
    return plan(expand(problem, runs), planWithin(budget));
  }

  /// Plans what a search has found, and keeps it where that is smaller.
  Status consider(RecomputeSearch &search) {
    std::vector<StepRun> runs;
    Expected<Plan> next = planFound(search, runs, result.leastBudget);
    if (!next)
      return next.getStatus();
    if (result.runs.empty() || next->arenaBytes < result.plan.arenaBytes)
      keep(std::move(runs), std::move(*next), search.result().time);
    return {};
  }

  /// The order in which steps run for the first time.
  Order firstRuns(const Order &planned, const std::vector<StepRun> &runs) const {
    Order order;
    std::vector<bool> seen(problem.steps.size(), false);
    for (StepId run : planned)
      if (StepId step = runs[run].step; !seen[step]) {
        seen[step] = true;
        order.push_back(step);
      }
    return order;
  }

  /// Whether that is better than the result so far: within the budget first, then by time; above it by bytes.
  bool isBetter(uint64_t arena, uint64_t time) const {
    bool fits = arena <= options.budget;
    if (result.runs.empty() || fits != result.fits)
      return result.runs.empty() || fits;
    return fits ? time < result.time : arena < result.plan.arenaBytes;
  }

  void keep(std::vector<StepRun> runs, Plan plan, uint64_t time) {
    result.fits = plan.arenaBytes <= options.budget;
    result.runs = std::move(runs);
    result.plan = std::move(plan);
    result.time = time;
  }

  const Problem &problem;
  const RecomputeGraph &graph;
  const RecomputeOptions &options;
  Recomputation result;
  uint64_t target = options.budget; ///< of live bytes; offsets may need a little more
  unsigned searches = 0;
  struct {
    std::shared_ptr<RecomputeSearch> search;
    Order order;         ///< as the planner has put it
    unsigned number = 0; ///< of the search
  } best;                ///< behind `result`
};

/// Replaces `found` by what recompute() gives for smaller budgets, down to one that fits `options.budget` or
/// to one of which the budget a byte below is refused. Steps grow while they lead to a plan, for what takes
/// least time takes all that it may; behind one that led to none comes a byte again.
Status descend(const Problem &problem, const std::vector<StepCost> &costs, const RecomputeOptions &options,
               const Plan &whole, Recomputation &found) {
  RecomputeOptions below = options;
  below.findSmallest = false;
  for (uint64_t step = 1; step > 0 && !found.fits && found.plan.arenaBytes > found.leastBudget;) {
    step = std::min(step, found.plan.arenaBytes - found.leastBudget);
    below.budget = found.plan.arenaBytes - step;
    Expected<Recomputation> next = recompute(problem, costs, below, &whole);
    if (!next)
      return next.getStatus();
    found.searchWork += next->searchWork;
    found.boundWork += next->boundWork;
    if (next->fits) {
      found.fits = next->plan.arenaBytes <= options.budget;
      found.runs = std::move(next->runs);
      found.plan = std::move(next->plan);
      found.time = next->time;
    }
    step = next->fits ? step * 8 : step > 1 ? 1 : 0;
  }
  return {};
}

} // namespace

PlanOptions planWithin(uint64_t budget) {
  PlanOptions options;
  options.exactOrderWork = 0;
  options.arenaTarget = budget;
  return options;
}

Problem expand(const Problem &problem, const std::vector<StepRun> &runs) {
  return Expansion(problem, runs).build();
}

Expected<Recomputation> recompute(const Problem &problem, const std::vector<StepCost> &costs,
                                  const RecomputeOptions &options, const Plan *whole) {
  if (costs.size() != problem.steps.size())
    return Status::refusal("there are costs of " + std::to_string(costs.size()) + " steps, but " +
                           std::to_string(problem.steps.size()) + " steps");
  Plan own;
  if (!whole) {
    Expected<Plan> planned = plan(problem);
    if (!planned)
      return planned.getStatus();
    own = std::move(*planned);
    whole = &own;
  }
  Recomputation result;
  for (const StepCost &cost : costs)
    result.plainTime += cost.time;
  Expected<Graph> graph = buildGraph(problem, whole->inner, PlanOptions().inPlace);
  if (!graph)
    return graph.getStatus();
  RecomputeGraph steps(problem, *graph, costs);
  if (whole->arenaBytes <= options.budget) {
    RecomputeSearch once(steps, sourceOrder(*graph), options.seed);
    once.run(UINT64_MAX, 0);
    std::vector<StepRun> runs = once.runs(problem);
    Expected<Plan> next = plan(expand(problem, runs));
    if (!next)
      return next.getStatus();
    if (next->arenaBytes <= options.budget) {
      result.fits = true;
      result.runs = std::move(runs);
      result.plan = std::move(*next);
      result.time = result.leastTime = result.plainTime;
      return result;
    }
  }
  Liveness live(*graph, whole->order);
  std::vector<uint64_t> usage(costs.size());
  for (StepId s = 0; s < usage.size(); ++s)
    usage[s] = live.usage[live.position[s]];
  RecomputeBound bound = boundRecompute(steps, usage, options.budget, result.boundWork, options.boundWork);
  result.leastTime = result.plainTime + bound.extraTime;
  result.leastBudget = bound.bytes;

  RecomputeOptions limited = options;
  limited.searchWork = std::min<uint64_t>(options.searchWork, kWorkForStep * costs.size());
  Attempts attempts(problem, steps, limited, result);
  Expected<Recomputation> found =
      attempts.run({whole->order, releaseEarly(*graph, sourceOrder(*graph)), leastPeakFirst(*graph)});
  if (!found || found->fits || !options.findSmallest)
    return found;
  ORTC_TRY(descend(problem, costs, options, *whole, *found));
  return found;
}

} // namespace ortc::planning
