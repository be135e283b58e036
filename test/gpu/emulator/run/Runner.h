// Runs the blocks of launches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <string>

#include "test/gpu/emulator/run/Block.h"

namespace ortc::emulator {

/// In which order blocks, and the warps of a block, get their turn.
struct Order {
  enum class Kind : uint8_t { Forward, Reverse, Random } kind = Kind::Forward;
  uint64_t seed = 0;
};

/// The k-th of `sample` blocks out of `count`: one of each stretch of the grid, at places that do not repeat, so that
/// rows and columns of tiles all come.
uint64_t sampledBlock(uint64_t k, uint64_t sample, uint64_t count);

class Runner {
public:
  /// With so many threads of the host, which it starts when they are needed.
  explicit Runner(uint32_t threads);
  ~Runner();
  /// Returns when every block has ended or one has failed: then `launch` says so.
  void run(Launch &launch, const Order &order);

private:
  struct Pool;
  std::unique_ptr<Pool> pool;
};

} // namespace ortc::emulator
