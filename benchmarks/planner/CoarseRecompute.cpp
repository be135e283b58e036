// Recomputation of training steps that are small enough for the exact optimum.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/planner/CoarseRecompute.h"

#include <algorithm>
#include <ctime>
#include <numeric>
#include <sstream>

namespace ortc::planning::benchmark {

Problem coarsen(Problem problem, uint32_t count) {
  std::vector<BufferId> bySize(problem.buffers.size());
  std::iota(bySize.begin(), bySize.end(), 0u);
  std::sort(bySize.begin(), bySize.end(), [&](BufferId one, BufferId other) {
    uint64_t first = problem.buffers[one].bytes, second = problem.buffers[other].bytes;
    return first != second ? first > second : one < other;
  });
  for (size_t i = count; i < bySize.size(); ++i)
    problem.buffers[bySize[i]].bytes = 0;
  return problem;
}

std::vector<StepCost> readCosts(const std::string &text) {
  std::vector<StepCost> costs;
  std::istringstream in(text);
  StepCost cost;
  while (in >> cost.time >> cost.repeatable)
    costs.push_back(cost);
  return costs;
}

Expected<CoarseResult> recomputeCoarsened(const Problem &problem, const std::vector<StepCost> &costs,
                                          uint32_t percent) {
  if (costs.size() != problem.steps.size())
    return Status::refusal("there are costs of " + std::to_string(costs.size()) + " steps");
  Expected<Plan> whole = plan(problem);
  if (!whole)
    return whole.getStatus();
  CoarseResult result;
  result.budget = whole->arenaBytes * percent / 100;
  std::clock_t begin = std::clock();
  test::ExactOptions limits;
  limits.states = 4'000'000;
  result.exact = test::recomputeExactly(problem, costs, result.budget, limits);
  result.exactSeconds = double(std::clock() - begin) / CLOCKS_PER_SEC;
  limits.order = whole->order;
  result.fixed = test::recomputeExactly(problem, costs, result.budget, limits);
  begin = std::clock();
  RecomputeOptions options;
  options.budget = result.budget;
  Expected<Recomputation> found = recompute(problem, costs, options);
  if (!found)
    return found.getStatus();
  result.found = std::move(*found);
  result.foundSeconds = double(std::clock() - begin) / CLOCKS_PER_SEC;
  return result;
}

} // namespace ortc::planning::benchmark
