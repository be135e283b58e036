// Counts what the warps of a thread of the host execute: instructions, sectors of global memory, wavefronts of
// shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "test/gpu/emulator/count/CountPlan.h"
#include "test/gpu/emulator/count/TouchedBytes.h"

namespace ortc::emulator {

struct Instruction;
struct Launch;
struct Warp;

/// Of one statement; bytes and sectors are of global memory, wavefronts of shared memory.
struct Count {
  uint64_t warps = 0, lanes = 0;
  /// Bytes that lanes access; sectors of 32 bytes that each instruction touches; as many as would hold its
  /// distinct bytes.
  uint64_t bytes = 0, sectors = 0, idealSectors = 0;
  /// Passes that banks need; as many as there would be without bank conflicts.
  uint64_t wavefronts = 0, idealWavefronts = 0;

  void add(const Count &other);
};

/// All blocks of a launch together. Guarded by the launch's mutex.
struct LaunchCounts {
  std::vector<Count> statements;
  uint64_t blocks = 0;
  /// Distinct bytes that each block reads and writes, summed up; and of all blocks together.
  uint64_t blockReads = 0, blockWrites = 0;
  TouchedBytes read, written;
};

class Counter {
public:
  void begin(Launch &launch);
  /// Before an instruction is executed by these lanes, of which there may be none.
  void note(Warp &warp, const Instruction &i, uint32_t active);
  void endBlock();
  /// Adds everything to the launch.
  void end();

private:
  void noteAccess(Warp &warp, const Instruction &i, AccessKind kind, uint32_t active, Count &count);
  void noteGlobal(const uint64_t *address, const uint32_t *bytes, uint32_t mask, AccessKind kind,
                  Count &count);

  Launch *launch = nullptr;
  const CountPlan *plan = nullptr;
  std::vector<Count> statements;
  uint64_t blocks = 0, blockReads = 0, blockWrites = 0;
  TouchedBytes read, written;
};

} // namespace ortc::emulator
