// Derivatives against differences: what is right, what is wrong, what a kink explains.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/session/difference.h"

#include "support/Random.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace ortc;
using namespace ortc::engine;

namespace {

Difference compare(double (*f)(double), double derivative) {
  return compareDerivative(f, f(0), derivative, DifferenceOptions());
}

TEST(DifferenceTest, AcceptsTheDerivativeOfASmoothFunction) {
  Difference difference = compare([](double x) { return std::exp(x) + 3; }, 1);
  EXPECT_TRUE(difference.isGood);
  EXPECT_FALSE(difference.isKink);
  EXPECT_LT(difference.error, 1e-7);
}

TEST(DifferenceTest, SeesOnePerMille) {
  EXPECT_FALSE(compare([](double x) { return std::exp(x) + 3; }, 1.001).isGood);
  EXPECT_FALSE(compare([](double x) { return std::exp(x) + 3; }, -1).isGood);
  EXPECT_FALSE(compare([](double x) { return std::exp(x) + 3; }, 0).isGood);
}

TEST(DifferenceTest, AKinkNearbyIsOutsideOfASmallerStep) {
  auto f = [](double x) { return std::fabs(x - 2e-5) + x; };
  EXPECT_TRUE(compare(f, 0).isGood);
  EXPECT_FALSE(compare(f, 0).isKink);
  EXPECT_FALSE(compare(f, 1).isGood);
}

TEST(DifferenceTest, AtAKinkEveryValueBetweenIsFine) {
  auto relu = [](double x) { return std::fmax(x, 0.0) + 1; };
  for (double derivative : {0.0, 0.5, 1.0}) {
    EXPECT_TRUE(compare(relu, derivative).isGood) << derivative;
    EXPECT_EQ(compare(relu, derivative).isKink, derivative != 0.5)
        << derivative; // the central difference is 0.5
  }
  EXPECT_FALSE(compare(relu, 1.01).isGood);
  EXPECT_FALSE(compare(relu, -0.01).isGood);
}

TEST(DifferenceTest, ValuesThatAreNoNumbersAreNotFine) {
  EXPECT_FALSE(compare([](double x) { return std::log(x - 1); }, 1).isGood);
}

TEST(DifferenceTest, RoundingExplainsOnlyWhatItsSizeCan) {
  auto flat = [](double x) { return 1e6 + 1e-9 * x; };
  EXPECT_TRUE(compare(flat, 2e-9).isGood);
  EXPECT_FALSE(compare(flat, 1e-2).isGood);
  auto small = [](double x) { return 1 + 1e-5 * x; };
  EXPECT_TRUE(compare(small, 1e-5).isGood);
  EXPECT_FALSE(compare(small, 1.01e-5).isGood);
}

TEST(RandomTest, IsUniformAndRepeats) {
  Random a(5), b(5);
  double sum = 0, squares = 0;
  for (int i = 0; i < 10000; ++i) {
    double x = a.normal();
    ASSERT_EQ(x, b.normal());
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 10000, 0, 0.05);
  EXPECT_NEAR(squares / 10000, 1, 0.05);
  for (int i = 0; i < 1000; ++i) {
    int64_t value = a.below(7);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 7);
  }
}

} // namespace
