// The counter-based generator of random operations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Philox2x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): ten rounds of one
// 32 x 32 bit multiplication. A draw is a function of counter and key alone, so nothing depends on who
// computes it, or how often.
#pragma once

#include <array>
#include <cstdint>

namespace ortc::nn {

inline constexpr uint32_t kPhiloxMultiplier = 0xD256D193u, kPhiloxWeyl = 0x9E3779B9u;
inline constexpr unsigned kPhiloxRounds = 10;

constexpr std::array<uint32_t, 2> philox(std::array<uint32_t, 2> counter, uint32_t key) {
  for (unsigned round = 0; round < kPhiloxRounds; ++round, key += kPhiloxWeyl) {
    uint64_t product = uint64_t(kPhiloxMultiplier) * counter[0];
    counter = {uint32_t(product >> 32) ^ key ^ counter[1], uint32_t(product)};
  }
  return counter;
}

} // namespace ortc::nn
