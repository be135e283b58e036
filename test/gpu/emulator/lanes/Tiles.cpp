// What works on tiles: cp.async, ldmatrix, stmatrix, and mma.sync on f16, bf16 and tf32.
//
// Products of small floats are exact in f32; sums are in f32, one after the other. Tensor cores round their
// sums in a way that NVIDIA does not specify, so the last bits of a product differ from a GPU's.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/lanes/Access.h"
#include "test/gpu/emulator/lanes/Floats.h"
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
    from.bytes = given == i.bytes ? given : 4; // only so much is read
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

constexpr uint32_t kRows = 16, kColumns = 8, kMostDepth = 16;

/// The two f32 values of a register of two small floats, or its one tf32 value.
template <class T> ORTC_INLINE void unpack(uint32_t cell, float *to) {
  if constexpr (std::is_same_v<T, float>) {
    *to = bitCast<float>(cell & ~0x1fffu);
  } else {
    to[0] = toFloat(T{uint16_t(cell)});
    to[1] = toFloat(T{uint16_t(cell >> 16)});
  }
}

/// m16n8k`depth`. The list: registers of the result, of A, of B, of C.
template <class T, uint32_t depth, bool isHalfSum>
void multiply(Warp &warp, const Instruction &i, uint32_t mask) {
  constexpr uint32_t pack = std::is_same_v<T, float> ? 1 : 2;
  constexpr uint32_t sums = isHalfSum ? 2 : 4, inA = depth / (2 * pack), inB = depth / (4 * pack);
  const uint32_t *places = warp.lists + i.list, *ofA = places + sums, *ofB = ofA + inA, *ofC = ofB + inB;
  float a[kRows][kMostDepth], b[kMostDepth][kColumns], d[kRows][kColumns];
  for (uint32_t r = 0; r < inA; ++r) {
    const uint32_t *cells = warp.cells<uint32_t>(ofA[r]);
    for (uint32_t l = 0; l < kLanes; ++l)
      unpack<T>(cells[l], &a[l / 4 + (r & 1) * 8][l % 4 * pack + (r >> 1) * 4 * pack]);
  }
  for (uint32_t r = 0; r < inB; ++r) {
    const uint32_t *cells = warp.cells<uint32_t>(ofB[r]);
    for (uint32_t l = 0; l < kLanes; ++l) {
      float values[2];
      unpack<T>(cells[l], values);
      for (uint32_t k = 0; k < pack; ++k)
        b[l % 4 * pack + r * 4 * pack + k][l / 4] = values[k];
    }
  }
  for (uint32_t r = 0; r < sums; ++r) {
    const uint32_t *cells = warp.cells<uint32_t>(ofC[r]);
    for (uint32_t l = 0; l < kLanes; ++l)
      if constexpr (isHalfSum)
        unpack<Half>(cells[l], &d[l / 4 + r * 8][l % 4 * 2]);
      else
        d[l / 4 + (r >> 1) * 8][l % 4 * 2 + (r & 1)] = bitCast<float>(cells[l]);
  }
  for (uint32_t row = 0; row < kRows; ++row)
    for (uint32_t k = 0; k < depth; ++k)
      for (uint32_t column = 0; column < kColumns; ++column)
        d[row][column] += a[row][k] * b[k][column];
  for (uint32_t r = 0; r < sums; ++r) {
    uint32_t *cells = warp.cells<uint32_t>(places[r]);
    for (uint32_t l = 0; l < kLanes; ++l)
      if constexpr (isHalfSum)
        cells[l] = toHalf(d[l / 4 + r * 8][l % 4 * 2]).bits |
                   uint32_t(toHalf(d[l / 4 + r * 8][l % 4 * 2 + 1]).bits) << 16;
      else
        cells[l] = bitsOf(canonical(d[l / 4 + (r >> 1) * 8][l % 4 * 2 + (r & 1)]));
  }
}

const Operation kOperations[] = {
    {"m16n8k16.row.col.f32.bf16.bf16.f32", multiply<Brain, 16, false>, 0, {4, 2, 4}},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", multiply<Brain, 8, false>, 0, {2, 1, 4}},
    {"m16n8k16.row.col.f32.f16.f16.f32", multiply<Half, 16, false>, 0, {4, 2, 4}},
    {"m16n8k8.row.col.f32.f16.f16.f32", multiply<Half, 8, false>, 0, {2, 1, 4}},
    {"m16n8k16.row.col.f16.f16.f16.f16", multiply<Half, 16, true>, 0, {4, 2, 2}},
    {"m16n8k8.row.col.f16.f16.f16.f16", multiply<Half, 8, true>, 0, {2, 1, 2}},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", multiply<float, 8, false>, 0, {4, 2, 4}},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", multiply<float, 4, false>, 0, {2, 1, 4}},
};

} // namespace

namespace ORTC_EMULATOR_ISA {
void listTiles(LaneCode &code) {
  code.products = {kOperations, sizeof kOperations / sizeof *kOperations};
  code.copyAsync = copyAsync;
  code.waitForCopies = waitForCopies;
  code.loadMatrix = loadMatrix;
  code.storeMatrix = storeMatrix;
}
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
