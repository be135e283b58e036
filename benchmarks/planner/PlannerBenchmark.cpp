// Runs the planner on packings, training graphs and coarsened training steps; a table, or JSON with --json.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/planner/CoarseRecompute.h"
#include "benchmarks/planner/TrainingGraphs.h"
#include "compiler/planning/csv/Csv.h"
#include "compiler/planning/csv/PackingCsv.h"

#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>

using namespace ortc::planning;
using ortc::Expected;
using ortc::Status;

namespace {

/// Processor time: the planner has one thread, and the machine may be shared.
class Clock {
public:
  double seconds() const { return double(std::clock() - begin) / CLOCKS_PER_SEC; }

private:
  std::clock_t begin = std::clock();
};

struct Report {
  bool json = false, first = true, failed = false;

  void packing(const std::string &name, size_t items, uint64_t capacity, const Packing &packing, bool valid,
               double seconds) {
    failed |= !valid;
    double ratio = double(packing.height) / double(packing.maxLive);
    if (json)
      std::printf(
          "%s\n  {\"packing\": \"%s\", \"items\": %zu, \"max_live\": %llu, \"height\": %llu, \"capacity\": "
          "%llu, \"source\": \"%s\", \"seconds\": %.3f}",
          first ? "[" : ",", name.c_str(), items, (unsigned long long)packing.maxLive,
          (unsigned long long)packing.height, (unsigned long long)capacity, packing.source.c_str(), seconds);
    else
      std::printf("%-24s %6zu items   max-live %10llu  height %10llu (%.4f)  %-5s %7.3f s  %s%s\n",
                  name.c_str(), items, (unsigned long long)packing.maxLive,
                  (unsigned long long)packing.height, ratio,
                  capacity == 0                ? ""
                  : packing.height <= capacity ? "fits"
                                               : "over",
                  seconds, packing.source.c_str(), valid ? "" : "  INVALID");
    first = false;
    std::fflush(stdout);
  }

  void plan(const std::string &name, const Problem &problem, const Plan &plan, double seconds) {
    if (json)
      std::printf(
          "%s\n  {\"plan\": \"%s\", \"steps\": %zu, \"buffers\": %zu, \"arena\": %llu, \"max_live\": %llu, "
          "\"source_peak\": %llu, \"plain_source_peak\": %llu, \"order_bound\": %llu, \"order\": \"%s\", "
          "\"offsets\": \"%s\", \"seconds\": %.3f}",
          first ? "[" : ",", name.c_str(), problem.steps.size(), problem.buffers.size(),
          (unsigned long long)plan.arenaBytes, (unsigned long long)plan.maxLive,
          (unsigned long long)plan.sourcePeak, (unsigned long long)plan.statistics.plainSourcePeak,
          (unsigned long long)plan.orderBound, plan.statistics.orderSource.c_str(),
          plan.statistics.offsetSource.c_str(), seconds);
    else
      std::printf("%-24s %6zu steps %6zu buffers  arena/max-live %.4f  max-live/bound %.4f%s  source %.4f "
                  "(unreleased "
                  "%.4f)  %7.3f s  %s, %s  work %llu/%llu/%llu M\n",
                  name.c_str(), problem.steps.size(), problem.buffers.size(),
                  double(plan.arenaBytes) / double(plan.maxLive),
                  double(plan.maxLive) / double(plan.orderBound), plan.statistics.boundComplete ? "" : "?",
                  double(plan.sourcePeak) / double(plan.maxLive),
                  double(plan.statistics.plainSourcePeak) / double(plan.maxLive), seconds,
                  plan.statistics.orderSource.c_str(), plan.statistics.offsetSource.c_str(),
                  (unsigned long long)plan.statistics.orderWork / 1000000,
                  (unsigned long long)plan.statistics.boundWork / 1000000,
                  (unsigned long long)plan.statistics.offsetWork / 1000000);
    first = false;
    std::fflush(stdout);
  }

