// mbarrier: barriers in shared memory that count arrivals, and whose phases can be tested.
//
// What all others did before a phase ended counts as done for a warp that saw it end: an arrival that is missing
// is found by what it does to the count, not as a race. cp.async.mbarrier.arrive completes its thread's copies
// at once.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>

#include "test/gpu/emulator/lanes/Access.h"
#include "test/gpu/emulator/lanes/Lists.h"

namespace ortc::emulator {
namespace {

constexpr uint32_t kMostArrivals = (1u << 20) - 1;

Mbarrier *findBarrier(Block &block, const std::byte *data) {
  const uint32_t at = uint32_t(data - block.shared);
  for (Mbarrier &barrier : *block.mbarriers)
    if (barrier.at == at)
      return &barrier;
  return nullptr;
}

/// The barrier of a lane; null after a report.
template <Touch touch> Mbarrier *barrierOf(Warp &warp, const Instruction &i, Addresses &at, uint32_t lane) {
  const std::byte *data = at.checkLane<touch>(warp, i, lane, lane);
  if (!data)
    return nullptr;
  Block &block = *warp.block;
  Mbarrier *found =
      data >= block.shared && data < block.shared + block.sharedBytes ? findBarrier(block, data) : nullptr;
  if (!found)
    report(warp, i, lane, Failure::LaunchFailed, "there is no mbarrier at the address");
  return found;
}

/// b: arrivals of a phase.
void initialize(Warp &warp, const Instruction &i, uint32_t mask) {
  Addresses at(warp, i, mask, 8);
  Block &block = *warp.block;
  at.eachChecked<Touch::Write>(warp, i, [&](uint32_t l, std::byte *data) {
    const uint32_t expected = warp.cells<uint32_t>(i.b)[l];
    if (data < block.shared || data >= block.shared + block.sharedBytes)
      return report(warp, i, l, Failure::LaunchFailed, "an mbarrier is in shared memory");
    if (!expected || expected > kMostArrivals)
      return report(warp, i, l, Failure::LaunchFailed, "an mbarrier counts 1 to 1048575 arrivals");
    if (findBarrier(block, data))
      return report(warp, i, l, Failure::LaunchFailed, "there is an mbarrier at the address already");
    block.mbarriers->push_back({uint32_t(data - block.shared), expected, expected, 0, 0});
  });
}

void invalidate(Warp &warp, const Instruction &i, uint32_t mask) {
  Addresses at(warp, i, mask, 8);
  eachActive(mask, [&](uint32_t l) {
    if (warp.block->isFailed)
      return;
    if (Mbarrier *barrier = barrierOf<Touch::Write>(warp, i, at, l))
      warp.block->mbarriers->erase(warp.block->mbarriers->begin() +
                                   (barrier - warp.block->mbarriers->data()));
  });
}

/// d: the phase before (or none); b: how often, or none for once. mode 1: with the copies of the thread, as one
/// of the arrivals that are counted; 2: as one more.
void arrive(Warp &warp, const Instruction &i, uint32_t mask) {
  Block &block = *warp.block;
  if (i.mode) {
    Instruction wait = i;
    wait.mode = 2;
    laneCode().waitForCopies(warp, wait, mask);
    if (block.isFailed)
      return;
  }
  Addresses at(warp, i, mask, 8);
  ++block.clock;
  eachActive(mask, [&](uint32_t l) {
    Mbarrier *barrier = block.isFailed ? nullptr : barrierOf<Touch::Atomic>(warp, i, at, l);
    if (!barrier)
      return;
    const uint32_t times = i.mode == 2 ? 0 : i.b == kNone ? 1 : warp.cells<uint32_t>(i.b)[l];
    if (i.d != kNone)
      warp.cells<uint64_t>(i.d)[l] = barrier->phase;
    if (times > barrier->pending)
      return report(warp, i, l, Failure::LaunchFailed, "more arrive than the mbarrier expects");
    barrier->pending -= times;
    if (barrier->pending == 0) {
      barrier->pending = barrier->expected;
      ++barrier->phase;
      barrier->completedAt = ++block.clock;
    }
  });
}

/// d: whether the phase of cells b has ended; mode 1: they are its parity.
void test(Warp &warp, const Instruction &i, uint32_t mask) {
  Addresses at(warp, i, mask, 8);
  uint32_t *d = warp.cells<uint32_t>(i.d);
  bool hasAll = true;
  eachActive(mask, [&](uint32_t l) {
    const Mbarrier *barrier = warp.block->isFailed ? nullptr : barrierOf<Touch::Atomic>(warp, i, at, l);
    if (!barrier)
      return;
    const bool isOver = i.mode ? (barrier->phase & 1) != (warp.cells<uint32_t>(i.b)[l] & 1)
                               : barrier->phase != warp.cells<uint64_t>(i.b)[l];
    d[l] = isOver ? ~0u : 0u;
    hasAll &= isOver;
    if (isOver) {
      warp.blockTime = std::max(warp.blockTime, barrier->completedAt);
      warp.warpTime = std::max(warp.warpTime, barrier->completedAt);
    }
  });
  warp.isPolling = !hasAll;
}

} // namespace

namespace ORTC_EMULATOR_ISA {
void listMbarriers(LaneCode &code) {
  code.initializeBarrier = initialize;
  code.invalidateBarrier = invalidate;
  code.arriveAtBarrier = arrive;
  code.testBarrier = test;
}
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
