// The interpreter's loop: one warp, until its lanes wait or have left.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/count/Counter.h"
#include "test/gpu/emulator/lanes/Lists.h"
#include "test/gpu/emulator/run/Groups.h"

namespace ortc::emulator {
namespace {

/// Jumps backwards before other warps get their turn, which lets a warp wait for what another one writes.
constexpr uint32_t kPatience = 1u << 16;

/// The lanes of `active` whose cells of `e` name the same lanes as the first one's, and those lanes.
uint32_t membersOf(Warp &warp, const Instruction &i, uint32_t active, uint32_t &needed) {
  if (i.e == kNone) {
    needed = warp.alive;
    return active;
  }
  const uint32_t *cells = warp.cells<uint32_t>(i.e);
  uint32_t members = cells[__builtin_ctz(active)], alike = 0;
  eachActive(active, [&](uint32_t l) { alike |= uint32_t(cells[l] == members) << l; });
  needed = members & warp.alive;
  return alike;
}

enum class Met { All, NotYet, Failed };

/// Runs an instruction that exchanges values between lanes, once for each set of lanes that is named.
template <bool isCounted> Met gather(Warp &warp, const Instruction &i, uint32_t active, uint32_t skipped) {
  for (uint32_t rest = active; rest;) {
    uint32_t needed, alike = membersOf(warp, i, rest, needed);
    rest &= ~alike;
    if (needed & skipped) {
      report(warp, i, uint32_t(__builtin_ctz(active)), Failure::LaunchFailed,
             "divergent: lanes that it names skip it by their predicate");
      return Met::Failed;
    }
    if (needed & ~alike)
      return Met::NotYet;
    if (i.needsAllLanes && alike != kAllLanes) {
      report(warp, i, uint32_t(__builtin_ctz(active)), Failure::LaunchFailed,
             "divergent: it needs all lanes of the warp");
      return Met::Failed;
    }
  }
  if constexpr (isCounted)
    warp.counter->note(warp, i, active);
  for (uint32_t rest = active; rest && !warp.block->isFailed;) {
    uint32_t needed, alike = membersOf(warp, i, rest, needed);
    rest &= ~alike;
    if (alike & ~needed)
      report(warp, i, uint32_t(__builtin_ctz(alike & ~needed)), Failure::LaunchFailed,
             "a lane executes it that its mask does not name");
    else
      i.run(warp, i, alike);
  }
  return warp.block->isFailed ? Met::Failed : Met::All;
}

/// Sends lanes to the places that a table has for their index.
bool branchByTable(Warp &warp, const Instruction &i, uint32_t active) {
  const uint32_t *index = warp.cells<uint32_t>(i.a);
  bool isGood = true;
  eachActive(active, [&](uint32_t l) {
    if (index[l] < i.target)
      insertGroup(warp, warp.lists[i.list + index[l]], 1u << l, false);
    else if (isGood)
      report(warp, i, l, Failure::LaunchFailed, "index of the branch is beyond its table"), isGood = false;
  });
  return isGood;
}

void stop(Warp &warp, uint32_t place, uint32_t mask, WarpState state) {
  if (mask)
    insertGroup(warp, place, mask, false);
  warp.state = state;
}

/// Every group waits for lanes of another one.
void reportStuck(Warp &warp) {
  const Group &first = warp.groups[0];
  report(warp, warp.code[first.place], uint32_t(__builtin_ctz(first.mask)), Failure::LaunchFailed,
         "divergent: lanes that it needs never come here");
  warp.state = WarpState::Failed;
}

void arrive(Warp &warp, const Instruction &i, uint32_t active) {
  const uint32_t first = uint32_t(__builtin_ctz(active));
  warp.barrier = i.a == kNone ? 0 : warp.cells<uint32_t>(i.a)[first];
  warp.barrierThreads = i.b == kNone ? 0 : warp.cells<uint32_t>(i.b)[first];
  warp.barrierStatement = uint32_t(&i - warp.code);
}

template <bool isCounted> void runEither(Warp &warp) {
  const Instruction *code = warp.code;
  uint32_t patience = kPatience, place, mask;
  uint64_t executed = 0;
  struct Count {
    Warp &warp;
    uint64_t &executed;
    ~Count() { warp.laneInstructions += executed; }
  } count{warp, executed};
  warp.isPolling = false;
  while (takeGroup(warp, place, mask)) {
    const uint32_t lanes = uint32_t(__builtin_popcount(mask));
    const uint32_t limit = nextPlace(warp, place);
    while (true) {
      const Instruction &i = code[place];
      uint32_t active = mask;
      if (i.predicate != kNone) {
        uint32_t holds = lanesWith(warp.cells<uint32_t>(i.predicate));
        active &= i.isNegated ? ~holds : holds;
      }
      executed += lanes;
      if constexpr (isCounted) // others wait for lanes first
        if (i.action < Action::Gather || !active || i.action == Action::Branch)
          warp.counter->note(warp, i, active);
      if (i.action <= Action::Access) {
        if (active)
          i.run(warp, i, active);
        if (i.action == Action::Access && warp.block->isFailed)
          return stop(warp, place, mask, WarpState::Failed);
        if (++place != limit)
          continue;
        insertGroup(warp, place, mask, false);
        break;
      }
      if (i.action == Action::Branch) {
        if (active && i.target <= place && --patience == 0)
          return stop(warp, place, mask, WarpState::Ready);
        if (active && active != mask) {
          insertGroup(warp, i.target, active, false);
          insertGroup(warp, place + 1, mask & ~active, false);
          break;
        }
        place = active ? i.target : place + 1;
        if (limit == kNone && warp.groupCount == 0)
          continue;
        insertGroup(warp, place, mask, false);
        break;
      }
      if (!active) {
        insertGroup(warp, place + 1, mask, false);
        break;
      }
      if (i.action == Action::Gather) {
        Met met = gather<isCounted>(warp, i, active, mask & ~active);
        if (met == Met::Failed)
          return stop(warp, place, mask, WarpState::Failed);
        if (met == Met::All && ++place != limit)
          continue;
        insertGroup(warp, place, mask, met == Met::NotYet);
        break;
      }
      if constexpr (isCounted)
        if (i.action == Action::BranchTable || i.action == Action::Exit || i.action == Action::Poll)
          warp.counter->note(warp, i, active);
      if (i.action == Action::Poll) {
        i.run(warp, i, active);
        if (warp.block->isFailed)
          return stop(warp, place, mask, WarpState::Failed);
        if (warp.isPolling)
          return warp.polled = &i, stop(warp, place + 1, mask, WarpState::Ready);
        if (++place != limit)
          continue;
        insertGroup(warp, place, mask, false);
        break;
      }
      if (i.action == Action::BranchTable) {
        if (!branchByTable(warp, i, active))
          return stop(warp, place, mask, WarpState::Failed);
        if (mask & ~active)
          insertGroup(warp, place + 1, mask & ~active, false);
        break;
      }
      if (i.action == Action::Exit) {
        warp.alive &= ~active;
        if (mask & ~active)
          insertGroup(warp, place + 1, mask & ~active, false);
        wakeGroups(warp);
        break;
      }
      // A barrier.
      if (mask & ~active) {
        report(warp, i, uint32_t(__builtin_ctz(mask & ~active)), Failure::LaunchFailed,
               "divergent barrier: a lane skips it by its predicate");
        return stop(warp, place, mask, WarpState::Failed);
      }
      if (warp.alive & ~mask) {
        insertGroup(warp, place, mask, true);
        break;
      }
      if constexpr (isCounted)
        warp.counter->note(warp, i, active);
      arrive(warp, i, active);
      return stop(warp, place + 1, mask,
                  i.action == Action::Arrive ? WarpState::Arrived : WarpState::AtBarrier);
    }
  }
  if (warp.groupCount)
    reportStuck(warp);
  else
    warp.state = WarpState::Done;
}

} // namespace

namespace ORTC_EMULATOR_ISA {
void runWarp(Warp &warp) { runEither<false>(warp); }
void runCountedWarp(Warp &warp) { runEither<true>(warp); }
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
