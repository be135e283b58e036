// Which blocks touched a cell of memory.
//
// A cell moves one way during a launch: untouched, one reader, one writer or several readers, and so on. Two
// blocks that may not both be there are found whichever came first.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/run/Shadow.h"

namespace ortc::emulator {
namespace {

/// What a cell becomes; 0: the touch is a race.
TouchCell advance(TouchCell cell, uint32_t launch, Touch touch, uint64_t owner) {
  const TouchCell own = makeCell(launch, touch, owner);
  if (cell >> kLaunchShift != launch)
    return own;
  const Touch kind = Touch(cell >> kOwnerBits & ((1u << kKindBits) - 1));
  const Touch many = touch == Touch::Read ? Touch::ManyReads : Touch::ManyAtomics;
  if (kind == Touch::ManyReads || kind == Touch::ManyAtomics)
    return touch != Touch::Write && kind == many ? cell : 0;
  if (cell == makeCell(launch, kind, owner))
    // A plain access beside an atomic one is as exclusive as a write.
    return kind == touch ? cell : makeCell(launch, Touch::Write, owner);
  return kind == touch && touch != Touch::Write ? makeCell(launch, many, 0) : 0;
}

} // namespace

bool touchCell(TouchCell *cell, uint32_t launch, Touch touch, uint64_t owner, bool isParallel) {
  TouchCell seen = __atomic_load_n(cell, __ATOMIC_ACQUIRE);
  while (true) {
    TouchCell next = advance(seen, launch, touch, owner);
    if (!next)
      return false;
    if (next == seen)
      return true;
    if (!isParallel) {
      *cell = next;
      return true;
    }
    if (__atomic_compare_exchange_n(cell, &seen, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      return true;
  }
}

} // namespace ortc::emulator
