// Numbers of the tensor cores of GPUs' generations: how they add products.
//
// A tensor core adds a group of products and the running sum at once. All of them are brought to the largest
// exponent among them and cut off, towards zero, behind the bits that it keeps. The sum of these integers is
// exact; it is cut to f32, or rounded to the nearest f16. Products are not normalised before: a product of
// 1.5 and 1.5 has the exponent 0. Subnormal operands and results are kept.
//
// The model is that of F. A. Khattak and M. Mikaitis, "Accurate Models of NVIDIA Tensor Cores",
// arXiv 2512.07004, and its numbers are those of their repository north-numerical-computing/MATLAB-tensor-core
// (models/A100TC.m, AdaTC.m, L40STC.m, H100TC.m, B200TC.m, RTXPRO6000TC.m).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

namespace ortc::emulator {

struct TensorCore {
  int capability; ///< the first one that adds so: 10 * major + minor
  /// Products of f16 and bf16, of tf32, that are added at once.
  uint32_t group, tf32Group;
  /// Kept bits behind the 23 of an f32's fraction.
  int extraBits;
  /// The least exponent that terms are brought to, where sums are in f32 and in f16.
  int lowest, halfLowest;
};

inline constexpr TensorCore kTensorCores[] = {
    // A100, A2, A30; RTX 1000 (Ada) and L40S have the same numbers.
    {80, 8, 4, 1, -132, -20},
    // H100, H200; B200 and RTX PRO 6000 have the same numbers.
    {90, 16, 8, 2, -133, -21},
};

/// Which of them a device has; those before the first one are taken to add as it does.
inline constexpr uint8_t tensorCoreOf(int capability) { return capability >= kTensorCores[1].capability; }

} // namespace ortc::emulator