  /// Added times in percent of that of every step once.
  void recomputation(const std::string &name, uint32_t buffers, uint32_t percent,
                     const benchmark::CoarseResult &result) {
    using Outcome = test::ExactRecomputation::Outcome;
    const Recomputation &found = result.found;
    auto added = [&](uint64_t time) {
      return 100 * double(time - found.plainTime) / double(found.plainTime);
    };
    auto outcome = [](const test::ExactRecomputation &exact) {
      return exact.outcome == Outcome::kOptimal      ? "optimal"
             : exact.outcome == Outcome::kImpossible ? "impossible"
                                                     : "at least";
    };
    auto inWords = [&](const test::ExactRecomputation &exact) {
      char number[32];
      std::snprintf(number, sizeof number, " +%.2f %%", added(exact.time));
      return std::string(outcome(exact)) + (exact.outcome == Outcome::kImpossible ? "" : number);
    };
    bool isWrong = result.exact.outcome == Outcome::kOptimal && found.leastTime > result.exact.time;
    isWrong |= found.fits && (result.exact.outcome == Outcome::kImpossible || found.time < result.exact.time);
    failed |= isWrong;
    if (json)
      std::printf(
          "%s\n  {\"recomputation\": \"%s\", \"buffers\": %u, \"budget_percent\": %u, \"budget\": %llu, "
          "\"exact\": \"%s\", \"exact_added\": %.4f, \"plan_order\": \"%s\", \"plan_order_added\": %.4f, "
          "\"fits\": %s, \"added\": %.4f, \"bound_added\": %.4f, \"states\": %zu, "
          "\"exact_seconds\": %.3f, \"seconds\": %.3f}",
          first ? "[" : ",", name.c_str(), buffers, percent, (unsigned long long)result.budget,
          outcome(result.exact), added(result.exact.time), outcome(result.fixed), added(result.fixed.time),
          found.fits ? "true" : "false", added(found.time), added(found.leastTime), result.exact.states,
          result.exactSeconds, result.foundSeconds);
    else
      std::printf(
          "%-14s %2u buffers %2u %%   %s (in the plan's order: %s)   found %s+%.2f %%   bound +%.2f %%   %zu "
          "states %.2f s   found in %.2f s%s\n",
          name.c_str(), buffers, percent, inWords(result.exact).c_str(), inWords(result.fixed).c_str(),
          found.fits ? "" : "nothing, smallest ", added(found.time), added(found.leastTime),
          result.exact.states, result.exactSeconds, result.foundSeconds, isWrong ? "  WRONG" : "");
    first = false;
    std::fflush(stdout);
  }
};

bool readFile(const std::string &path, std::string &text) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  text = all.str();
  return bool(in);
}

void packFile(Report &report, const std::string &path, uint64_t capacity, uint64_t exactWork) {
  std::string text, name = path.substr(path.rfind('/') + 1);
  Status status;
  if (!readFile(path, text)) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    report.failed = true;
    return;
  }
  if (text.rfind("problem,", 0) == 0) {
    Expected<Problem> problem = readProblem(text);
    Clock clock;
    Expected<Plan> planned = problem ? plan(*problem) : Expected<Plan>(problem.getStatus());
    if (!planned) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), planned.getStatus().getMessage().c_str());
      report.failed = true;
      return;
    }
    report.plan(name, *problem, *planned, clock.seconds());
    return;
  }
  Expected<PackingFile> file = readPacking(text);
  if (!file) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), file.getStatus().getMessage().c_str());
    report.failed = true;
    return;
  }
  const PackingProblem &problem = file->problem;
  PackingOptions options;
  options.target = capacity;
  options.exactWork = exactWork;
  Clock clock;
  Packing packing = pack(problem, options);
  double seconds = clock.seconds();
  bool valid = validatePacking(problem, packing.offsets, packing.height).isOk();
  report.packing(name, problem.items.size(), capacity, packing, valid, seconds);
}

