// Curves over steps as SVG: figures of a page, or a document of its own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/page/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/page/axis.h"
#include "support/Text.h"

namespace ortc::engine {
namespace {

// Pixels of a chart, and of what the axes' numbers and names take of it: numbers have room for the larger letters of
// narrow screens.
constexpr double kWidth = 640, kHeight = 300, kLeft = 84, kRight = 28, kTop = 32, kBottom = 50;
/// More points than this are not told apart.
constexpr size_t kParts = 300;
/// Heights of a line of text in a document, and between the charts there.
constexpr double kLine = 20, kGap = 28;

/// The mean of a part of a series, with its ends.
struct Point {
  double step = 0, mean = 0, lowest = 0, highest = 0;
};

size_t countPerPart(const Series &series) { return (series.steps.size() + kParts - 1) / kParts; }

/// Pieces without gaps.
std::vector<std::vector<Point>> reduce(const Series &series) {
  std::vector<std::vector<Point>> pieces;
  size_t count = series.steps.size(), each = countPerPart(series);
  bool isOpen = false;
  for (size_t begin = 0; begin < count; begin += std::max<size_t>(each, 1)) {
    size_t end = std::min(count, begin + each);
    Point point{0, 0, std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest()};
    int64_t finite = 0;
    for (size_t i = begin; i < end; ++i)
      if (double value = series.values[i]; std::isfinite(value)) {
        ++finite;
        point.step += (series.steps[i] - point.step) / double(finite);
        // A sum of large values could overflow, as their difference can.
        point.mean += value / double(finite) - point.mean / double(finite);
        point.lowest = std::min(point.lowest, value);
        point.highest = std::max(point.highest, value);
      }
    if (finite == 0) {
      isOpen = false;
      continue;
    }
    point.mean = std::clamp(point.mean, point.lowest, point.highest); // rounding may lead out of the band
    if (!isOpen)
      pieces.emplace_back();
    isOpen = true;
    pieces.back().push_back(point);
  }
  return pieces;
}

std::string number(double value) { return formatShort(std::round(value * 10) / 10, 9); }

std::string drawText(const char *anchor, double x, double y, const std::string &text) {
  return std::string("<text text-anchor=\"") + anchor + "\" x=\"" + number(x) + "\" y=\"" + number(y) +
         "\">" + escapeHtml(text) + "</text>";
}

std::string drawAxes(const Axis &x, const Axis &y, const std::string &quantity) {
  std::string svg;
  for (const Tick &tick : y.getTicks()) {
    std::string at = number(tick.place);
    svg += "<line class=\"grid\" x1=\"" + number(kLeft) + "\" x2=\"" + number(kWidth - kRight) + "\" y1=\"" +
           at + "\" y2=\"" + at + "\"/>" + drawText("end", kLeft - 6, tick.place + 4, tick.label);
  }
  for (const Tick &tick : x.getTicks())
    svg += drawText("middle", tick.place, kHeight - kBottom + 20, tick.label);
  return svg + drawText("start", 4, 14, y.getName(quantity)) +
         drawText("end", kWidth - kRight, kHeight - 6, x.getName("step"));
}

std::string nameClass(const Curve &curve) {
  return "c" + std::to_string(curve.colour % kColours) +
         (curve.style == LineStyle::Dashed   ? " d"
          : curve.style == LineStyle::Dotted ? " o"
                                             : "");
}

std::string drawMark(double x, double y) {
  return "<circle r=\"2.5\" cx=\"" + number(x) + "\" cy=\"" + number(y) + "\"/>";
}

std::string drawCurve(const std::vector<std::vector<Point>> &pieces, const Curve &curve, const Axis &x,
                      const Axis &y) {
  std::string svg = "<g class=\"" + nameClass(curve) + "\"><title>" + escapeHtml(curve.label) + "</title>";
  for (const std::vector<Point> &piece : pieces) {
    std::string line, above, below;
    for (const Point &point : piece) {
      std::string at = number(x.place(point.step)) + ",";
      line += at + number(y.place(point.mean)) + " ";
      above += at + number(y.place(point.highest)) + " ";
      below = at + number(y.place(point.lowest)) + " " + below;
    }
    if (countPerPart(*curve.series) > 1)
      svg += "<polygon points=\"" + above + below + "\"/>";
    if (piece.size() == 1 || curve.style != LineStyle::Solid)
      for (const Point &point : piece)
        svg += drawMark(x.place(point.step), y.place(point.mean));
    svg += "<polyline points=\"" + line + "\"/>";
  }
  return svg + "</g>";
}

/// A line of a legend: what is drawn of 28 by 12 pixels, and what that stands for.
struct LegendLine {
  std::string sample, text;
};

std::vector<LegendLine> makeLegend(const std::vector<Curve> &curves) {
  std::vector<LegendLine> legend;
  size_t most = 0;
  for (const Curve &curve : curves) {
    legend.push_back({"<g class=\"" + nameClass(curve) + "\">" +
                          (curve.style == LineStyle::Solid ? "" : drawMark(14, 6)) +
                          "<polyline points=\"0,6 28,6\"/></g>",
                      curve.label});
    most = std::max(most, countPerPart(*curve.series));
  }
  if (most > 1)
    legend.push_back(
        {"<g class=\"c0\"><polygon points=\"0,1 28,1 28,11 0,11\"/></g>",
         "band: from the smallest to the largest of " + std::to_string(most) + " values; line: their mean"});
  return legend;
}

/// The content of an <svg> of kWidth by kHeight; "" where no value is finite.
std::string drawPlot(const Chart &chart) {
  double first = HUGE_VAL, last = -HUGE_VAL, lowest = HUGE_VAL, highest = -HUGE_VAL;
  std::vector<std::vector<std::vector<Point>>> pieces;
  for (const Curve &curve : chart.curves)
    for (const std::vector<Point> &piece : pieces.emplace_back(reduce(*curve.series)))
      for (const Point &point : piece) {
        first = std::min(first, point.step);
        last = std::max(last, point.step);
        lowest = std::min(lowest, point.lowest);
        highest = std::max(highest, point.highest);
      }
  if (lowest > highest)
    return "";
  const bool isLogarithmic = lowest > 0 && highest / 100 >= lowest;
  const Axis x(first, last, Scale::Whole, kLeft, kWidth - kRight);
  const Axis y(lowest, highest, isLogarithmic ? Scale::Logarithmic : Scale::Linear, kHeight - kBottom, kTop);
  std::string svg = drawAxes(x, y, chart.quantity);
  for (size_t i = 0; i < chart.curves.size(); ++i)
    svg += drawCurve(pieces[i], chart.curves[i], x, y);
  return svg;
}

/// Colours that people with any eyes tell apart (after Okabe and Ito): against white, and against black.
struct Colour {
  const char *onWhite, *onBlack;
};
constexpr Colour kColourValues[kColours] = {
    {"#0072b2", "#56b4e9"}, {"#d55e00", "#ff8f3d"}, {"#00845f", "#2fd0a2"}, {"#b0568c", "#e8a5cb"},
    {"#2c7fb8", "#a6d8f5"}, {"#a87400", "#ffc850"}, {"#7a55a8", "#c3a8ee"}, {"#6b6b6b", "#b8b8b8"}};

std::string colour(const char *Colour::*ground) {
  std::string style;
  for (size_t i = 0; i < kColours; ++i) {
    const std::string name = ".c" + std::to_string(i), value = kColourValues[i].*ground;
    style += name + " polyline," + name + " circle{stroke:" + value + "}" + name + " polygon," + name +
             " circle{fill:" + value + "}";
  }
  return style;
}

} // namespace

std::string makeChartStyle() {
  return "svg text{font:12px system-ui,sans-serif;fill:#111}.grid{stroke:#8886}polyline{fill:none;"
         "stroke-width:1.5}polygon{stroke:none;opacity:.25}.d polyline{stroke-dasharray:5 3}.o polyline{"
         "stroke-dasharray:1 4;stroke-linecap:round;stroke-width:2.5}svg .o circle{fill:#fff}" +
         colour(&Colour::onWhite) + "@media(prefers-color-scheme:dark){svg text{fill:#eee}" +
         colour(&Colour::onBlack) + "svg .o circle{fill:#121212}}";
}

std::string drawFigure(const Chart &chart) {
  std::string html = "<figure><figcaption>" + escapeHtml(chart.title) + "</figcaption>";
  const std::string plot = drawPlot(chart);
  if (plot.empty())
    return html + "<p>no finite value</p></figure>\n";
  html += "<svg viewBox=\"0 0 " + number(kWidth) + " " + number(kHeight) + "\" role=\"img\" aria-label=\"" +
          escapeHtml(chart.quantity) + " over steps\">" + plot + "</svg><ul>";
  for (const LegendLine &line : makeLegend(chart.curves))
    html += "<li><svg class=\"key\" viewBox=\"0 0 28 12\">" + line.sample + "</svg> " +
            escapeHtml(line.text) + "</li>";
  return html + "</ul></figure>\n";
}

std::string drawDocument(const std::vector<Chart> &charts) {
  std::string svg;
  double bottom = kGap / 2;
  auto move = [&](double x, double y, const std::string &what) {
    return "<g transform=\"translate(" + number(x) + " " + number(y) + ")\">" + what + "</g>\n";
  };
  for (const Chart &chart : charts) {
    bottom += kLine;
    svg += move(0, bottom - 6, "<g class=\"title\">" + drawText("start", 4, 0, chart.title) + "</g>");
    const std::string plot = drawPlot(chart);
    if (plot.empty()) {
      svg += move(0, bottom, drawText("start", 4, 14, "no finite value"));
      bottom += kLine + kGap;
      continue;
    }
    svg += move(0, bottom, plot);
    bottom += kHeight + 4;
    for (const LegendLine &line : makeLegend(chart.curves)) {
      svg += move(kLeft, bottom, line.sample + drawText("start", 36, 10, line.text));
      bottom += kLine;
    }
    bottom += kGap;
  }
  const std::string size = number(kWidth) + " " + number(bottom);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size + "\" width=\"" + number(kWidth) +
         "\" height=\"" + number(bottom) + "\">\n<style>" + makeChartStyle() +
         ".ground{fill:#fff}.title "
         "text{font-weight:600}@media(prefers-color-scheme:dark){.ground{fill:#121212}"
         "}</style>\n<rect class=\"ground\" width=\"" +
         number(kWidth) + "\" height=\"" + number(bottom) + "\"/>\n" + svg + "</svg>\n";
}

} // namespace ortc::engine
