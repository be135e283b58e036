// ortc-bench-machine [THREADS]: what that many cores do at most, all at once, as one JSON object.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Machine.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv) {
  int count = argc == 2 ? std::atoi(argv[1]) : 1;
  if (argc > 2 || count < 1) {
    std::fprintf(stderr, "usage: ortc-bench-machine [THREADS]\n");
    return 2;
  }
  constexpr int kWidest = 16; // lanes; fewer where the machine has fewer
  ortc::Machine machine = ortc::measureMachine(kWidest, count);
  std::printf("{\"fma_gflops\": %.1f, \"copy_gbs\": %.2f}\n", machine.flopRate * 1e-9,
              machine.rates.back().bytesPerSecond * 1e-9);
  return 0;
}
