// The threads of a GPU's blocks as fibres of this thread.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/gpu/fibres/MatrixUnits.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace ortc::fibres {

/// In which lanes run between two meetings. Ahead: the first wavefront that can go on does so alone, as far as it can
/// without the others; Behind: the last one.
enum class Order { Forward, Reverse, Shuffled, Ahead, Behind };

struct Grid {
  int64_t blocks = 1, threads = 1;
  int64_t wavefront = 64; ///< lanes that permute among each other
  Order order = Order::Forward;
};

/// What lanes that take no part in a permutation give.
inline constexpr uint32_t kNoLane = 0xdeadbeef;

/// Calls `body` for every thread of every block, one block after the other, and `begin` before each block. Returns what
/// went wrong, or "". One call at a time in the process.
std::string run(const Grid &grid, const std::function<void()> &begin, const std::function<void()> &body);

// What a body calls; `place` numbers the calls in the code. On a place, all that meet there must agree.

uint32_t thread(); ///< within the block
uint32_t block();
/// All threads of the block meet.
void meetInBlock(uint32_t place);
/// Lanes of the wavefront meet.
void meetInWavefront(uint32_t place);
/// The value of lane `address` / 4 of the wavefront.
uint32_t permute(uint32_t address, uint32_t value, uint32_t place);
/// The lane's sums of a product of matrices, whose lanes meet.
void multiplyInWavefront(const MatrixUnit &unit, const MatrixOperands &operands, uint32_t place);
/// `base` and how many lanes before this one are in the mask: of the lower 32, of the upper ones.
uint32_t countLower(uint32_t mask, uint32_t base);
uint32_t countUpper(uint32_t mask, uint32_t base);

} // namespace ortc::fibres
