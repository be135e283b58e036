// Instructions that exchange values between the lanes of a warp.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/gpu/emulator/run/Program.h"

namespace ortc::emulator {

enum class Shuffle : uint8_t { Up, Down, Butterfly, Index };
enum class Vote : uint8_t { All, Any, Uniform, Ballot };
enum class Reduction : uint8_t { Add, Min, Max, And, Or, Xor };

/// d, list[0] (a predicate or kNone), a: value, b: lane, c: limits; mode: Shuffle.
void shuffle(Warp &warp, const Instruction &i, uint32_t mask);
/// d, a: predicate; mode: Vote.
void vote(Warp &warp, const Instruction &i, uint32_t mask);
/// d, list[0] (a predicate or kNone), a: value of `bytes`; mode 0: lanes with the same value, 1: whether all
/// have it.
void match(Warp &warp, const Instruction &i, uint32_t mask);
/// d, a; mode: Reduction; detail: whether numbers are signed.
void reduce(Warp &warp, const Instruction &i, uint32_t mask);
/// d (or none), list[0]: the predicate of one of the lanes.
void elect(Warp &warp, const Instruction &i, uint32_t mask);
void synchronizeWarp(Warp &warp, const Instruction &i, uint32_t mask);
/// d: the lanes that execute it.
void activeMask(Warp &warp, const Instruction &i, uint32_t mask);
/// d, of `bytes`; mode 0: counts instructions, 1: the upper half of the count.
void readClock(Warp &warp, const Instruction &i, uint32_t mask);
void trap(Warp &warp, const Instruction &i, uint32_t mask);

} // namespace ortc::emulator
