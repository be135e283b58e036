// What the warps of a block share, and how they report what is wrong.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "test/gpu/emulator/run/Program.h"
#include "test/gpu/emulator/run/Shadow.h"

namespace ortc::emulator {

struct LaunchCounts;
struct Warp;

/// How a launch ends that does not end well; numbers of the driver's interface.
enum class Failure : int { None = 0, IllegalAddress = 700, Misaligned = 716, LaunchFailed = 719 };

/// One launch: what its blocks have in common.
struct Launch {
  const Kernel *kernel = nullptr;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t sharedBytes = 0; ///< static and dynamic
  uint32_t dynamicBytes = 0;
  std::vector<std::byte> params;
  MemoryView memory;
  bool isChecked = true;
  /// Whether several threads of the host run blocks.
  bool isParallel = false;
  /// 1 to kLastLaunch: tells this launch from others in cells of memory.
  uint32_t number = 1;
  uint64_t gridId = 0;
  /// Of how many blocks at most, spread over the grid, are run; 0: all.
  uint64_t sample = 0;
  /// Where to count; null: nowhere.
  LaunchCounts *counts = nullptr;

  std::atomic<bool> isFailed{false};
  std::mutex mutex;
  Failure failure = Failure::None;
  std::string message;
  std::atomic<uint64_t> laneInstructions{0};

  uint32_t threads() const { return block[0] * block[1] * block[2]; }
  uint64_t blocks() const { return uint64_t(grid[0]) * grid[1] * grid[2]; }
};

/// An access to shared memory: time of the block's clock, atomic, by several warps, by several lanes, warp,
/// lane.
using SharedAccess = uint32_t;
inline constexpr uint32_t kTimeShift = 13, kLastTime = (1u << (32 - kTimeShift)) - 1;
inline constexpr uint32_t kAtomicAccess = 1u << 12, kManyWarps = 1u << 11, kManyLanes = 1u << 10;
inline constexpr uint32_t kWarpShift = 5, kThreadMask = 1023;

struct ProxyFence {
  uint32_t time, lanes;
};

/// A barrier in shared memory.
struct Mbarrier {
  uint32_t at, expected, pending;
  uint64_t phase;
  uint32_t completedAt; ///< the block's clock when the last phase ended
};

struct Block {
  Launch *launch = nullptr;
  /// As the launch has it.
  MemoryView memory;
  uint64_t number = 0;
  uint32_t index[3] = {0, 0, 0};
  std::byte *shared = nullptr;
  uint8_t *sharedState = nullptr;
  /// The last write and the last read of each of the kernel's granules.
  SharedAccess *writes = nullptr, *reads = nullptr;
  /// Of each warp: when its lanes made writes visible to the asynchronous proxy, in order.
  std::vector<ProxyFence> *fences = nullptr;
  std::vector<Mbarrier> *mbarriers = nullptr;
  /// Synchronisations so far.
  uint32_t clock = 1;
  uint64_t instructionClock = 0;
  uint32_t sharedBytes = 0, localBytes = 0, paramBytes = 0;
  std::byte *params = nullptr;
  uint8_t globalGranule = 2, sharedGranule = 2;
  /// Bits that the state of a byte needs to be read.
  uint8_t readable = kExists;
  bool isChecked = false, isFailed = false;
};

/// Ends the launch with a message about a lane; the first one counts.
void report(Warp &warp, const Instruction &instruction, uint32_t lane, Failure failure, const char *what);
/// Says what is wrong with an access that was found to be wrong; with one that is a race.
void reportAccess(Warp &warp, const Instruction &instruction, uint32_t lane, Space space, uint64_t address,
                  uint32_t bytes, Touch touch);
void reportRace(Warp &warp, const Instruction &instruction, uint32_t lane, Space space, uint64_t address,
                uint32_t bytes, Touch touch);

} // namespace ortc::emulator
