// The arithmetic of deltas, which devices and tools share: all of it in float, so that both get the same bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stdint.h>

#include "ortc/delta.h"

namespace ortc::delta {

constexpr uint32_t kBlock = ORTC_DELTA_BLOCK;
/// Behind the name of an int8 tensor: the tensor of its scales.
constexpr char kScales[] = ":scales";
/// The metadata "ortc.format" of a delta; that of a checkpoint is "1", so neither is taken for the other.
constexpr char kFormat[] = "delta-1";

/// Rounds differences to whole multiples of what is returned, the largest of them over 127; a block that is smaller
/// than 127 times the smallest normal number becomes 0. Ties go to even.
inline float quantize(const float *difference, uint32_t count, int8_t *rounded) {
  float most = 0;
  for (uint32_t i = 0; i < count; i++) {
    float size = difference[i] < 0 ? -difference[i] : difference[i];
    most = size > most ? size : most;
  }
  float scale = most / 127;
  bool isZero = scale < 1.17549435e-38f;
  for (uint32_t i = 0; i < count; i++) {
    constexpr float kWhole = 12582912; // 1.5 * 2^23: what is added to it is rounded to a whole number
    float shifted = isZero ? kWhole : difference[i] / scale + kWhole;
    float number = shifted - kWhole;
    rounded[i] = (int8_t)(number > 127 ? 127 : number < -127 ? -127 : number);
  }
  return isZero ? 0 : scale;
}

} // namespace ortc::delta
