// Curves over steps as inline SVG.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "host/page/metrics_log.h"

namespace ortc::host {

/// One curve of a chart. Series of many points are drawn as means of equal parts of the steps, before a band from the
/// smallest to the largest value of each.
struct Curve {
  std::string label;
  const Series *series = nullptr;
  size_t colour = 0;     ///< which one; there are kColours, and then they begin again
  bool isDashed = false; ///< of evaluations
};

constexpr size_t kColours = 8;

/// An <svg> with axes, and the names of the curves below it. The values are on a logarithmic axis where all of them are
/// above 0 and the largest is a hundred times the smallest. Values that are not finite are gaps.
std::string drawChart(const std::string &title, const std::vector<Curve> &curves);

/// Text for HTML and for attributes.
std::string escapeHtml(const std::string &text);

} // namespace ortc::host
