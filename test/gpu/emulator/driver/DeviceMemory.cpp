// Allocations in a range of addresses that the host cannot follow.
//
// An allocation goes behind the last one, with a gap that no kernel may touch, and addresses are used again
// only when the range is at its end: accesses to what was released are found for long.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/driver/DeviceMemory.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace ortc::emulator {
namespace {

constexpr uint64_t kAlignment = 512, kGap = 512, kPage = 4096;
/// Where device memory is, if the host has nothing there: addresses are then the same in every run.
constexpr uint64_t kUsualBase = uint64_t(0x2000) << 32;
/// New memory is filled with NaNs up to this size; more would cost time and pages.
constexpr uint64_t kMostPoison = uint64_t(64) << 20;

uint64_t roundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

void *reserve(uint64_t bytes, int protection, void *where = nullptr) {
  void *at = mmap(where, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

} // namespace

bool DeviceMemory::open(uint64_t newLimit) {
  limit = newLimit;
  usedBytes = peakBytes = 0;
  // Twice as many addresses as bytes, and room for the gaps of many small allocations.
  memory.bytes = roundUp(2 * limit + (uint64_t(256) << 20), kPage);
  void *base = reserve(memory.bytes, PROT_NONE, reinterpret_cast<void *>(kUsualBase));
  memory.base = reinterpret_cast<uint64_t>(base);
  memory.data = static_cast<std::byte *>(reserve(memory.bytes, PROT_READ | PROT_WRITE));
  memory.state = static_cast<uint8_t *>(reserve(memory.bytes, PROT_READ | PROT_WRITE));
  memory.cells = static_cast<TouchCell *>(reserve(memory.bytes * sizeof(TouchCell), PROT_READ | PROT_WRITE));
  next = highest = memory.base + kGap;
  if (base && memory.data && memory.state && memory.cells)
    return true;
  close();
  return false;
}

void DeviceMemory::close() {
  auto release = [&](void *at, uint64_t bytes) {
    if (at)
      munmap(at, bytes);
  };
  release(reinterpret_cast<void *>(memory.base), memory.bytes);
  release(memory.data, memory.bytes);
  release(memory.state, memory.bytes);
  release(memory.cells, memory.bytes * sizeof(TouchCell));
  memory = {};
  sizes.clear();
}

/// A free range with a gap behind it; 0: there is none.
uint64_t DeviceMemory::place(uint64_t bytes) {
  const uint64_t end = memory.base + memory.bytes, needed = bytes + kGap;
  if (next <= end && needed <= end - next)
    return next;
  uint64_t from = memory.base + kGap;
  for (const auto &[address, size] : sizes) {
    if (address - from >= needed)
      return from;
    from = address + roundUp(size, kAlignment) + kGap;
  }
  return from <= end && needed <= end - from ? from : 0;
}

uint64_t DeviceMemory::allocate(uint64_t bytes) {
  const uint64_t rounded = roundUp(bytes, kAlignment);
  if (bytes > limit || rounded > limit - std::min(limit, usedBytes))
    return 0;
  uint64_t address = place(rounded);
  if (!address)
    return 0;
  sizes[address] = bytes;
  usedBytes += rounded;
  peakBytes = std::max(peakBytes, usedBytes);
  next = address + rounded + kGap;
  highest = std::max(highest, next);
  const uint64_t at = address - memory.base;
  std::memset(memory.state + at, kExists | kWritable, bytes);
  if (bytes <= kMostPoison)
    std::memset(memory.data + at, 0xff, bytes);
  return address;
}

bool DeviceMemory::release(uint64_t address) {
  auto found = sizes.find(address);
  if (found == sizes.end())
    return false;
  const uint64_t at = address - memory.base, bytes = found->second;
  std::memset(memory.state + at, 0, bytes);
  const uint64_t first = roundUp(at, kPage), end = (at + bytes) / kPage * kPage;
  if (first < end)
    madvise(memory.data + first, end - first, MADV_DONTNEED);
  usedBytes -= roundUp(bytes, kAlignment);
  sizes.erase(found);
  return true;
}

std::byte *DeviceMemory::find(uint64_t address, uint64_t bytes) const {
  auto after = sizes.upper_bound(address);
  if (after == sizes.begin())
    return nullptr;
  const auto &[start, size] = *std::prev(after);
  if (address - start > size || bytes > size - (address - start))
    return nullptr;
  return memory.data + (address - memory.base);
}

bool DeviceMemory::isWritten(uint64_t address, uint64_t bytes) const {
  const uint8_t *state = memory.state + (address - memory.base);
  return std::all_of(state, state + bytes, [](uint8_t s) { return s & kWritten; });
}

void DeviceMemory::markWritten(uint64_t address, uint64_t bytes) {
  std::memset(memory.state + (address - memory.base), kExists | kWritten | kWritable, bytes);
}

void DeviceMemory::markConstant(uint64_t address, uint64_t bytes) {
  std::memset(memory.state + (address - memory.base), kExists | kWritten, bytes);
}

void DeviceMemory::clearCells() {
  madvise(memory.cells, roundUp((highest - memory.base) * sizeof(TouchCell), kPage), MADV_DONTNEED);
}

} // namespace ortc::emulator
