// What is known about device memory: which bytes exist and were written, and which block touched them.
//
// Device addresses are not host addresses: a host that follows one faults. Three areas belong to the range of
// addresses: the data, a state for every byte, and cells that say which blocks of the running launch touched
// the memory. A cell stands for as many bytes as the smallest element that the kernel accesses. Pages that
// nobody touches cost nothing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

namespace ortc::emulator {

/// State of a byte.
inline constexpr uint8_t kExists = 1, kWritten = 2, kWritable = 4, kPending = 8;

/// A cell: number of the launch, kind, owner. Cells of other launches count for nothing.
using TouchCell = uint32_t;
inline constexpr uint32_t kOwnerBits = 20, kKindBits = 3, kLaunchShift = kOwnerBits + kKindBits;
/// Launches have numbers from 1; cells are cleared when they run out.
inline constexpr uint32_t kLastLaunch = (1u << (32 - kLaunchShift)) - 1;

/// How a block touches memory, and the kinds of cells with several owners.
enum class Touch : uint32_t { Read = 1, Atomic = 2, Write = 3, ManyReads = 4, ManyAtomics = 5 };

inline constexpr TouchCell makeCell(uint32_t launch, Touch kind, uint64_t owner) {
  return launch << kLaunchShift | uint32_t(kind) << kOwnerBits | uint32_t(owner & ((1u << kOwnerBits) - 1));
}

struct MemoryView {
  uint64_t base = 0, bytes = 0;
  std::byte *data = nullptr;
  uint8_t *state = nullptr;
  TouchCell *cells = nullptr;
  bool contains(uint64_t address, uint64_t size) const {
    return address >= base && size <= bytes && address - base <= bytes - size;
  }
};

/// Notes that `owner` touches a cell; false when another block of the launch did so in a way that does not go
/// together with it: a write and anything else, unless both are atomic. Exact whichever threads run the
/// blocks.
bool touchCell(TouchCell *cell, uint32_t launch, Touch touch, uint64_t owner, bool isParallel);

} // namespace ortc::emulator
