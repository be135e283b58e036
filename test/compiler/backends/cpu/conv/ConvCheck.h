// Products of a convolution against the evaluator, within the rounding of their sums.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/compiler/backends/cpu/conv/ConvFixture.h"

namespace ortc::cpu::test {

inline const Generate generate = generateWith(nullptr);

inline const Kind kAllKinds[] = {Kind::Forward, Kind::InputGrad, Kind::FilterGrad};

/// Which of the products is checked in double precision, too, where vectors have half the lanes.
enum class Doubles { None, One, All }; ///< One: in turns, which depend on the shape

/// All three products, or those of `kinds`; one case of each test on everything.
inline void check(Conv given, Coverage coverage, Doubles doubles, llvm::ArrayRef<Kind> kinds = kAllKinds) {
  Conv c = complete(std::move(given));
  double filter = 1, output = double(c.batch);
  for (int64_t size : c.filter)
    filter *= double(size);
  for (int64_t size : outputOf(c))
    output *= double(size);
  size_t turn = turnOf(programOf(c, kinds.front(), "f64"), kinds.size());
  for (auto [number, kind] : llvm::enumerate(kinds)) {
    double summed = kind == Kind::FilterGrad
                        ? output
                        : filter * double(kind == Kind::Forward ? c.channels : c.features) / double(c.groups);
    // Rounding errors of `summed` sums of products below one.
    compareWithEvaluator(programOf(c, kind, "f32"), generate, 1.2e-7 * (4 + summed), coverage);
    if (doubles == Doubles::All || (doubles == Doubles::One && number == turn))
      compareWithEvaluator(programOf(c, kind, "f64"), generate, 2.3e-16 * (4 + summed), Coverage::Widest);
    if (testing::Test::HasFailure())
      return;
  }
}

inline void check(Conv given, Coverage coverage = Coverage::Targets, llvm::ArrayRef<Kind> kinds = kAllKinds) {
  Doubles doubles = coverage == Coverage::All       ? Doubles::All
                    : coverage == Coverage::Targets ? Doubles::One
                                                    : Doubles::None;
  check(std::move(given), coverage, doubles, kinds);
}

} // namespace ortc::cpu::test
