// Shuffles, votes, reductions over a warp.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/run/WarpWide.h"

#include <cstdio>

#include "test/gpu/emulator/run/Block.h"
#include "test/gpu/emulator/run/Warp.h"

namespace ortc::emulator {
namespace {

template <class Visit> void eachActive(uint32_t mask, Visit visit) {
  for (; mask; mask &= mask - 1)
    visit(uint32_t(__builtin_ctz(mask)));
}

uint32_t *cellsOrNull(Warp &warp, uint32_t place) {
  return place == kNone ? nullptr : warp.cells<uint32_t>(place);
}

} // namespace

void shuffle(Warp &warp, const Instruction &i, uint32_t mask) {
  const uint32_t *a = warp.cells<uint32_t>(i.a), *b = warp.cells<uint32_t>(i.b),
                 *c = warp.cells<uint32_t>(i.c);
  uint32_t values[kLanes], isValid[kLanes];
  bool isGood = true;
  eachActive(mask, [&](uint32_t l) {
    const uint32_t segment = c[l] >> 8 & 31, clamp = c[l] & 31, by = b[l] & 31;
    const uint32_t most = (l & segment) | (clamp & ~segment), least = l & segment;
    uint32_t from = l;
    bool is = false;
    switch (Shuffle(i.mode)) {
    case Shuffle::Up:
      from = l - by;
      is = int32_t(from) >= int32_t(most);
      break;
    case Shuffle::Down:
      from = l + by;
      is = from <= most;
      break;
    case Shuffle::Butterfly:
      from = l ^ by;
      is = from <= most;
      break;
    case Shuffle::Index:
      from = least | (by & ~segment);
      is = from <= most;
      break;
    }
    from = is ? from : l;
    if (!(mask >> from & 1) && isGood) {
      char text[96];
      std::snprintf(text, sizeof text, "divergent shuffle: it reads lane %u, which does not take part", from);
      report(warp, i, l, Failure::LaunchFailed, text);
      isGood = false;
    }
    values[l] = a[from];
    isValid[l] = is ? ~0u : 0u;
  });
  if (!isGood)
    return;
  uint32_t *d = warp.cells<uint32_t>(i.d), *p = cellsOrNull(warp, warp.lists[i.list]);
  eachActive(mask, [&](uint32_t l) {
    d[l] = values[l];
    if (p)
      p[l] = isValid[l];
  });
}

void vote(Warp &warp, const Instruction &i, uint32_t mask) {
  const uint32_t *a = warp.cells<uint32_t>(i.a);
  uint32_t holds = 0;
  eachActive(mask, [&](uint32_t l) { holds |= (a[l] ? 1u : 0u) << l; });
  const Vote which = Vote(i.mode);
  const bool is = which == Vote::All   ? holds == mask
                  : which == Vote::Any ? holds != 0
                                       : holds == mask || holds == 0;
  uint32_t *d = warp.cells<uint32_t>(i.d);
  eachActive(mask, [&](uint32_t l) { d[l] = which == Vote::Ballot ? holds : is ? ~0u : 0u; });
}

void match(Warp &warp, const Instruction &i, uint32_t mask) {
  auto valueOf = [&](uint32_t l) {
    return i.bytes == 8 ? warp.cells<uint64_t>(i.a)[l] : warp.cells<uint32_t>(i.a)[l];
  };
  uint32_t alike[kLanes];
  eachActive(mask, [&](uint32_t l) {
    alike[l] = 0;
    eachActive(mask, [&](uint32_t other) { alike[l] |= uint32_t(valueOf(l) == valueOf(other)) << other; });
  });
  uint32_t *d = warp.cells<uint32_t>(i.d), *p = cellsOrNull(warp, warp.lists[i.list]);
  eachActive(mask, [&](uint32_t l) {
    const bool isAll = alike[l] == mask;
    d[l] = i.mode == 0 || isAll ? alike[l] : 0;
    if (p)
      p[l] = isAll ? ~0u : 0u;
  });
}

void reduce(Warp &warp, const Instruction &i, uint32_t mask) {
  const uint32_t *a = warp.cells<uint32_t>(i.a);
  uint32_t result = a[__builtin_ctz(mask)];
  eachActive(mask & (mask - 1), [&](uint32_t l) {
    const uint32_t value = a[l];
    const bool isLess = i.detail ? int32_t(value) < int32_t(result) : value < result;
    switch (Reduction(i.mode)) {
    case Reduction::Add:
      result += value;
      break;
    case Reduction::Min:
      result = isLess ? value : result;
      break;
    case Reduction::Max:
      result = isLess ? result : value;
      break;
    case Reduction::And:
      result &= value;
      break;
    case Reduction::Or:
      result |= value;
      break;
    case Reduction::Xor:
      result ^= value;
      break;
    }
  });
  uint32_t *d = warp.cells<uint32_t>(i.d);
  eachActive(mask, [&](uint32_t l) { d[l] = result; });
}

void elect(Warp &warp, const Instruction &i, uint32_t mask) {
  const uint32_t leader = uint32_t(__builtin_ctz(mask));
  uint32_t *d = cellsOrNull(warp, i.d), *p = warp.cells<uint32_t>(warp.lists[i.list]);
  eachActive(mask, [&](uint32_t l) {
    if (d)
      d[l] = leader;
    p[l] = l == leader ? ~0u : 0u;
  });
}

void synchronizeWarp(Warp &warp, const Instruction &, uint32_t) { warp.warpTime = ++warp.block->clock; }

void activeMask(Warp &warp, const Instruction &i, uint32_t mask) {
  uint32_t *d = warp.cells<uint32_t>(i.d);
  eachActive(mask, [&](uint32_t l) { d[l] = mask; });
}

void readClock(Warp &warp, const Instruction &i, uint32_t mask) {
  const uint64_t count = ++warp.block->instructionClock;
  eachActive(mask, [&](uint32_t l) {
    if (i.bytes == 8)
      warp.cells<uint64_t>(i.d)[l] = count;
    else
      warp.cells<uint32_t>(i.d)[l] = uint32_t(i.mode ? count >> 32 : count);
  });
}

void trap(Warp &warp, const Instruction &i, uint32_t mask) {
  report(warp, i, uint32_t(__builtin_ctz(mask)), Failure::LaunchFailed, "trap");
}

} // namespace ortc::emulator
