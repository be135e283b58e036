// What is executed: a warp and the block it belongs to.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include "test/gpu/emulator/run/Program.h"

namespace ortc::emulator {

struct Block;
class Counter;
class PendingCopies;
struct PendingProducts;

/// Lanes at one place of the code.
struct Group {
  uint32_t place;
  uint32_t mask;
  /// For the other lanes that the instruction needs.
  bool isWaiting;
};

enum class WarpState : uint8_t { Ready, AtBarrier, Arrived, Done, Failed };

struct Warp {
  std::byte *registers = nullptr;
  Block *block = nullptr;
  const Kernel *kernel = nullptr;
  const Instruction *code = nullptr;
  const uint32_t *lists = nullptr;
  std::byte *local = nullptr; ///< of lane 0; the others follow
  PendingCopies *copies = nullptr;
  PendingProducts *products = nullptr;
  Counter *counter = nullptr;
  uint32_t id = 0;
  uint32_t alive = 0;
  WarpState state = WarpState::Done;
  /// Sorted by place; none of them empty.
  Group groups[kLanes];
  uint32_t groupCount = 0;
  /// At a barrier: which, the threads it waits for (0: all) and the statement.
  uint32_t barrier = 0, barrierThreads = 0, barrierStatement = 0;
  /// Times of the block's clock: of the last barrier, of the last synchronisation of the warp.
  uint32_t blockTime = 0, warpTime = 0;
  uint32_t carry[kLanes] = {};
  /// It asked for what has not come yet.
  bool isPolling = false;
  const Instruction *polled = nullptr;
  uint64_t laneInstructions = 0;

  template <class Cell> Cell *cells(uint32_t place) { return reinterpret_cast<Cell *>(registers + place); }
};

} // namespace ortc::emulator
