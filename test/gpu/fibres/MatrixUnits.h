// What AMD's instructions that multiply matrices compute, for all lanes of a wavefront.
//
// Where elements lie is as github.com/ROCm/amd_matrix_instruction_calculator prints it. How products are added is, for
// CDNA 2 and 3, the model that was found to have the bits of such GPUs: P. Xie et al., arXiv 2511.10909,
// github.com/microsoft/MMA-Sim (mmasim/simulator/amd.py). Nobody has published one of RDNA 3: there exact products are
// added to the sum one by one in f32, from the first step to the last.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ortc::fibres {

/// An instruction of a processor: 16 x depth times depth x 16 numbers, and 16 x 16 sums of f32.
struct MatrixUnit {
  enum class Number { bf16, f16, f32 };
  enum class Sum {
    chain,   ///< fused multiply-adds
    pairs,   ///< CDNA 2: groups of four in pairs, each rounded to nearest; subnormal numbers are zeros
    aligned, ///< CDNA 3: groups of eight, aligned to the largest and cut
    products ///< exact products, one by one
  };
  std::string_view intrinsic, processor;
  int64_t lanes, depth;
  Number number;
  Sum sum;
  bool sumsInColumns; ///< of a lane: neighbours of a column; else every other row

  int64_t elements() const {
    return lanes == 64 ? 16 * depth / lanes : depth;
  } ///< of an operand, that a lane has
  int64_t sums() const { return 16 * 16 / lanes; }
};

/// The units that there are; null where a processor has none of that name.
const MatrixUnit *findMatrixUnit(std::string_view intrinsic, std::string_view processor);

/// What a lane gives, null pointers where it takes no part, and where it wants its sums.
struct MatrixOperands {
  const void *first = nullptr, *second = nullptr;
  const float *sums = nullptr;
  float *result = nullptr;
};

/// first * second + sums, by lane. What an absent lane would have given is NaN.
void multiply(const MatrixUnit &unit, const std::vector<MatrixOperands> &lanes);

} // namespace ortc::fibres
