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

bool PendingCopies::take(uint32_t mask, uint32_t groups, PendingCopy &copy) {
  for (size_t k = 0; k < copies.size(); ++k) {
    const PendingCopy &c = copies[k];
    if (!(mask >> c.lane & 1) || (groups != kNone && c.group + groups >= group[c.lane]))
      continue;
    copy = c;
    copies.erase(copies.begin() + ptrdiff_t(k));
    return true;
  }
  return false;
}

} // namespace ortc::emulator
