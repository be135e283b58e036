// What one core can do at most, measured.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/kernels/MachineRates.h"

#include "support/Machine.h"

#include <algorithm>
#include <ctime>
#include <emmintrin.h>
#include <optional>
#include <vector>

namespace ortc::benchmarks {

double threadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

namespace {

constexpr size_t kBytes = size_t(512) << 20;

/// Memory is the limit, and vectors of 16 bytes are wide enough for it.
class TriadTimer {
public:
  double measure() {
    double best = 1e9;
    for (bool around : {false, true})
      for (int repeat = 0; repeat < 3; ++repeat) {
        double start = threadSeconds();
        around ? pastCaches() : throughCaches();
        best = std::min(best, threadSeconds() - start);
      }
    return 3 * double(kElements * sizeof(float)) / best;
  }

private:
  // Four pages at a time give the prefetchers as many streams.
  static constexpr size_t kPage = 1024, kBlock = 4 * kPage,
                          kElements = kBytes / 3 / sizeof(float) / kBlock * kBlock;

  __m128 at(size_t i) const {
    return _mm_add_ps(_mm_loadu_ps(&b[i]), _mm_mul_ps(_mm_set1_ps(scale), _mm_loadu_ps(&c[i])));
  }
  void throughCaches() {
    for (size_t i = 0; i < kElements; i += 4)
      _mm_storeu_ps(&a[i], at(i));
  }
  void pastCaches() {
    float *to = a.data() + (64 - reinterpret_cast<uintptr_t>(a.data()) % 64) / sizeof(float);
    for (size_t block = 0; block < kElements; block += kBlock)
      for (size_t line = 0; line < kPage; line += 16)
        for (size_t i = block + line; i < block + kBlock; i += kPage)
          for (size_t part = 0; part < 16; part += 4)
            _mm_stream_ps(to + i + part, at(i + part));
    _mm_sfence();
  }

  std::vector<float> a = std::vector<float>(kElements + 16), b = std::vector<float>(kElements, 1.0f),
                     c = std::vector<float>(kElements, 2.0f);
  volatile float scale = 0.5f;
};

} // namespace

double measureRate(Limit limit, int lanes) {
  static std::optional<CopyTimer> copies; // memory is touched once
  static std::optional<TriadTimer> triads;
  switch (limit) {
  case Limit::Arithmetic:
    return measureFlopRate(lanes) * 1e-9;
  case Limit::Copy:
    if (!copies)
      copies.emplace(kBytes);
    return copies->measure(kBytes) * 1e-9;
  case Limit::Triad:
    if (!triads)
      triads.emplace();
    return triads->measure() * 1e-9;
  }
  return 0;
}

} // namespace ortc::benchmarks
