// Curves over steps as inline SVG.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/page/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "host/text.h"

namespace ortc::host {
namespace {

// Pixels of a chart, and of what the axes' numbers take of it.
constexpr double kWidth = 640, kHeight = 260, kLeft = 64, kRight = 12, kTop = 12, kBottom = 28;
/// More points than this are not told apart.
constexpr size_t kParts = 300;

/// The mean of a part of a series, with its ends.
struct Point {
  double step = 0, mean = 0, lowest = 0, highest = 0;
};

/// Pieces without gaps.
std::vector<std::vector<Point>> reduce(const Series &series) {
  std::vector<std::vector<Point>> pieces;
  size_t count = series.steps.size(), each = (count + kParts - 1) / kParts;
  bool isOpen = false;
  for (size_t begin = 0; begin < count; begin += std::max<size_t>(each, 1)) {
    size_t end = std::min(count, begin + each);
    Point point{0, 0, std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest()};
    double finite = 0;
    for (size_t i = begin; i < end; ++i)
      if (double value = series.values[i]; std::isfinite(value)) {
        ++finite;
        point.step += (series.steps[i] - point.step) / finite;
        point.mean += (value - point.mean) / finite; // a sum of large values could overflow
        point.lowest = std::min(point.lowest, value);
        point.highest = std::max(point.highest, value);
      }
    if (finite == 0) {
      isOpen = false;
      continue;
    }
    if (!isOpen)
      pieces.emplace_back();
    isOpen = true;
    pieces.back().push_back(point);
  }
  return pieces;
}

/// Where values stand on a page.
class Axis {
public:
  Axis(double least, double most, bool isLogarithmic, double from, double to)
      : isLogarithmic(isLogarithmic), from(from), to(to) {
    low = scale(least);
    high = scale(most);
    if (!(high > low)) { // one value: it stands in the middle
      double half = isLogarithmic ? 0.5 : std::max(std::fabs(low) / 2, 0.5);
      high = low + half;
      low -= half;
    }
  }
  /// Halves: the difference of the ends may be more than a double holds.
  double place(double value) const {
    return from + (scale(value) / 2 - low / 2) / (high / 2 - low / 2) * (to - from);
  }
  /// Round numbers; powers of ten on a logarithmic axis.
  std::vector<double> getTicks() const {
    if (!std::isfinite(high - low))
      return {low, high};
    double step = std::pow(10, std::floor(std::log10(high - low)));
    double parts = (high - low) / step;
    step *= parts < 2 ? 0.25 : parts < 4 ? 0.5 : parts < 8 ? 1 : 2;
    if (isLogarithmic)
      step = std::max(std::round(step), 1.0);
    std::vector<double> ticks;
    for (double at = std::ceil(low / step - 1e-9); at * step <= high + step * 1e-9; ++at)
      ticks.push_back(isLogarithmic ? std::pow(10, at * step) : at * step);
    return ticks;
  }

private:
  double scale(double value) const { return isLogarithmic ? std::log10(value) : value; }
  bool isLogarithmic;
  double low, high, from, to;
};

std::string number(double value) { return formatShort(std::round(value * 10) / 10, 6); }

std::string drawAxes(const Axis &x, const Axis &y) {
  std::string svg;
  for (double tick : y.getTicks()) {
    std::string at = number(y.place(tick));
    svg += "<line class=\"grid\" x1=\"" + number(kLeft) + "\" x2=\"" + number(kWidth - kRight) + "\" y1=\"" +
           at + "\" y2=\"" + at + "\"/><text x=\"" + number(kLeft - 6) + "\" y=\"" + at +
           "\" dy=\"4\" text-anchor=\"end\">" + formatShort(tick) + "</text>";
  }
  for (double tick : x.getTicks())
    svg += "<text x=\"" + number(x.place(tick)) + "\" y=\"" + number(kHeight - 8) +
           "\" text-anchor=\"middle\">" + formatShort(tick, 9) + "</text>";
  return svg;
}

std::string drawCurve(const std::vector<std::vector<Point>> &pieces, const Curve &curve, const Axis &x,
                      const Axis &y, bool hasBand) {
  std::string svg = "<g class=\"c" + std::to_string(curve.colour % kColours) + (curve.isDashed ? " d" : "") +
                    "\"><title>" + escapeHtml(curve.label) + "</title>";
  for (const std::vector<Point> &piece : pieces) {
    std::string line, above, below;
    for (const Point &point : piece) {
      std::string at = number(x.place(point.step)) + ",";
      line += at + number(y.place(point.mean)) + " ";
      above += at + number(y.place(point.highest)) + " ";
      below = at + number(y.place(point.lowest)) + " " + below;
    }
    if (hasBand)
      svg += "<polygon points=\"" + above + below + "\"/>";
    if (piece.size() == 1 || curve.isDashed) // evaluations are few, and each of them counts
      for (const Point &point : piece)
        svg += "<circle r=\"2.5\" cx=\"" + number(x.place(point.step)) + "\" cy=\"" +
               number(y.place(point.mean)) + "\"/>";
    svg += "<polyline points=\"" + line + "\"/>";
  }
  return svg + "</g>";
}

} // namespace

std::string escapeHtml(const std::string &text) {
  std::string escaped;
  for (char letter : makePrintable(text))
    if (letter == '&')
      escaped += "&amp;";
    else if (letter == '<')
      escaped += "&lt;";
    else if (letter == '>')
      escaped += "&gt;";
    else if (letter == '"')
      escaped += "&quot;";
    else if (letter == '\'')
      escaped += "&#39;";
    else
      escaped += letter;
  return escaped;
}

std::string drawChart(const std::string &title, const std::vector<Curve> &curves) {
  double first = HUGE_VAL, last = -HUGE_VAL, lowest = HUGE_VAL, highest = -HUGE_VAL;
  std::vector<std::vector<std::vector<Point>>> pieces;
  for (const Curve &curve : curves)
    for (const std::vector<Point> &piece : pieces.emplace_back(reduce(*curve.series)))
      for (const Point &point : piece) {
        first = std::min(first, point.step);
        last = std::max(last, point.step);
        lowest = std::min(lowest, point.lowest);
        highest = std::max(highest, point.highest);
      }
  std::string html = "<figure><figcaption>" + escapeHtml(title);
  if (lowest > highest)
    return html + "</figcaption><p>no finite value</p></figure>\n";
  bool isLogarithmic = lowest > 0 && highest >= 100 * lowest;
  Axis x(first, last, false, kLeft, kWidth - kRight);
  Axis y(lowest, highest, isLogarithmic, kHeight - kBottom, kTop);
  html += std::string(isLogarithmic ? " (logarithmic)" : "") + "</figcaption><svg viewBox=\"0 0 " +
          number(kWidth) + " " + number(kHeight) + "\" role=\"img\">" + drawAxes(x, y);
  std::string names;
  for (size_t i = 0; i < curves.size(); ++i) {
    html += drawCurve(pieces[i], curves[i], x, y, curves[i].series->steps.size() > kParts);
    names += "<span class=\"c" + std::to_string(curves[i].colour % kColours) + "\">" +
             (curves[i].isDashed ? "- - " : "&mdash; ") + escapeHtml(curves[i].label) + "</span> ";
  }
  return html + "</svg><p>" + names + "</p></figure>\n";
}

} // namespace ortc::host
