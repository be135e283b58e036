// ortc-bench-machine [THREADS]: what that many cores do at most, all at once, as one JSON object.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/kernels/Machine.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

/// The sum of `measure` on `count` threads at once.
static double sumOver(int count, const std::function<double()> &measure) {
  std::vector<double> rates(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (double &rate : rates)
    threads.emplace_back([&] { rate = measure(); });
  for (std::thread &thread : threads)
    thread.join();
  double sum = 0;
  for (double rate : rates)
    sum += rate;
  return sum;
}

int main(int argc, char **argv) {
  using namespace ortc::benchmarks;
  int count = argc == 2 ? std::atoi(argv[1]) : 1;
  if (argc > 2 || count < 1) {
    std::fprintf(stderr, "usage: ortc-bench-machine [THREADS]\n");
    return 2;
  }
  constexpr int kWidest = 16;
  std::printf("{\"fma_gflops\": %.1f, \"copy_gbs\": %.2f}\n",
              sumOver(count, [] { return measureFmaPeak(kWidest); }), sumOver(count, measureCopyBandwidth));
  return 0;
}
