// Moves tiles: cp.async, ldmatrix, stmatrix.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/lanes/Access.h"
#include "test/gpu/emulator/lanes/Lists.h"
#include "test/gpu/emulator/run/PendingCopies.h"

namespace ortc::emulator {
namespace {

/// An instruction that accesses another address than `i`: register `place` of 8 bytes plus what the list
/// says.
Instruction withSource(Warp &warp, const Instruction &i) {
  Instruction source = i;
  source.a = i.b;
  source.isWide = true;
  source.space = Space::Global;
  source.offset = int64_t(warp.lists[i.list] | uint64_t(warp.lists[i.list + 1]) << 32);
  return source;
}

/// cp.async: a, offset: the destination; b, list: the source; c: bytes that the source has, the others become
/// zero; bytes: of the copy.
void copyAsync(Warp &warp, const Instruction &i, uint32_t mask) {
  Block &block = *warp.block;
  Addresses to(warp, i, mask, i.bytes);
  Instruction source = withSource(warp, i);
  Addresses from(warp, source, mask, i.bytes);
  to.eachChecked<Touch::Write>(warp, i, [&](uint32_t l, std::byte *shared) {
    const uint32_t given = i.c == kNone ? i.bytes : warp.cells<uint32_t>(i.c)[l];
    if (given > i.bytes)
      return report(warp, i, l, Failure::LaunchFailed, "cp.async reads more than it writes");
    std::byte data[16] = {};
    if (given && (from.address[l] & (i.bytes - 1)))
      return reportAccess(warp, source, l, Space::Global, from.address[l], i.bytes, Touch::Read);
    from.bytes = given == i.bytes ? given : given & 1 ? 1 : given & 2 ? 2 : 4; // only so much is read
    for (uint32_t k = 0; k < given; k += from.bytes) {
      const std::byte *global = from.checkLane<Touch::Read>(warp, source, l, l);
      if (!global)
        return;
      std::memcpy(data + k, global, from.bytes);
      from.address[l] += from.bytes;
    }
    const uint64_t offset = uint64_t(shared - block.shared);
    std::memset(shared, 0xff, i.bytes);
    if (block.isChecked)
      std::memset(block.sharedState + offset, kExists | kWritable | kPending, i.bytes);
    warp.copies->add(l, uint32_t(offset), i.bytes, data);
  });
}

/// mode 1: closes a group; 0: waits for all groups but the last `detail`; 2: for everything.
void waitForCopies(Warp &warp, const Instruction &i, uint32_t mask) {
  if (i.mode == 1)
    return warp.copies->commit(mask);
  Block &block = *warp.block;
  const uint32_t granule = block.sharedGranule;
  uint32_t count;
  const PendingCopy *copy = warp.copies->take(mask, i.mode == 2 ? kNone : i.detail, count);
  for (; count > 0; --count, ++copy) {
    if (block.isChecked) {
      std::memset(block.sharedState + copy->shared, kExists | kWritten | kWritable, copy->bytes);
      if (touchShared<Touch::Write>(warp, copy->shared >> granule, copy->bytes >> granule,
                                    warp.id << kWarpShift | copy->lane, 31) != kNone)
        return reportRace(warp, i, copy->lane, Space::Shared, copy->shared, copy->bytes, Touch::Write);
    }
    std::memcpy(block.shared + copy->shared, copy->data, copy->bytes);
  }
}

/// ldmatrix: `count` matrices of 8 rows of 16 bytes, whose addresses are in lanes 8m to 8m+7. mode 1:
/// transposed.
void loadMatrix(Warp &warp, const Instruction &i, uint32_t mask) {
  Addresses from(warp, i, mask, 16);
  uint32_t result[4][kLanes] = {};
  for (uint32_t m = 0; m < i.count; ++m)
    for (uint32_t row = 0; row < 8; ++row) {
      const std::byte *data = from.checkLane<Touch::Read>(warp, i, 8 * m + row, (8 * m + row) | kManyLanes);
      if (!data)
        return;
      uint16_t elements[8];
      std::memcpy(elements, data, sizeof elements);
      for (uint32_t column = 0; column < 8; ++column) {
        uint32_t r = i.mode ? column : row, c = i.mode ? row : column;
        result[m][4 * r + c / 2] |= uint32_t(elements[column]) << (16 * (c & 1));
      }
    }
  for (uint32_t m = 0; m < i.count; ++m)
    std::memcpy(warp.cells<uint32_t>(warp.lists[i.list + m]), result[m], sizeof result[m]);
}

void storeMatrix(Warp &warp, const Instruction &i, uint32_t mask) {
  Addresses to(warp, i, mask, 16);
  for (uint32_t m = 0; m < i.count; ++m) {
    const uint32_t *cells = warp.cells<uint32_t>(warp.lists[i.list + m]);
    for (uint32_t row = 0; row < 8; ++row) {
      uint16_t elements[8];
      for (uint32_t column = 0; column < 8; ++column) {
        uint32_t r = i.mode ? column : row, c = i.mode ? row : column;
        elements[column] = uint16_t(cells[4 * r + c / 2] >> (16 * (c & 1)));
      }
      std::byte *data = to.checkLane<Touch::Write>(warp, i, 8 * m + row, 8 * m + row);
      if (!data)
        return;
      std::memcpy(data, elements, sizeof elements);
    }
  }
}

} // namespace

namespace ORTC_EMULATOR_ISA {
void listTiles(LaneCode &code) {
  code.copyAsync = copyAsync;
  code.waitForCopies = waitForCopies;
  code.loadMatrix = loadMatrix;
  code.storeMatrix = storeMatrix;
}
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
