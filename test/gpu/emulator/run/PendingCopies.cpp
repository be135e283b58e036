// Copies that arrive later.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/run/PendingCopies.h"

#include <cstring>

namespace ortc::emulator {

void PendingCopies::clear() {
  copies.clear();
  std::memset(group, 0, sizeof group);
}

void PendingCopies::add(uint32_t lane, uint32_t shared, uint32_t bytes, const std::byte *data) {
  PendingCopy copy = {lane, group[lane], shared, bytes, {}};
  std::memcpy(copy.data, data, bytes);
  copies.push_back(copy);
}

void PendingCopies::commit(uint32_t mask) {
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    group[lane] += mask >> lane & 1;
}

const PendingCopy *PendingCopies::take(uint32_t mask, uint32_t groups, uint32_t &count) {
  taken.clear();
  size_t kept = 0;
  for (const PendingCopy &copy : copies) {
    const bool isReady =
        (mask >> copy.lane & 1) && (groups == kNone || copy.group + groups < group[copy.lane]);
    if (isReady)
      taken.push_back(copy);
    else
      copies[kept++] = copy;
  }
  copies.resize(kept);
  count = uint32_t(taken.size());
  return taken.data();
}

} // namespace ortc::emulator
