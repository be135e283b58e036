// Runs blocks one after the other, with memory that it keeps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "test/gpu/emulator/count/Counter.h"
#include "test/gpu/emulator/run/Block.h"
#include "test/gpu/emulator/run/PendingCopies.h"
#include "test/gpu/emulator/run/PendingProducts.h"
#include "test/gpu/emulator/run/Runner.h"
#include "test/gpu/emulator/run/Warp.h"

namespace ortc::emulator {

class BlockRunner {
public:
  /// Prepares for the blocks of a launch.
  void begin(Launch &launch, const Order &order);
  /// Runs one block; what goes wrong is in the launch.
  void run(uint64_t number);
  /// Adds what was counted to the launch.
  void end();

private:
  /// One of the named barriers.
  struct Barrier {
    uint32_t arrived = 0, expected = 0;
    std::vector<uint32_t> waiting;
  };

  void fillRegisters(Warp &warp);
  void fillSpecial(Warp &warp, const Kernel::Special &special);
  /// A special register of a lane, and one that all threads of the block have in common.
  uint64_t valueOf(SpecialRegister which, const Warp &warp, uint32_t lane) const;
  uint64_t valueOf(SpecialRegister which) const;
  void startBlock(uint64_t number);
  void arrive(Warp &warp);
  void release(Barrier &barrier);
  void reportDeadlock();
  void reportPolling();

  Launch *launch = nullptr;
  const Kernel *kernel = nullptr;
  Block block;
  std::vector<Warp> warps;
  std::vector<PendingCopies> copies;
  std::vector<PendingProducts> products;
  std::vector<std::vector<ProxyFence>> fences;
  std::vector<Mbarrier> mbarriers;
  Counter counter;
  std::vector<std::byte> registers, local, shared;
  std::vector<uint8_t> sharedState;
  std::vector<SharedAccess> writes, reads;
  std::vector<uint32_t> warpOrder;
  Barrier barriers[16];
};

/// The numbers 0 to count - 1 in an order.
std::vector<uint32_t> makeOrder(uint32_t count, const Order &order, uint64_t salt);

} // namespace ortc::emulator
