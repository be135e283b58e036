// Groups of lanes, sorted by their place.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/run/Groups.h"

namespace ortc::emulator {

void insertGroup(Warp &warp, uint32_t place, uint32_t mask, bool isWaiting) {
  uint32_t k = 0;
  while (k < warp.groupCount && warp.groups[k].place < place)
    ++k;
  if (k < warp.groupCount && warp.groups[k].place == place) {
    warp.groups[k].mask |= mask;
    warp.groups[k].isWaiting = false;
    return;
  }
  for (uint32_t later = warp.groupCount++; later > k; --later)
    warp.groups[later] = warp.groups[later - 1];
  warp.groups[k] = {place, mask, isWaiting};
}

bool takeGroup(Warp &warp, uint32_t &place, uint32_t &mask) {
  uint32_t k = 0;
  while (k < warp.groupCount && warp.groups[k].isWaiting)
    ++k;
  if (k == warp.groupCount)
    return false;
  place = warp.groups[k].place;
  mask = warp.groups[k].mask;
  for (--warp.groupCount; k < warp.groupCount; ++k)
    warp.groups[k] = warp.groups[k + 1];
  return true;
}

void wakeGroups(Warp &warp) {
  for (uint32_t k = 0; k < warp.groupCount; ++k)
    warp.groups[k].isWaiting = false;
}

uint32_t nextPlace(const Warp &warp, uint32_t place) {
  for (uint32_t k = 0; k < warp.groupCount; ++k)
    if (warp.groups[k].place > place)
      return warp.groups[k].place;
  return kNone;
}

} // namespace ortc::emulator
