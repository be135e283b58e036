// The planner's files. What is read is written and read again; problems are solved, and the validators judge
// the solutions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/Plan.h"
#include "compiler/planning/csv/Csv.h"
#include "compiler/planning/csv/PackingCsv.h"
#include "test/fuzz/Target.h"

namespace ortc::fuzz {

using namespace planning;

static bool usePacking(std::string_view text) {
  Expected<PackingFile> file = readPacking(text);
  if (!file)
    return false;
  demand(static_cast<bool>(readPacking(writePacking(*file))), "a packing that is written cannot be read");
  std::vector<uint32_t> pools = file->pools;
  pools.resize(file->problem.items.size(), 0);
  for (const Pool &pool : splitPools(file->problem, pools)) {
    if (pool.items.size() > 64) // the search is not what is tested
      continue;
    PackingOptions limits;
    limits.work = limits.exactWork = 100'000;
    Packing packing = pack(pool.problem, limits);
    demand(validatePacking(pool.problem, packing.offsets, packing.height).isOk(), "a packing is not valid");
    demand(packing.height >= packing.bound, "a packing is lower than its bound");
  }
  return true;
}

/// A problem, and from the first line that begins with `plan,` on a plan of it.
static bool useProblem(std::string_view text) {
  size_t cut = text.find("\nplan,");
  Expected<Problem> problem = readProblem(text.substr(0, cut == text.npos ? cut : cut + 1));
  if (!problem)
    return false;
  std::string written = writeProblem(*problem);
  Expected<Problem> again = readProblem(written);
  demand(again && writeProblem(*again) == written, "a problem that is written cannot be read");
  if (problem->steps.size() <= 16 && problem->buffers.size() <= 64) {
    PlanOptions limits;
    limits.orderWork = limits.boundWork = limits.offsetWork = limits.exactWork = 10'000;
    Expected<Plan> solved = plan(*problem, limits);
    demand(static_cast<bool>(solved), "a problem that passed every check has no plan");
    demand(validate(*problem, *solved).isOk(), "a plan is not valid");
    demand(static_cast<bool>(readPlan(*problem, writePlan(*solved))), "a plan cannot be read");
  }
  if (cut == text.npos)
    return true;
  Expected<Plan> given = readPlan(*problem, text.substr(cut + 1));
  if (!given)
    return false;
  (void)validate(*problem, *given);
  demand(static_cast<bool>(readPlan(*problem, writePlan(*given))), "a plan that is written cannot be read");
  return true;
}

bool fuzzCsv(Input file) {
  bool isPacking = usePacking(asText(file));
  return useProblem(asText(file)) || isPacking;
}

} // namespace ortc::fuzz
