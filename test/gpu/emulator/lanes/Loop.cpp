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

/// How a group goes on after an instruction.
enum class Then {
  Continue, ///< it runs on, at its place
  Regroup,  ///< its lanes are among those of the warp's groups
  Stop      ///< the warp stops; its state says why
};

/// The group that runs.
struct Running {
  uint32_t place, mask;
  uint32_t limit; ///< nextPlace()
};

/// The group has executed its instruction: it runs on, together with lanes that wait there.
ORTC_INLINE Then advance(Warp &warp, Running &group) {
  if (++group.place != group.limit)
    return Then::Continue;
  insertGroup(warp, group.place, group.mask, false);
  return Then::Regroup;
}

/// The group begins its instruction anew when other lanes have come.
Then waitForLanes(Warp &warp, const Running &group) {
  insertGroup(warp, group.place, group.mask, true);
  return Then::Regroup;
}

/// Lanes that do not execute the instruction go to the next one.
void skip(Warp &warp, const Running &group, uint32_t active) {
  if (group.mask & ~active)
    insertGroup(warp, group.place + 1, group.mask & ~active, false);
}

Then stop(Warp &warp, uint32_t place, uint32_t mask, WarpState state) {
  insertGroup(warp, place, mask, false);
  warp.state = state;
  return Then::Stop;
}
Then fail(Warp &warp, const Running &group) { return stop(warp, group.place, group.mask, WarpState::Failed); }

Then branch(Warp &warp, const Instruction &i, uint32_t active, Running &group, uint32_t &patience) {
  if (active && i.target <= group.place && --patience == 0)
    return stop(warp, group.place, group.mask, WarpState::Ready);
  if (active && active != group.mask) {
    insertGroup(warp, i.target, active, false);
    skip(warp, group, active);
    return Then::Regroup;
  }
  group.place = active ? i.target : group.place + 1;
  if (warp.groupCount == 0)
    return Then::Continue;
  insertGroup(warp, group.place, group.mask, false);
  return Then::Regroup;
}

enum class Met { All, NotYet, Never };

/// Whether the lanes have come that those of `active` name. `skipped`: lanes that do not execute it.
Met meet(Warp &warp, const Instruction &i, uint32_t active, uint32_t skipped) {
  auto diverge = [&](const char *what) {
    report(warp, i, uint32_t(__builtin_ctz(active)), Failure::LaunchFailed, what);
    return Met::Never;
  };
  for (uint32_t rest = active; rest;) {
    uint32_t needed, alike = membersOf(warp, i, rest, needed);
    rest &= ~alike;
    if (needed & skipped)
      return diverge("divergent: lanes that it names skip it by their predicate");
    if (needed & ~alike)
      return Met::NotYet;
    if (i.needsAllLanes && alike != kAllLanes)
      return diverge("divergent: it needs all lanes of the warp");
  }
  return Met::All;
}

/// Runs an instruction that exchanges values between lanes, once for each set of lanes that is named.
template <bool isCounted> Then gather(Warp &warp, const Instruction &i, uint32_t active, Running &group) {
  const Met met = meet(warp, i, active, group.mask & ~active);
  if (met == Met::NotYet)
    return waitForLanes(warp, group);
  if (met == Met::Never)
    return fail(warp, group);
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
  return warp.block->isFailed ? fail(warp, group) : advance(warp, group);
}

Then poll(Warp &warp, const Instruction &i, uint32_t active, Running &group) {
  i.run(warp, i, active);
  if (warp.block->isFailed)
    return fail(warp, group);
  if (!warp.isPolling)
    return advance(warp, group);
  warp.polled = &i;
  return stop(warp, group.place + 1, group.mask, WarpState::Ready);
}

/// Sends lanes to the places that a table has for their index.
Then branchByTable(Warp &warp, const Instruction &i, uint32_t active, const Running &group) {
  const uint32_t *index = warp.cells<uint32_t>(i.a);
  bool isGood = true;
  eachActive(active, [&](uint32_t l) {
    if (index[l] < i.target)
      insertGroup(warp, warp.lists[i.list + index[l]], 1u << l, false);
    else if (isGood)
      report(warp, i, l, Failure::LaunchFailed, "index of the branch is beyond its table"), isGood = false;
  });
  if (!isGood)
    return fail(warp, group);
  skip(warp, group, active);
  return Then::Regroup;
}

