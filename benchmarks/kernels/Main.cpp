// ortc-bench-kernels [--target=NAME] [--table] [benchmark flags]
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/kernels/KernelBenchmark.h"
#include "benchmarks/kernels/Table.h"

#include <benchmark/benchmark.h>
#include <cstdio>
#include <string_view>
#include <vector>

namespace {

/// Says on stderr what has been measured; the table follows when everything has been.
class Progress final : public benchmark::BenchmarkReporter {
public:
  bool ReportContext(const Context &) override { return true; }
  void ReportRuns(const std::vector<Run> &runs) override {
    for (const Run &run : runs) {
      if (run.error_occurred)
        std::fprintf(stderr, "%s: %s\n", run.benchmark_name().c_str(), run.error_message.c_str());
      hasFailed |= run.error_occurred;
    }
    if (!ortc::benchmarks::kernelResults().empty() && !runs.front().error_occurred)
      std::fprintf(stderr, "%s\n",
                   ortc::benchmarks::tableRow(ortc::benchmarks::kernelResults().back()).c_str());
  }
  bool hasFailed = false;
};

} // namespace

int main(int argc, char **argv) {
  using namespace ortc::benchmarks;
  restartInNeutralEnvironment(argv);
  std::vector<char *> rest;
  bool wantsTable = false;
  for (int i = 0; i < argc; ++i) {
    std::string_view argument(argv[i]);
    if (argument.starts_with("--target="))
      setBenchmarkTarget(std::string(argument.substr(9)));
    else if (argument == "--table")
      wantsTable = true;
    else
      rest.push_back(argv[i]);
  }
  int count = static_cast<int>(rest.size());
  registerContractions();
  registerConvolutions();
  registerLoops();
  benchmark::Initialize(&count, rest.data());
  if (benchmark::ReportUnrecognizedArguments(count, rest.data()))
    return 1;
  int lanes = int(benchmarkTarget().lanes(32));
  std::printf("target %s, %d lanes: FMA peak %.1f GF, copy %.1f GB/s, triad %.1f GB/s (one core)\n",
              benchmarkTarget().name.c_str(), lanes, measureRate(Limit::Arithmetic, lanes),
              measureRate(Limit::Copy, lanes), measureRate(Limit::Triad, lanes));
  if (std::string libraries = describeLibraries(); !libraries.empty())
    std::printf("libraries: %s\n", libraries.c_str());
  if (!wantsTable) {
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  }
  Progress progress;
  benchmark::RunSpecifiedBenchmarks(&progress);
  printTable(kernelResults());
  return progress.hasFailed ? 1 : 0;
}
