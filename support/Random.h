// Random numbers that are the same everywhere, which those of the standard library are not.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string_view>

namespace ortc {

/// The step of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
inline constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15u;

/// The finalizer of splitmix64: a bijection whose output bits depend on all input bits.
inline uint64_t mixBits(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

/// FNV-1a (Fowler, Noll and Vo): where numbers that are drawn for a name begin.
inline uint64_t hashName(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char letter : name)
    hash = (hash ^ letter) * 0x100000001b3u;
  return hash;
}

/// A number in [0, limit) for 64 random bits: the high half of the product of 128 bits, for which not every processor
/// has a type. Its bias is below limit / 2^64.
inline uint64_t pickBelow(uint64_t limit, uint64_t random) {
  uint64_t low = uint32_t(random), high = random >> 32;
  uint64_t limitLow = uint32_t(limit), limitHigh = limit >> 32;
  uint64_t middle = high * limitLow + (low * limitLow >> 32);
  return high * limitHigh + (middle >> 32) + ((low * limitHigh + uint32_t(middle)) >> 32);
}

/// splitmix64: numbers from a counter.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next() { return mixBits(state += kGoldenGamma); }
  /// In [0, 1).
  double uniform() { return double(next() >> 11) * 0x1p-53; }
  /// Mean 0, variance 1: the sum of twelve uniform numbers, close enough to normal, and the same bits with every libm.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i)
      sum += uniform();
    return sum;
  }
  /// In [0, limit), limit > 0.
  int64_t below(int64_t limit) { return int64_t(pickBelow(uint64_t(limit), next())); }

private:
  uint64_t state;
};

} // namespace ortc
