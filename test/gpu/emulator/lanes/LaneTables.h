// What a set of vector instructions offers: tables of operations, accesses to memory, the interpreter's loop.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/gpu/emulator/run/Program.h"

namespace ortc::emulator {

enum class AtomicOperation : uint8_t { Add, Min, Max, Inc, Dec, And, Or, Xor, Exchange, CompareExchange };

/// Everything that is compiled for a set of vector instructions.
struct LaneCode {
  /// Arithmetic, by names that are unique.
  OperationList lists[6];
  /// mma.sync: the operands are numbers of registers of A, B and C. mode: which of kTensorCores.
  OperationList products;
  /// wgmma; mode of a product: 0 bf16, 1 f16.
  Handler beginProduct, orderProducts, fenceProxy;
  /// mbarrier.
  Handler initializeBarrier, invalidateBarrier, arriveAtBarrier, testBarrier;
  /// By log2 of the bytes of an element.
  Handler load[4], store[4];
  Handler copyAsync, waitForCopies, loadMatrix, storeMatrix;
  /// mode: an AtomicOperation; detail: whether numbers are signed.
  Handler atomic32, atomic64;
  /// Runs `inner` with the rounding mode `mode`: 0 rn, 1 rz, 2 rm, 3 rp.
  Handler rounded;
  /// Runs a warp until all of its lanes wait at a barrier or have left, or something fails; or for a while.
  void (*runWarp)(Warp &warp);
  /// The same, and its counter hears of each instruction.
  void (*runCountedWarp)(Warp &warp);
};

namespace portable {
LaneCode makeLaneCode();
}
namespace avx2 {
LaneCode makeLaneCode();
}

/// The best that this processor can run.
const LaneCode &laneCode();

} // namespace ortc::emulator