/// Lanes leave the kernel, and others need not wait for them any more.
Then leave(Warp &warp, uint32_t active, const Running &group) {
  warp.alive &= ~active;
  skip(warp, group, active);
  wakeGroups(warp);
  return Then::Regroup;
}

/// All lanes of the warp come to a barrier together; what happens there is the block's.
template <bool isCounted>
Then arrive(Warp &warp, const Instruction &i, uint32_t active, const Running &group) {
  if (const uint32_t skipped = group.mask & ~active) {
    report(warp, i, uint32_t(__builtin_ctz(skipped)), Failure::LaunchFailed,
           "divergent barrier: a lane skips it by its predicate");
    return fail(warp, group);
  }
  if (warp.alive & ~group.mask)
    return waitForLanes(warp, group);
  if constexpr (isCounted)
    warp.counter->note(warp, i, active);
  const uint32_t first = uint32_t(__builtin_ctz(active));
  warp.barrier = i.a == kNone ? 0 : warp.cells<uint32_t>(i.a)[first];
  warp.barrierThreads = i.b == kNone ? 0 : warp.cells<uint32_t>(i.b)[first];
  warp.barrierStatement = group.place;
  return stop(warp, group.place + 1, group.mask,
              i.action == Action::Arrive ? WarpState::Arrived : WarpState::AtBarrier);
}

/// Executes neither arithmetic nor an access, by lanes of which there are some.
template <bool isCounted>
Then executeControl(Warp &warp, const Instruction &i, uint32_t active, Running &group) {
  switch (i.action) {
  case Action::Gather:
    return gather<isCounted>(warp, i, active, group);
  case Action::Poll:
    return poll(warp, i, active, group);
  case Action::BranchTable:
    return branchByTable(warp, i, active, group);
  case Action::Exit:
    return leave(warp, active, group);
  default:
    return arrive<isCounted>(warp, i, active, group);
  }
}

/// Whether an instruction may find that lanes are missing; it is counted when they have come.
bool waits(Action action) {
  return action == Action::Gather || action == Action::Barrier || action == Action::Arrive;
}

/// Executes the group's instruction. `patience`: jumps backwards that are left.
template <bool isCounted> ORTC_INLINE Then execute(Warp &warp, Running &group, uint32_t &patience) {
  const Instruction &i = warp.code[group.place];
  uint32_t active = group.mask;
  if (i.predicate != kNone) {
    uint32_t holds = lanesWith(warp.cells<uint32_t>(i.predicate));
    active &= i.isNegated ? ~holds : holds;
  }
  if constexpr (isCounted)
    if (!active || !waits(i.action))
      warp.counter->note(warp, i, active);
  if (i.action <= Action::Access) {
    if (active)
      i.run(warp, i, active);
    if (i.action == Action::Access && warp.block->isFailed)
      return fail(warp, group);
    return advance(warp, group);
  }
  if (i.action == Action::Branch)
    return branch(warp, i, active, group, patience);
  if (active)
    return executeControl<isCounted>(warp, i, active, group);
  skip(warp, group, active);
  return Then::Regroup;
}

/// No group can run: all lanes have left, or every group waits for lanes of another one.
void endWarp(Warp &warp) {
  if (warp.groupCount == 0) {
    warp.state = WarpState::Done;
    return;
  }
  const Group &first = warp.groups[0];
  report(warp, warp.code[first.place], uint32_t(__builtin_ctz(first.mask)), Failure::LaunchFailed,
         "divergent: lanes that it needs never come here");
  warp.state = WarpState::Failed;
}

template <bool isCounted> void runEither(Warp &warp) {
  uint32_t patience = kPatience;
  uint64_t executed = 0;
  Running group{};
  Then then = Then::Regroup;
  warp.isPolling = false;
  while (then != Then::Stop && takeGroup(warp, group.place, group.mask)) {
    const uint32_t lanes = uint32_t(__builtin_popcount(group.mask));
    group.limit = nextPlace(warp, group.place);
    do {
      executed += lanes;
      then = execute<isCounted>(warp, group, patience);
    } while (then == Then::Continue);
  }
  warp.laneInstructions += executed;
  if (then != Then::Stop)
    endWarp(warp);
}

} // namespace

namespace ORTC_EMULATOR_ISA {
void runWarp(Warp &warp) { runEither<false>(warp); }
void runCountedWarp(Warp &warp) { runEither<true>(warp); }
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
