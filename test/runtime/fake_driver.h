// What tests tell the stand-in for a GPU's driver, and what it tells them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace ortc::test {

/// The symbol `fake_driver` of the library gives a pointer to it.
struct FakeDriver {
  // The machine.
  int devices = 1, version = 12040;
  int processor = 90;                           ///< NVIDIA's
  std::string model = "gfx90a:sramecc+:xnack-"; ///< AMD's
  unsigned long long freeBytes = 1 << 30;
  bool runsKernels = true;
  bool knowsPointers = true; ///< whether memory that a test allocated itself is known as such
  /// The call of this function (as runtime/device/driver.h names it) fails with this result, after so many good
  /// ones; "" = none.
  std::string failing;
  int result = 999, goodCalls = 0;
  std::string jitLog; ///< of images that are refused
  int current = -1;   ///< the device that calls go to
  // What was done: a line for each call with an effect.
  std::string log;
  int live = 0; ///< contexts, memory, streams, events, images and graphs that somebody has to give back
};

/// Where addresses of the stand-in's memory are in this process: nobody gets there by following them.
constexpr unsigned long long kFakeBit = 1ull << 62;

} // namespace ortc::test
