// Peak arithmetic and memory speed of one core.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/kernels/Machine.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <vector>

namespace ortc::benchmarks {

/// Time of this thread on a CPU.
static double seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

#if defined(__x86_64__)

// clang-format off
#define ORTC_FMA(width, n) "vfmadd231ps %%" width "mm14,%%" width "mm15,%%" width "mm" #n "\n\t"
#define ORTC_TWELVE(width)                                                                          \
  ORTC_FMA(width, 0) ORTC_FMA(width, 1) ORTC_FMA(width, 2) ORTC_FMA(width, 3) ORTC_FMA(width, 4)     \
  ORTC_FMA(width, 5) ORTC_FMA(width, 6) ORTC_FMA(width, 7) ORTC_FMA(width, 8) ORTC_FMA(width, 9)     \
  ORTC_FMA(width, 10) ORTC_FMA(width, 11)
// clang-format on

/// Twelve independent chains cover two units of four cycles of latency.
#define ORTC_LOOP(width, rounds)                                                                             \
  __asm__ volatile("vxorps %%xmm14,%%xmm14,%%xmm14\n\tvxorps %%xmm15,%%xmm15,%%xmm15\n\t"                    \
                   "1:\n\t" ORTC_TWELVE(width) "dec %0\n\tjnz 1b\n\tvzeroupper\n\t"                          \
                   : "+r"(rounds)                                                                            \
                   :                                                                                         \
                   : "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",       \
                     "xmm9", "xmm10", "xmm11", "xmm14", "xmm15")

double measureFmaPeak(int lanes) {
  constexpr long kRounds = 200'000;
  bool wide = lanes >= 16 && __builtin_cpu_supports("avx512f");
  if (!wide && !(lanes >= 8 && __builtin_cpu_supports("fma")))
    return 0;
  double best = 1e9;
  for (int repeat = 0; repeat < 3; ++repeat) {
    long rounds = kRounds;
    double start = seconds();
    if (wide)
      ORTC_LOOP("z", rounds);
    else
      ORTC_LOOP("y", rounds);
    best = std::min(best, seconds() - start);
  }
  return kRounds * 12.0 * (wide ? 32 : 16) / best * 1e-9;
}

#else

double measureFmaPeak(int) { return 0; }

#endif

double measureCopyBandwidth() {
  constexpr size_t kBytes = size_t(256) << 20;
  thread_local std::vector<char> from(kBytes, 1), to(kBytes, 2);
  double best = 1e9;
  for (int repeat = 0; repeat < 3; ++repeat) {
    double start = seconds();
    std::memcpy(to.data(), from.data(), kBytes);
    best = std::min(best, seconds() - start);
  }
  return 2.0 * kBytes / best * 1e-9;
}

} // namespace ortc::benchmarks
