// Curves over steps as SVG: figures of a page, or a document of its own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "engine/page/metrics_log.h"

namespace ortc::engine {

/// Dashed and dotted ones have a mark at every point: evaluations are few, and each of them counts.
enum class LineStyle { Solid, Dashed, Dotted };

/// One curve of a chart. Series of many points are drawn as means of equal parts of the steps, before a band from the
/// smallest to the largest value of each.
struct Curve {
  std::string label;
  const Series *series = nullptr;
  size_t colour = 0; ///< which one; there are kColours, and then they begin again
  LineStyle style = LineStyle::Solid;
};

constexpr size_t kColours = 8;

struct Chart {
  std::string title;
  std::string quantity; ///< the name of the axis of values
  std::vector<Curve> curves;
};

/// A <figure> of HTML, with named axes and a legend below it. The values are on a logarithmic axis where all of them
/// are above 0 and the largest is a hundred times the smallest. Values that are not finite are gaps.
std::string drawFigure(const Chart &chart);

/// The same charts, one below the other, as an SVG file.
std::string drawDocument(const std::vector<Chart> &charts);

/// The style sheet of figures: colours on white, and on black for who prefers a dark page.
std::string makeChartStyle();

} // namespace ortc::engine
