// ortc-bench-kernels [--target=NAME] [benchmark flags]
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/kernels/KernelBenchmark.h"

#include <benchmark/benchmark.h>
#include <cstdio>
#include <string_view>
#include <vector>

int main(int argc, char **argv) {
  using namespace ortc::benchmarks;
  std::vector<char *> rest;
  for (int i = 0; i < argc; ++i) {
    std::string_view argument(argv[i]);
    if (argument.starts_with("--target="))
      setBenchmarkTarget(std::string(argument.substr(9)));
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
  std::printf("target %s, %d lanes: FMA peak %.1f GF, copy %.1f GB/s (one core)\n",
              benchmarkTarget().name.c_str(), int(benchmarkTarget().vectorLanes),
              measurePeak(Limit::Arithmetic), measurePeak(Limit::Memory));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
