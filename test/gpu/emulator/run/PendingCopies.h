// Copies by cp.async that a warp has begun and not waited for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include "test/gpu/emulator/run/Program.h"

namespace ortc::emulator {

struct PendingCopy {
  uint32_t lane, group, shared, bytes;
  std::byte data[16];
};

/// Data arrive when their lane waits for them, not earlier.
class PendingCopies {
public:
  void clear();
  void add(uint32_t lane, uint32_t shared, uint32_t bytes, const std::byte *data);
  /// Closes the running group of each lane.
  void commit(uint32_t mask);
  /// Takes the copies of these lanes that are older than their last `groups` groups, in order; kNone: all
  /// copies, whether their group is closed or not. They are there until the next call.
  const PendingCopy *take(uint32_t mask, uint32_t groups, uint32_t &count);

private:
  std::vector<PendingCopy> copies, taken;
  uint32_t group[kLanes] = {};
};

} // namespace ortc::emulator
