// What this machine can do at most, measured, and the time that work takes at that speed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Machine.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <ortc/format.h>
#include <system_error>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ortc {

/// Time of this thread on a CPU.
static double seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

#if defined(__x86_64__)

// clang-format off
#define ORTC_FMA(width, n) "vfmadd231ps %%" width "mm14,%%" width "mm15,%%" width "mm" #n "\n\t"
#define ORTC_SSE(width, n) width " %%xmm14,%%xmm" #n "\n\t"
#define ORTC_TWELVE(line, even, odd)                                                                \
  line(even, 0) line(odd, 1) line(even, 2) line(odd, 3) line(even, 4) line(odd, 5)                   \
  line(even, 6) line(odd, 7) line(even, 8) line(odd, 9) line(even, 10) line(odd, 11)
// clang-format on

/// Twelve independent chains cover two units of four cycles of latency.
#define ORTC_LOOP(before, body, after, rounds)                                                               \
  __asm__ volatile(before "1:\n\t" body "dec %0\n\tjnz 1b\n\t" after                                         \
                   : "+r"(rounds)                                                                            \
                   :                                                                                         \
                   : "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",       \
                     "xmm9", "xmm10", "xmm11", "xmm14", "xmm15")
#define ORTC_FMA_LOOP(width, rounds)                                                                         \
  ORTC_LOOP("vxorps %%xmm14,%%xmm14,%%xmm14\n\tvxorps %%xmm15,%%xmm15,%%xmm15\n\t",                          \
            ORTC_TWELVE(ORTC_FMA, width, width), "vzeroupper\n\t", rounds)

double measureFlopRate(int lanes) {
  constexpr long kRounds = 200'000;
  bool wide = lanes >= 16 && __builtin_cpu_supports("avx512f");
  bool fused = wide || (lanes >= 8 && __builtin_cpu_supports("fma"));
  double best = 1e9;
  for (int repeat = 0; repeat < 3; ++repeat) {
    long rounds = kRounds;
    double start = seconds();
    if (wide)
      ORTC_FMA_LOOP("z", rounds);
    else if (fused)
      ORTC_FMA_LOOP("y", rounds);
    else
      ORTC_LOOP("xorps %%xmm14,%%xmm14\n\t", ORTC_TWELVE(ORTC_SSE, "mulps", "addps"), "", rounds);
    best = std::min(best, seconds() - start);
  }
  return kRounds * 12.0 * (wide ? 32 : fused ? 16 : 4) / best;
}

#else

double measureFlopRate(int) { return 0; }

#endif

/// Copies past the caches: such stores do not read what they overwrite, and four pages at a time give the prefetchers
/// four streams. `bytes` is a multiple of `kPages`.
constexpr size_t kPage = 4096, kPages = 4 * kPage;
static void copyAround(char *to, const char *from, size_t bytes) {
#if defined(__x86_64__)
  for (size_t block = 0; block < bytes; block += kPages)
    for (size_t line = 0; line < kPage; line += 64)
      for (size_t i = block + line; i < block + kPages; i += kPage)
        for (size_t part = 0; part < 64; part += 16)
          _mm_stream_si128(reinterpret_cast<__m128i *>(to + i + part),
                           _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i + part)));
  _mm_sfence();
#else
  std::memcpy(to, from, bytes);
#endif
}

CopyTimer::CopyTimer(size_t most) : from(most / 2 + 64, 1), to(most / 2 + 64, 2) {}

