// The lanes of a warp that went different ways.
//
// Lanes at one place form a group, and the group at the lowest place runs. As compilers put a loop before
// what follows it and both sides of a branch before where they meet, that brings lanes together again. Where
// it does not, an instruction that needs other lanes makes its group wait for them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/gpu/emulator/run/Warp.h"

namespace ortc::emulator {

/// Adds lanes to the group at a place.
void insertGroup(Warp &warp, uint32_t place, uint32_t mask, bool isWaiting);
/// Takes the group out that runs next; false: every group waits.
bool takeGroup(Warp &warp, uint32_t &place, uint32_t &mask);
/// Lets waiting groups look again whether all the lanes they need are there.
void wakeGroups(Warp &warp);
/// The lowest place above `place` where lanes are; kNone: there is none.
uint32_t nextPlace(const Warp &warp, uint32_t place);

} // namespace ortc::emulator
