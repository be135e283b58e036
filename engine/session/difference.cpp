// A derivative against differences of the function, with kinks told from errors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/session/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ortc::engine {

/// What rounding may change in a value of that size, as a multiple of its last place: sums over many terms
/// lose more than the last one.
static constexpr double kRounding = 64 * std::numeric_limits<double>::epsilon();

Difference compareDerivative(const std::function<double(double)> &f, double value, double derivative,
                             const DifferenceOptions &options) {
  Difference best;
  best.error = std::numeric_limits<double>::infinity();
  double step = options.step;
  constexpr int kTries = 5;
  double left[kTries], right[kTries], noise[kTries];
  for (int i = 0; i < kTries; ++i, step /= 8) {
    double above = f(step), below = f(-step);
    right[i] = (above - value) / step;
    left[i] = (value - below) / step;
    double numeric = (above - below) / (2 * step);
    noise[i] = kRounding * std::max({std::fabs(above), std::fabs(below), std::fabs(value)}) / step;
    double size = std::max({std::fabs(numeric), std::fabs(derivative), options.smallest});
    double distance = std::fabs(numeric - derivative), error = distance == 0 ? 0 : distance / size;
    // What rounding explains is no error. With smaller steps it would explain everything.
    if (error > options.tolerance && (i == 0 || noise[i] <= 1e-3 * size))
      error = std::max(0.0, distance - noise[i]) / size;
    if (!(error < best.error)) // NaN too
      continue;
    best.numeric = numeric;
    best.error = error;
    if ((best.isGood = error <= options.tolerance))
      return best;
  }
  // One-sided derivatives of a smooth function come together with the step. At a kink they stay apart.
  for (int i = 2; i < kTries; ++i) {
    double size =
        std::max({std::fabs(left[i]), std::fabs(right[i]), std::fabs(derivative), options.smallest});
    double slack = options.tolerance * size + 2 * noise[i];
    double gap = std::fabs(right[i] - left[i]), earlier = std::fabs(right[i - 1] - left[i - 1]);
    bool staysApart = gap > 10 * slack && gap > 0.5 * earlier;
    bool isBetween = derivative >= std::min(left[i], right[i]) - 10 * slack &&
                     derivative <= std::max(left[i], right[i]) + 10 * slack;
    if (staysApart && isBetween)
      best.isGood = best.isKink = true;
  }
  return best;
}

} // namespace ortc::engine
