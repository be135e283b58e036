// Races: whether an access of memory goes together with earlier ones, and notes about it.
//
// A race in shared memory is told by times. The block's clock advances at every barrier and at every
// synchronisation of a warp; each warp knows when it last took part in either. An access conflicts with that
// of another warp since the last barrier, and with that of another lane of its own warp since the last
// synchronisation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/gpu/emulator/lanes/Lanes.h"

namespace ortc::emulator {
namespace {

/// Whether a recorded access conflicts with one that a lane makes now. Without branches: it runs in vectors.
ORTC_INLINE bool isOtherWarp(SharedAccess past, uint32_t thread) {
  return ((past & kManyWarps) | ((past ^ thread) & (kThreadMask >> kWarpShift << kWarpShift))) != 0;
}
ORTC_INLINE bool isOtherLane(SharedAccess past, uint32_t thread) {
  return (((past | thread) & kManyLanes) | ((past ^ thread) & kThreadMask)) != 0;
}
ORTC_INLINE bool conflicts(SharedAccess past, uint32_t thread, uint32_t blockTime, uint32_t warpTime) {
  uint32_t time = past >> kTimeShift;
  return (uint32_t(time >= blockTime) & uint32_t(isOtherWarp(past, thread))) |
         (uint32_t(time >= warpTime) & uint32_t(isOtherLane(past, thread)));
}

/// The record of an access that joins an earlier one of the same kind.
ORTC_INLINE SharedAccess join(SharedAccess past, SharedAccess now, uint32_t blockTime, uint32_t warpTime) {
  uint32_t time = past >> kTimeShift;
  const uint32_t joinsWarp = uint32_t(time >= blockTime) & uint32_t(isOtherWarp(past, now));
  const uint32_t joinsLane = uint32_t(time >= warpTime) & uint32_t(isOtherLane(past, now));
  return now | (joinsWarp ? kManyWarps : 0) | (joinsLane ? kManyLanes : 0);
}

/// Notes accesses to `count` cells of shared memory, 2^laneShift of them for each lane from `thread`; the
/// first one that is a race, or kNone.
template <Touch touch>
ORTC_INLINE uint32_t touchShared(Warp &warp, uint32_t firstCell, uint32_t count, uint32_t thread,
                                 uint32_t laneShift) {
  SharedAccess *writes = warp.block->writes + firstCell, *reads = warp.block->reads + firstCell;
  const uint32_t blockTime = warp.blockTime, warpTime = warp.warpTime, now = warp.block->clock << kTimeShift;
  uint32_t worst = kNone;
  ORTC_LANE_LOOP
  for (uint32_t k = 0; k < count; ++k) {
    const uint32_t own = thread + (k >> laneShift);
    const SharedAccess write = writes[k], read = reads[k];
    bool isBad = conflicts(write, own, blockTime, warpTime);
    if constexpr (touch == Touch::Read) {
      reads[k] = join(read, now | own, blockTime, warpTime);
    } else if constexpr (touch == Touch::Write) {
      isBad |= conflicts(read, own, blockTime, warpTime);
      writes[k] = now | own;
    } else {
      bool wasPlain = (write & kAtomicAccess) == 0 && (write >> kTimeShift) >= blockTime;
      isBad = (isBad & wasPlain) | conflicts(read, own, blockTime, warpTime);
      writes[k] = join(write, now | own | (wasPlain ? 0 : kAtomicAccess), blockTime, warpTime);
    }
    uint32_t at = isBad ? k : kNone;
    worst = at < worst ? at : worst;
  }
  return worst;
}

/// Notes accesses to cells of global memory by the warp's block; the first one that is a race, or kNone.
template <Touch touch> ORTC_INLINE uint32_t touchGlobal(Warp &warp, TouchCell *cells, uint32_t count) {
  const Launch &launch = *warp.block->launch;
  const uint32_t number = launch.number;
  const TouchCell own = makeCell(number, touch, warp.block->number);
  const TouchCell ownWrite = makeCell(number, Touch::Write, warp.block->number);
  const TouchCell many = touch == Touch::Read     ? makeCell(number, Touch::ManyReads, 0)
                         : touch == Touch::Atomic ? makeCell(number, Touch::ManyAtomics, 0)
                                                  : own;
  uint32_t unknown = 0;
  for (uint32_t k = 0; k < count; ++k)
    unknown |= uint32_t((cells[k] != own) & (cells[k] != ownWrite) & (cells[k] != many));
  if (!unknown)
    return kNone;
  if (!launch.isParallel) {
    uint32_t current = 0;
    for (uint32_t k = 0; k < count; ++k)
      current |= uint32_t(cells[k] >> kLaunchShift == number);
    if (!current) { // the launch touches them for the first time
      for (uint32_t k = 0; k < count; ++k)
        cells[k] = own;
      return kNone;
    }
  }
  for (uint32_t k = 0; k < count; ++k)
    if (!touchCell(cells + k, number, touch, warp.block->number, launch.isParallel))
      return k;
  return kNone;
}

} // namespace
} // namespace ortc::emulator
