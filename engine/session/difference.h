// A derivative against differences of the function, with kinks told from errors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <functional>

namespace ortc::engine {

/// What a comparison came to.
struct Difference {
  double numeric = 0; ///< the difference quotient that came closest
  double error = 0;   ///< its distance, relative to the larger of both derivatives and `smallest`
  bool isGood = false;
  bool isKink = false; ///< one-sided derivatives differ, and the derivative lies between them
};

/// How close a difference must come to the derivative.
struct DifferenceOptions {
  double tolerance = 1e-5;
  double smallest = 0; ///< derivatives below it are as good as zero
  double step = 1e-4;  ///< the first; smaller ones are tried when it does not fit
};

/// Compares `derivative` with central differences of f at 0, where it is `value`. A kink near 0 lies outside
/// after the step has shrunk; one at 0 shows as one-sided derivatives that differ however small the step is.
/// Two evaluations of f where the first step fits, at most ten.
Difference compareDerivative(const std::function<double(double)> &f, double value, double derivative,
                             const DifferenceOptions &options);

} // namespace ortc::engine
