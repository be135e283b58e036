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
  /// The next copy of these lanes that is older than their last `groups` groups, taken out; false: there is none. kNone
  /// for all copies, whether their group is closed or not.
  bool take(uint32_t mask, uint32_t groups, PendingCopy &copy);

private:
  std::vector<PendingCopy> copies;
  uint32_t group[kLanes] = {};
};

} // namespace ortc::emulator