double CopyTimer::measure(size_t bytes) {
  size_t half = std::min(bytes / 2, from.size() - 64);
  char *target = to.data() + (64 - reinterpret_cast<uintptr_t>(to.data()) % 64);
  constexpr size_t kSmall = size_t(1) << 20;
  half -= half % (half > kSmall ? kPages : 64);
  constexpr double kRun = 5e-4; // reading the clock costs up to a microsecond
  double best = 1e9;
  for (bool around : {false, true}) {
    for (int repeat = 0; repeat < 3 && (!around || half > kSmall); ++repeat) {
      int copies = 0;
      double start = seconds(), took = 0;
      do {
        for (int i = 0; i < 16 && (i == 0 || half < 65536); ++i, ++copies) {
          if (around)
            copyAround(target, from.data(), half);
          else
            std::memcpy(target, from.data(), half);
          __asm__ volatile("" : : "r"(target) : "memory");
        }
        took = seconds() - start;
      } while (took < kRun);
      best = std::min(best, took / copies);
    }
  }
  return 2.0 * double(half) / best;
}

double Machine::getCopyRate(double bytes) const {
  for (const CopyRate &rate : rates)
    if (bytes <= rate.bytes)
      return rate.bytesPerSecond;
  return rates.empty() ? 0 : rates.back().bytesPerSecond;
}

double Machine::getBound(double flops, double bytes) const {
  double copyRate = getCopyRate(bytes / 2);
  return std::max(flopRate > 0 ? flops / flopRate : 0, copyRate > 0 ? bytes / copyRate : 0);
}

Machine measureMachine(int lanes, int threads) {
  // The first ones are those of caches, the last one is far larger than most.
  static constexpr size_t kSizes[] = {size_t(32) << 10, size_t(128) << 10, size_t(512) << 10, size_t(2) << 20,
                                      size_t(8) << 20,  size_t(32) << 20,  size_t(128) << 20};
  constexpr size_t kCount = std::size(kSizes);
  Machine machine;
  std::vector<std::vector<double>> measured(static_cast<size_t>(threads));
  std::atomic<int> arrived = 0;
  std::atomic<bool> areThere = false; // the threads that can be started: no other one is waited for
  auto work = [&](int thread) {
    while (!areThere)
      std::this_thread::yield();
    auto share = [&](size_t bytes) { return bytes / static_cast<size_t>(threads); };
    CopyTimer timer(share(kSizes[kCount - 1]));
    int meetings = 0;
    auto meet = [&] {
      ++arrived;
      for (++meetings; arrived < meetings * threads;)
        std::this_thread::yield();
    };
    std::vector<double> &rates = measured[static_cast<size_t>(thread)];
    meet();
    rates.push_back(measureFlopRate(lanes));
    for (size_t bytes : kSizes) {
      meet();
      rates.push_back(timer.measure(share(bytes)));
    }
  };
  std::vector<std::thread> others;
  try {
    for (int thread = 1; thread < threads; ++thread)
      others.emplace_back(work, thread);
  } catch (const std::system_error &) {
    threads = static_cast<int>(others.size()) + 1;
  }
  machine.threads = threads;
  measured.resize(static_cast<size_t>(threads));
  areThere = true;
  work(0);
  for (std::thread &other : others)
    other.join();
  auto sum = [&](size_t i) {
    double total = 0;
    for (const std::vector<double> &rates : measured)
      total += rates[i];
    return total;
  };
  machine.flopRate = sum(0);
  for (size_t i = 0; i < kCount; ++i)
    machine.rates.push_back({double(kSizes[i]), sum(i + 1)});
  for (size_t i = kCount - 1;
       i-- > 0;) // a larger set is not copied faster: what disturbed the smaller one is left out
    machine.rates[i].bytesPerSecond =
        std::max(machine.rates[i].bytesPerSecond, machine.rates[i + 1].bytesPerSecond);
  return machine;
}

int countLanes(uint32_t architecture, uint64_t features) {
  auto has = [&](int bit) { return (features >> bit & 1) != 0; };
  if (architecture != ORTC_ARCH_X86_64)
    return 4;
  bool avx512 = (features & ORTC_X86_64_V4) == ORTC_X86_64_V4;
  return avx512 ? 16 : has(ORTC_X86_FMA) && has(ORTC_X86_AVX2) ? 8 : 4;
}

} // namespace ortc
