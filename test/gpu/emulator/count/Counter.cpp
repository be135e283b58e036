// Counts instructions and accesses.
//
// Banks: shared memory has 32, of 4 bytes. Lanes that access one word of a bank share it; different words of a
// bank take a pass each. Accesses of 8 bytes go by halves of a warp, of 16 bytes by quarters; loads where each
// lane has the address of its neighbour (n ^ 1, or n ^ 2 for all) go by twice as many lanes, as NVIDIA says for
// compute capability 7.0 and 7.5 (forums.developer.nvidia.com/t/77228). A matrix of ldmatrix and stmatrix is a
// pass of eight rows of 16 bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/count/Counter.h"

#include <algorithm>

#include "test/gpu/emulator/run/Block.h"
#include "test/gpu/emulator/run/Warp.h"

namespace ortc::emulator {
namespace {

constexpr uint32_t kBanks = 32, kSector = 32;

template <class Visit> void eachActive(uint32_t mask, Visit visit) {
  for (; mask; mask &= mask - 1)
    visit(uint32_t(__builtin_ctz(mask)));
}

/// Passes for these lanes at once: the most different words of a bank.
uint32_t passes(const uint64_t *address, uint32_t mask, uint32_t bytes) {
  uint64_t words[4 * kLanes];
  uint32_t count = 0, most = 0, ofBank[kBanks] = {};
  eachActive(mask, [&](uint32_t l) {
    for (uint32_t k = 0; k < std::max(bytes / 4, 1u); ++k)
      words[count++] = address[l] / 4 + k;
  });
  std::sort(words, words + count);
  for (uint32_t k = 0; k < count; ++k)
    if (k == 0 || words[k] != words[k - 1])
      most = std::max(most, ++ofBank[words[k] % kBanks]);
  return most;
}

/// Whether every lane has the address of its neighbour, where that takes part.
bool isPaired(const uint64_t *address, uint32_t mask, uint32_t distance) {
  bool is = true;
  eachActive(mask, [&](uint32_t l) {
    const uint32_t other = l ^ distance;
    is &= !(mask >> other & 1) || address[other] == address[l];
  });
  return is;
}

void noteShared(const uint64_t *address, uint32_t mask, uint32_t bytes, bool isLoad, Count &count) {
  uint32_t atOnce = bytes <= 4 ? kLanes : kLanes * 4 / bytes;
  if (isLoad && bytes > 4 && (isPaired(address, mask, 1) || isPaired(address, mask, 2)))
    atOnce *= 2;
  for (uint32_t first = 0; first < kLanes; first += atOnce) {
    const uint32_t lanes = mask & (atOnce == kLanes ? kAllLanes : ((1u << atOnce) - 1) << first);
    count.wavefronts += lanes ? passes(address, lanes, bytes) : 0;
    count.idealWavefronts += lanes != 0;
  }
}

/// Addresses of the lanes: register `place` plus an offset.
void fillAddresses(Warp &warp, uint32_t place, bool isWide, int64_t offset, uint64_t *address) {
  for (uint32_t l = 0; l < kLanes; ++l)
    address[l] = place == kNone ? uint64_t(offset)
                 : isWide       ? warp.cells<uint64_t>(place)[l] + uint64_t(offset)
                                : uint32_t(warp.cells<uint32_t>(place)[l] + uint32_t(offset));
}

} // namespace

void Count::add(const Count &other) {
  warps += other.warps;
  lanes += other.lanes;
  bytes += other.bytes;
  sectors += other.sectors;
  idealSectors += other.idealSectors;
  wavefronts += other.wavefronts;
  idealWavefronts += other.idealWavefronts;
}

void Counter::begin(Launch &newLaunch) {
  launch = &newLaunch;
  plan = launch->kernel->plan.get();
  statements.assign(launch->kernel->statements.size(), Count());
  blocks = blockReads = blockWrites = 0;
  read.open(launch->memory.bytes);
  written.open(launch->memory.bytes);
}

void Counter::note(Warp &warp, const Instruction &i, uint32_t active) {
  const CountPlan::Place &place = plan->places[size_t(&i - warp.code)];
  Count &count = statements[i.statement];
  if (place.isFirst) {
    ++count.warps;
    count.lanes += uint32_t(__builtin_popcount(active));
  }
  if (place.access != AccessKind::None && active)
    noteAccess(warp, i, place.access, active, count);
}

void Counter::noteAccess(Warp &warp, const Instruction &i, AccessKind kind, uint32_t active, Count &count) {
  uint64_t address[kLanes];
  uint32_t bytes[kLanes];
  fillAddresses(warp, i.a, i.isWide, i.offset, address);
  if (kind == AccessKind::Matrix) {
    for (uint32_t m = 0; m < i.count; ++m) {
      count.wavefronts += passes(address, 0xffu << 8 * m, 16);
      ++count.idealWavefronts;
    }
    return;
  }
  if (kind == AccessKind::Copy) {
    noteShared(address, active, i.bytes, false, count);
    const int64_t offset = int64_t(warp.lists[i.list] | uint64_t(warp.lists[i.list + 1]) << 32);
    fillAddresses(warp, i.b, true, offset, address);
    uint32_t mask = 0;
    eachActive(active, [&](uint32_t l) {
      bytes[l] = i.c == kNone ? i.bytes : std::min<uint32_t>(warp.cells<uint32_t>(i.c)[l], i.bytes);
      mask |= bytes[l] ? 1u << l : 0u;
    });
    return noteGlobal(address, bytes, mask, kind, count);
  }
  const uint32_t size = uint32_t(i.bytes) * i.count;
  uint32_t ofGlobal = i.space == Space::Global ? active : 0, ofShared = i.space == Space::Shared ? active : 0;
  if (i.space == Space::Generic)
    eachActive(active, [&](uint32_t l) {
      if (address[l] < kSharedBase)
        ofGlobal |= 1u << l;
      else if (address[l] < kLocalBase)
        ofShared |= 1u << l;
    });
  if (ofShared)
    noteShared(address, ofShared, size, kind == AccessKind::Load, count);
  std::fill_n(bytes, kLanes, size);
  if (ofGlobal)
    noteGlobal(address, bytes, ofGlobal, kind, count);
}

/// Accesses are aligned, so each of them is in one sector.
void Counter::noteGlobal(const uint64_t *address, const uint32_t *bytes, uint32_t mask, AccessKind kind,
                         Count &count) {
  uint64_t starts[kLanes];
  uint32_t lanes = 0, distinctBytes = 0;
  const MemoryView &memory = launch->memory;
  eachActive(mask, [&](uint32_t l) {
    count.bytes += bytes[l];
    if (!memory.contains(address[l], bytes[l]))
      return;
    const uint64_t at = address[l] - memory.base;
    if (kind != AccessKind::Store)
      read.add(at, bytes[l]);
    if (kind == AccessKind::Store || kind == AccessKind::Atomic)
      written.add(at, bytes[l]);
    starts[lanes++] = at << 8 | bytes[l];
  });
  if (!std::is_sorted(starts, starts + lanes))
    std::sort(starts, starts + lanes);
  uint32_t sectors = 0;
  for (uint32_t k = 0; k < lanes; ++k) {
    distinctBytes += k == 0 || starts[k] != starts[k - 1] ? uint32_t(starts[k] & 0xff) : 0;
    sectors += k == 0 || (starts[k] >> 8) / kSector != (starts[k - 1] >> 8) / kSector;
  }
  count.sectors += sectors;
  count.idealSectors += (distinctBytes + kSector - 1) / kSector;
}

void Counter::endBlock() {
  ++blocks;
  blockReads += read.count();
  blockWrites += written.count();
  std::lock_guard<std::mutex> lock(launch->mutex);
  read.moveTo(launch->counts->read);
  written.moveTo(launch->counts->written);
}

void Counter::end() {
  std::lock_guard<std::mutex> lock(launch->mutex);
  LaunchCounts &all = *launch->counts;
  for (size_t k = 0; k < statements.size(); ++k)
    all.statements[k].add(statements[k]);
  all.blocks += blocks;
  all.blockReads += blockReads;
  all.blockWrites += blockWrites;
}

} // namespace ortc::emulator
