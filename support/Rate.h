// The formulas of schedules: one definition for hosts, which compute a rate, and for the compiler, which writes one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A number is a double, or what stands for one in a program. Both give the same bits: all operations are IEEE's basic
// ones and floor, nothing is divided by a constant (which compilers turn into a product), and functions that libraries
// differ in are written out. These are within 1e-14 of the exact value, relatively where they are not near zero.
#pragma once

#include <algorithm>
#include <cmath>

#include "support/Schedule.h"

namespace ortc::rates {

inline double number(double, double value) { return value; }
inline double select(bool condition, double a, double b) { return condition ? a : b; }
using std::floor;
using std::sqrt;

/// sin(pi / 2 x) for x in [0, 1], by its series: the term after the last is below 1e-18.
template <typename Number> Number sineOfQuarter(Number x) {
  constexpr double kHalfPi = 1.5707963267948966, kSquare = kHalfPi * kHalfPi;
  double factors[12] = {kHalfPi};
  for (int i = 1; i < 12; ++i)
    factors[i] = -factors[i - 1] * kSquare / double(2 * i * (2 * i + 1));
  Number square = x * x, sum = square * factors[11] + factors[10];
  for (int i = 9; i >= 0; --i)
    sum = sum * square + factors[i];
  return sum * x;
}

/// 2^-y for y of at least 0: powers of two by the binary digits of y, and a series for what is left.
template <typename Number> Number halved(Number y) {
  constexpr double kLn2 = 0.6931471805599453;
  constexpr int kTerms = 18;     // 0.7^18 / 18! is below 1e-18
  constexpr double kMost = 1000; // beyond it come denormal numbers, which not every step has
  Number rest = select(y < kMost, y, number(y, kMost)), factor = number(y, 1);
  for (int bit = 9; bit >= 0; --bit) {
    const double power = std::ldexp(1.0, bit);
    auto isLess = rest < power;
    rest = select(isLess, rest, rest - power);
    factor = select(isLess, factor, factor * std::ldexp(1.0, -(1 << bit)));
  }
  double factors[kTerms] = {1};
  for (int i = 1; i < kTerms; ++i)
    factors[i] = -factors[i - 1] * kLn2 / i;
  Number sum = rest * factors[kTerms - 1] + factors[kTerms - 2];
  for (int i = kTerms - 3; i >= 0; --i)
    sum = sum * rest + factors[i];
  return sum * factor;
}

/// -log2(x) for x from 2^-63 to 1: doubled until it is near 1, then by the series of the inverse hyperbolic tangent.
template <typename Number> Number halvings(Number x) {
  constexpr double kTwoByLn2 = 2.8853900817779268, kRoot = 0.7071067811865476;
  Number count = number(x, 0);
  for (int bit = 5; bit >= 0; --bit) {
    const double least = kRoot * std::ldexp(1.0, 1 - (1 << bit)), power = std::ldexp(1.0, 1 << bit);
    auto isSmall = x < least;
    count = select(isSmall, count + double(1 << bit), count);
    x = select(isSmall, x * power, x);
  }
  Number share = (x - 1.0) / (x + 1.0), square = share * share;
  constexpr int kLast = 12; // (0.172)^25 / 25 is below 1e-20
  Number sum = square * (kTwoByLn2 / (2 * kLast + 1)) + kTwoByLn2 / (2 * kLast - 1);
  for (int i = kLast - 2; i >= 0; --i)
    sum = sum * square + kTwoByLn2 / (2 * i + 1);
  return count - sum * share;
}

/// x^power for x from 0 to 1.
template <typename Number> Number power(Number x, double power) {
  if (power == 1)
    return x;
  return select(x < 0x1p-63, number(x, 0), halved(halvings(x) * power));
}

/// How much of the rate is left when `share` of a fall, from 0 to 1, is behind.
template <typename Number> Number fall(Anneal how, Number share) {
  if (how == Anneal::Linear)
    return 1.0 - share;
  if (how == Anneal::Sqrt)
    return 1.0 - sqrt(share);
  Number sine = sineOfQuarter(share); // (1 + cos(pi x)) / 2 = 1 - sin(pi / 2 x)^2
  return 1.0 - sine * sine;
}

/// From `from` to `to`; at 1 and at 0 exactly one of both.
template <typename Number> Number between(Number from, Number to, Number left) {
  return from * left + to * (1.0 - left);
}

/// Whole periods in `count`, a whole number below 2^50. The half keeps rounding away from whole quotients.
template <typename Number> Number periods(Number count, int64_t period) {
  return floor((count + 0.5) * (1.0 / double(period)));
}

template <typename Number> Number oneCycle(const Schedule &schedule, Number base, Number step) {
  const double top = schedule.pctStart * double(schedule.total) - 1, last = double(schedule.total) - 1;
  Number first = base * (1.0 / schedule.divFactor), end = first * (1.0 / schedule.finalDivFactor);
  Number down = between(base, end, fall(schedule.anneal, (step - top) * (1.0 / std::max(last - top, 1.0))));
  Number rate = select(step < last, down, end);
  if (top <= 0)
    return rate;
  Number up = between(first, base, fall(schedule.anneal, step * (1.0 / top)));
  return select(step < std::floor(top) + 1, up, rate);
}

/// Of T_0, T_0 mult, T_0 mult^2, ... steps, the share of the period in progress that is behind.
template <typename Number> Number shareOfPeriod(const Schedule &schedule, Number count) {
  if (schedule.mult == 1)
    return (count - periods(count, schedule.period) * double(schedule.period)) *
           (1.0 / double(schedule.period));
  constexpr double kMost = 0x1p53;
  Number share = number(count, 0);
  double begin = 0, length = double(schedule.period);
  for (; begin < kMost; begin += length, length *= double(schedule.mult))
    share = select(count < begin, share, (count - begin) * (1.0 / length));
  return share;
}

/// The rate behind the warm-up, `count` steps after the one that first had the whole base.
template <typename Number>
Number rateBehindWarmUp(const Schedule &schedule, Number base, Number step, Number count) {
  const double top = schedule.getTop();
  Number least = number(base, schedule.minimum);
  auto falling = [&](double begin, double end, auto left) {
    Number past = step - begin;
    const double length = std::max(end - begin, 1.0);
    Number rate = between(base, least, left(past * (1.0 / length)));
    return select(past < length, rate, least);
  };
  auto anneal = [&](Number share) { return fall(schedule.anneal, share); };
  switch (schedule.kind) {
  case ScheduleKind::Constant:
    return base;
  case ScheduleKind::Linear:
  case ScheduleKind::Cosine:
    return falling(top, double(schedule.total), anneal);
  case ScheduleKind::Polynomial:
    return falling(top, double(schedule.total),
                   [&](Number share) { return power(1.0 - share, schedule.power); });
  case ScheduleKind::Wsd: {
    const double begin = double(schedule.total - schedule.decay);
    return select(step < begin, base, falling(begin, double(schedule.total), anneal));
  }
  case ScheduleKind::Step:
    return base * halved(periods(count, schedule.stepSize) * halvings(schedule.gamma));
  case ScheduleKind::Exponential:
    return base * halved(count * halvings(schedule.gamma));
  case ScheduleKind::MultiStep: {
    Number rate = base;
    for (int64_t milestone : schedule.milestones)
      rate = select(step < double(milestone), rate, rate * schedule.gamma);
    return rate;
  }
  case ScheduleKind::CosineRestarts:
    return between(base, least, anneal(shareOfPeriod(schedule, count)));
  case ScheduleKind::InverseSqrt: {
    const double scale = double(schedule.getTimescale());
    return base / sqrt((count + scale) * (1.0 / scale));
  }
  case ScheduleKind::OneCycle:
    return oneCycle(schedule, base, step);
  }
  return base;
}

/// The rate of a step, counted from 0.
template <typename Number> Number rateOf(const Schedule &schedule, Number base, Number step) {
  const double top = schedule.getTop();
  Number rate = rateBehindWarmUp(schedule, base, step, top > 0 ? step - top : step);
  if (top == 0)
    return rate;
  return select(step < top, base * ((step + 1.0) * (1.0 / double(schedule.warmup))), rate);
}

} // namespace ortc::rates
