// Where the values of a chart stand, and the numbers beside it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/page/axis.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "support/Text.h"

namespace ortc::engine {

Axis::Axis(double least, double most, Scale scale, double from, double to)
    : scale(scale), low(read(least)), high(read(most)), from(from), to(to) {
  if (!(high > low)) { // one value: it stands in the middle
    constexpr double kMost = std::numeric_limits<double>::max();
    const double half = scale == Scale::Logarithmic ? 0.5 : std::max(std::fabs(low) / 2, 0.5);
    high = std::min(low + half, kMost);
    low = std::max(low - half, -kMost);
  }
  addTicks();
}

double Axis::read(double value) const { return scale == Scale::Logarithmic ? std::log10(value) : value; }

double Axis::place(double value) const {
  const double at = read(value), span = high - low;
  // The difference of the ends may be more than a double holds; halves of the smallest numbers are none.
  const double share = std::isfinite(span) ? (at - low) / span : (at / 2 - low / 2) / (high / 2 - low / 2);
  return from + share * (to - from);
}

void Axis::addTicks() {
  const double span = high - low, unit = std::pow(10, std::floor(std::log10(span))), parts = span / unit;
  double step = unit * (parts < 2   ? (scale == Scale::Whole ? 0.5 : 0.25)
                        : parts < 4 ? 0.5
                        : parts < 8 ? 1
                                    : 2);
  if (scale != Scale::Linear)
    step = std::max(std::round(step), 1.0);
  if (!std::isfinite(span) || !(step > 0)) { // more than a double holds, or less than it tells apart
    for (double end : {low, high})
      ticks.push_back({end == low ? from : to, formatShort(end)});
    return;
  }
  // Multiples of the step are counted by whole numbers: a double cannot count where it has no room for one more.
  const double largest = std::max(std::fabs(low), std::fabs(high)), ratio = largest / step;
  constexpr double kMostRatio = 1e5, kMostWhole = 1e9;
  const double slack = std::min(1e-9, span / step * 1e-6); // for ends that are ticks but for rounding
  if (ratio < kMostRatio || (scale == Scale::Whole && largest < kMostWhole)) {
    const int digits = std::clamp(int(std::ceil(std::log10(ratio))) + 2, 4, 9);
    const auto last = int64_t(std::floor(high / step + slack));
    for (auto i = int64_t(std::ceil(low / step - slack)); i <= last; ++i) {
      const double at = double(i) * step, value = scale == Scale::Logarithmic ? std::pow(10, at) : at;
      ticks.push_back({place(value), formatShort(value, digits)});
    }
    return;
  }
  base = formatExact(low);
  constexpr int64_t kMostTicks = 10; // the step is made for fewer
  const auto count = std::min(int64_t(std::min(std::floor(span / step + 1e-9), 1e9)), kMostTicks);
  for (int64_t i = 0; i <= count; ++i)
    ticks.push_back({from + double(i) * step / span * (to - from), formatShort(double(i) * step)});
}

std::string Axis::getName(const std::string &of) const {
  return of + (base.empty() ? "" : " - " + base) +
         (scale == Scale::Logarithmic ? " (logarithmic scale)"
          : scale == Scale::Linear    ? " (linear scale)"
                                      : "");
}

} // namespace ortc::engine
