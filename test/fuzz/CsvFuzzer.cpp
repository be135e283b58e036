// The planner's files. What is read is written and read again; packings are solved, and the validator judges them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/Csv.h"
#include "compiler/planning/PackingCsv.h"
#include "test/fuzz/Target.h"

namespace ortc::fuzz {

using namespace planning;

static void usePacking(std::string_view text) {
  Expected<PackingFile> file = readPacking(text);
  if (!file)
    return;
  demand(readPacking(writePacking(*file)).ok(), "a packing that is written cannot be read");
  std::vector<uint32_t> pools = file->pools;
  pools.resize(file->problem.items.size(), 0);
  for (const Pool &pool : splitPools(file->problem, pools)) {
    if (pool.items.size() > 64) // the search is not what is tested
      continue;
    PackingOptions limits;
    limits.work = limits.exactWork = 100'000;
    Packing packing = pack(pool.problem, limits);
    demand(validatePacking(pool.problem, packing.offsets, packing.height).ok(), "a packing is not valid");
    demand(packing.height >= packing.bound, "a packing is lower than its bound");
  }
}

/// A problem, and behind the first empty line that starts with `plan,` a plan of it.
static void useProblem(std::string_view text) {
  size_t cut = text.find("\nplan,");
  Expected<Problem> problem = readProblem(text.substr(0, cut == text.npos ? cut : cut + 1));
  if (!problem)
    return;
  std::string written = writeProblem(*problem);
  Expected<Problem> again = readProblem(written);
  demand(again.ok() && writeProblem(*again) == written, "a problem that is written cannot be read");
  if (cut == text.npos)
    return;
  if (Expected<Plan> plan = readPlan(*problem, text.substr(cut + 1)); plan.ok())
    demand(readPlan(*problem, writePlan(*plan)).ok(), "a plan that is written cannot be read");
}

void fuzzCsv(Input file) {
  usePacking(asText(file));
  useProblem(asText(file));
}

} // namespace ortc::fuzz