void recomputeFile(Report &report, const std::string &name) {
  std::string path = ORTC_BENCHMARK_DATA "/" + name, text, costText;
  if (!readFile(path + ".csv", text) || !readFile(path + ".cost", costText)) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    report.failed = true;
    return;
  }
  Expected<Problem> problem = readProblem(text);
  std::vector<StepCost> costs = benchmark::readCosts(costText);
  for (uint32_t buffers : {24, 32, 40})
    for (uint32_t percent : {70, 60, 50, 40}) {
      Expected<benchmark::CoarseResult> result =
          problem ? benchmark::recomputeCoarsened(benchmark::coarsen(*problem, buffers), costs, percent)
                  : Expected<benchmark::CoarseResult>(problem.getStatus());
      if (!result) {
        std::fprintf(stderr, "%s: %s\n", path.c_str(), result.getStatus().getMessage().c_str());
        report.failed = true;
        return;
      }
      report.recomputation(name, buffers, percent, *result);
    }
}

void recomputeAll(Report &report) {
  for (const char *name : {"unet-small", "resnet18-224"})
    recomputeFile(report, name);
}

} // namespace

/// planner_benchmark [--json] [--exact-work N] [--recompute] [FILE.csv ...]: the files (problems or packings), or the
/// recomputation of coarsened training steps, else all.
int main(int count, char **arguments) {
  Report report;
  bool onlyRecompute = false;
  uint64_t exactWork = 20'000'000'000;
  std::vector<std::string> files;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--json") == 0)
      report.json = true;
    else if (std::strcmp(arguments[i], "--exact-work") == 0 && i + 1 < count)
      exactWork = std::strtoull(arguments[++i], nullptr, 10);
    else if (std::strcmp(arguments[i], "--recompute") == 0)
      onlyRecompute = true;
    else
      files.push_back(arguments[i]);
  }
  for (const std::string &file : files)
    packFile(report, file, 0, exactWork);
  if (onlyRecompute)
    recomputeAll(report);
  else if (files.empty()) {
    for (const char *name : {"A", "B", "C", "D", "E", "F"})
      packFile(report, std::string(ORTC_BENCHMARK_DATA "/") + name + ".1048576.csv", 1048576, exactWork);
    using benchmark::TrainingGraph;
    for (const TrainingGraph &graph :
         {TrainingGraph{"mlp", 4, 1, 1, 1 << 18, 1 << 20, false},
          TrainingGraph{"residual-50", 16, 1, 3, 1 << 22, 1 << 16, false},
          TrainingGraph{"inception", 12, 4, 3, 1 << 22, 1 << 16, false},
          TrainingGraph{"inception-interleaved", 12, 4, 3, 1 << 22, 1 << 16, true},
          TrainingGraph{"wide-weights", 24, 2, 3, 1 << 16, 1 << 20, false},
          TrainingGraph{"transformer-24", 48, 1, 6, 1 << 22, 1 << 22, false},
          TrainingGraph{"deep-5k", 280, 1, 3, 1 << 20, 1 << 18, false},
          TrainingGraph{"deep-20k", 560, 2, 3, 1 << 20, 1 << 18, false},
          TrainingGraph{"deep-20k-interleaved", 560, 2, 3, 1 << 20, 1 << 18, true}}) {
      Problem problem = benchmark::makeTrainingGraph(graph);
      Clock clock;
      Expected<Plan> planned = plan(problem);
      if (!planned) {
        std::fprintf(stderr, "%s: %s\n", graph.name, planned.getStatus().getMessage().c_str());
        return 1;
      }
      report.plan(graph.name, problem, *planned, clock.seconds());
    }
    recomputeAll(report);
  }
  if (report.json)
    std::printf("%s\n]\n", report.first ? "[" : "");
  return report.failed ? 1 : 0;
}
