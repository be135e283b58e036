// Where the values of a chart stand, and the numbers beside it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

namespace ortc::engine {

enum class Scale { Linear, Logarithmic, Whole }; ///< whole: linear, of whole numbers

struct Tick {
  double place = 0;
  std::string label;
};

/// Finite values from `least` to `most` between two places.
class Axis {
public:
  Axis(double least, double most, Scale scale, double from, double to);

  double place(double value) const;
  /// A few round numbers, powers of ten on a logarithmic axis. Where the values differ by little for their size,
  /// differences from one of them, which getName() tells.
  const std::vector<Tick> &getTicks() const { return ticks; }
  /// For a chart: "loss (linear scale)", "step", "loss - 0.1 (linear scale)".
  std::string getName(const std::string &of) const;

private:
  void addTicks();
  double read(double value) const;

  Scale scale;
  double low, high, from, to;
  std::vector<Tick> ticks;
  std::string base; ///< what is taken off the labels; "" where nothing is
};

} // namespace ortc::engine
