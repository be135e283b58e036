// What a walk may spend before there is a program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A few bytes of a model may ask for any amount of work at compile time: a range of 2^60 numbers, a loop in a
// loop in a loop. What it comes to is taken from the budget before anything is computed, allocated or built.
#pragma once

#include <cstdint>

namespace ortc::legalize {

/// How much of one thing a walk may use up.
class Allowance {
public:
  constexpr explicit Allowance(int64_t most) : most(most), left(most) {}

  /// Takes `amount` if there is as much left.
  bool take(int64_t amount) {
    if (amount > left)
      return false;
    left -= amount;
    return true;
  }
  int64_t getMost() const { return most; }
  int64_t getLeft() const { return left; }

private:
  int64_t most, left;
};

/// Of one walk over a graph. What all of it buys takes seconds and less than a gigabyte; models that people
/// train need a thousandth.
struct Budget {
  /// Numbers that nodes list, or need to know: ranges, windows, interpolation weights, places. Two transforms
  /// of length 4096 fit, with 2^24 each; resampling to 2048 elements takes 2^21, nearly all else less than
  /// 2^12. A node that needs more is refused.
  Allowance listed{int64_t(5) << 23};
  /// Elements that folding looks at. What is not reached is left to the program.
  Allowance folded{int64_t(1) << 26};
  /// Nodes that copies of the bodies of loops, and items of sequences come to, beyond what the file holds.
  /// Each may become a kernel of its own, which takes 20 to 50 ms. A node that needs more is refused.
  Allowance nodes{20000};
};

} // namespace ortc::legalize
