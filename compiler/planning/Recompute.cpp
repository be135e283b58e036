// Runs cheap steps again so that what they make need not be kept: fits a training step into a budget of bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/Recompute.h"

#include "compiler/planning/Liveness.h"
#include "compiler/planning/RecomputeBound.h"
#include "compiler/planning/RecomputeSearch.h"

#include <algorithm>
#include <map>
#include <optional>

namespace ortc::planning {

namespace {

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

/// Searches until a plan keeps to the budget; the search counts live bytes, and offsets may need a little more.
class Attempts {
public:
  Attempts(const Problem &problem, const RecomputeGraph &graph, const Order &base,
           const RecomputeOptions &options, const Recomputation &known)
      : problem(problem), graph(graph), base(base), options(options), result(known) {}

  Expected<Recomputation> run() {
    RecomputeSearch search(graph, base, options.seed);
    uint64_t target = options.budget;
    for (int round = 0; round < 4 && !result.fits; ++round) {
      search.run(target, options.searchWork >> (round > 0));
      Expected<uint64_t> arena = consider(search);
      if (!arena)
        return arena.status();
      // Gaps between buffers: aim lower by as much.
      if (result.fits || search.result().peak > target || *arena - options.budget >= target)
        break;
      target -= *arena - options.budget;
    }
    result.searchWork += search.work();
    if (result.fits)
      return std::move(result);
    // The smallest plan there is, found in a way that does not depend on the budget: what an error says, and with that
    // as the budget the answer.
    RecomputeSearch smallest(graph, base, options.seed);
    smallest.run(result.leastBudget, options.searchWork);
    result.runs.clear();
    Expected<uint64_t> arena = consider(smallest);
    if (!arena)
      return arena.status();
    result.searchWork += smallest.work();
    return std::move(result);
  }

private:
  /// Plans what a search has found, keeps it if it is the first or fits, and gives its arena bytes.
  Expected<uint64_t> consider(RecomputeSearch &search) {
    std::vector<StepRun> runs = search.runs(problem);
    Expected<Plan> next = plan(expand(problem, runs), options.plan);
    if (!next)
      return next.status();
    uint64_t arena = next->arenaBytes;
    if (result.runs.empty() || arena <= options.budget) {
      result.fits = arena <= options.budget;
      result.runs = std::move(runs);
      result.plan = std::move(*next);
      result.time = search.result().time;
    }
    return arena;
  }

  const Problem &problem;
  const RecomputeGraph &graph;
  const Order &base;
  const RecomputeOptions &options;
  Recomputation result;
};

} // namespace

Problem expand(const Problem &problem, const std::vector<StepRun> &runs) {
  return Expansion(problem, runs).build();
}

Expected<Recomputation> recompute(const Problem &problem, const std::vector<StepCost> &costs,
                                  const RecomputeOptions &options) {
  if (costs.size() != problem.steps.size())
    return Status{Code::kInvalidProblem, "there are costs of " + std::to_string(costs.size()) +
                                             " steps, but " + std::to_string(problem.steps.size()) +
                                             " steps"};
  Expected<Plan> whole = plan(problem, options.plan);
  if (!whole)
    return whole.status();
  Recomputation result;
  for (StepId s : whole->order)
    result.plainTime += costs[s].time;
  Expected<Graph> graph = buildGraph(problem, whole->inner, options.plan.inPlace);
  if (!graph)
    return graph.status();
  RecomputeGraph steps(problem, *graph, costs);
  Liveness live(*graph, whole->order);
  std::vector<uint64_t> usage(costs.size());
  for (StepId s = 0; s < usage.size(); ++s)
    usage[s] = live.usage[live.position[s]];
  RecomputeBound bound = boundRecompute(steps, usage, options.budget, result.boundWork, options.boundWork);
  result.leastTime = result.plainTime + bound.extraTime;
  result.leastBudget = bound.bytes;

  Attempts attempts(problem, steps, whole->order, options, result);
  return attempts.run();
}

} // namespace ortc::planning
