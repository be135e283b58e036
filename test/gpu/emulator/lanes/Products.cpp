// mma.sync on f16, bf16 and tf32, to the bit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/lanes/Lists.h"
#include "test/gpu/emulator/lanes/TensorSums.h"

namespace ortc::emulator {
namespace {

template <class T, uint32_t depth, bool isHalfSum, uint8_t core>
void multiplyOn(Warp &warp, const Instruction &i) {
  constexpr uint32_t sums = isHalfSum ? 2 : 4, inA = depth * sizeof(RawOf<T>) / 8, inB = inA / 2;
  const uint32_t *places = warp.lists + i.list, *ofA = places + sums, *ofB = ofA + inA, *ofC = ofB + inB;
  Factors<T, depth> factors;
  alignas(32) float d[kRows][kColumns];
  // Four cells of a register hold consecutive elements of a row of A or of a column of B.
  constexpr uint32_t run = 16 / sizeof(RawOf<T>);
  for (uint32_t r = 0; r < inA; ++r)
    for (uint32_t g = 0; g < 8; ++g)
      std::memcpy(&factors.rawA[g + (r & 1) * 8][(r >> 1) * run], warp.cells<uint32_t>(ofA[r]) + 4 * g, 16);
  for (uint32_t r = 0; r < inB; ++r)
    for (uint32_t g = 0; g < 8; ++g)
      std::memcpy(&factors.rawB[g][r * run], warp.cells<uint32_t>(ofB[r]) + 4 * g, 16);
  factors.decodeA();
  factors.decodeB();
  for (uint32_t r = 0; r < sums; ++r) {
    const uint32_t *cells = warp.cells<uint32_t>(ofC[r]);
    for (uint32_t l = 0; l < kLanes; ++l)
      if constexpr (isHalfSum) {
        d[l / 4 + r * 8][l % 4 * 2] = toFloat(Half{uint16_t(cells[l])});
        d[l / 4 + r * 8][l % 4 * 2 + 1] = toFloat(Half{uint16_t(cells[l] >> 16)});
      } else {
        d[l / 4 + (r >> 1) * 8][l % 4 * 2 + (r & 1)] = bitCast<float>(cells[l]);
      }
  }
  addProducts<T, depth, isHalfSum, core>(factors, d);
  for (uint32_t r = 0; r < sums; ++r) {
    uint32_t *cells = warp.cells<uint32_t>(places[r]);
    for (uint32_t l = 0; l < kLanes; ++l)
      if constexpr (isHalfSum)
        cells[l] = toHalf(d[l / 4 + r * 8][l % 4 * 2]).bits |
                   uint32_t(toHalf(d[l / 4 + r * 8][l % 4 * 2 + 1]).bits) << 16;
      else
        cells[l] = bitsOf(d[l / 4 + (r >> 1) * 8][l % 4 * 2 + (r & 1)]);
  }
}

/// m16n8k`depth`. The list: registers of the result, of A, of B, of C. mode: which of kTensorCores.
template <class T, uint32_t depth, bool isHalfSum> void multiply(Warp &warp, const Instruction &i, uint32_t) {
  static_assert(sizeof kTensorCores / sizeof *kTensorCores == 2);
  if (i.mode == 0)
    multiplyOn<T, depth, isHalfSum, 0>(warp, i);
  else
    multiplyOn<T, depth, isHalfSum, 1>(warp, i);
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
OperationList products() { return {kOperations, sizeof kOperations / sizeof *kOperations}; }
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
