// What numbers a kernel may depend on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace ortc {

/// `--numerics`. Bits never depend on anything else: not on the vector width, not on the number of workers, not on how
/// ops were fused.
enum class Numerics {
  /// Fused multiply-add, or the matrix unit: equal bits on all targets that have the first and not the second.
  Fast,
  /// Separate multiply and add, and denormal numbers as IEEE 754 has them: equal bits on every target.
  Portable,
};

/// Whether numbers below the smallest normal one count as zero. Not every processor has such a mode (decision 0035).
constexpr bool denormalsAreZero(Numerics numerics) { return numerics == Numerics::Fast; }

} // namespace ortc
