// Memory plans as HTML without scripts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/report/PlanFigures.h"

#include "compiler/report/MemoryText.h"
#include "support/Plural.h"
#include "support/Text.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace ortc::report {

using Json = nlohmann::ordered_json;

namespace {

constexpr double kWidth = 1000, kUsage = 70, kArena = 430; ///< of a drawing, in its own units
constexpr size_t kListed = 10;                             ///< tensors of the peak

} // namespace

static uint64_t numberOf(const Json &from, const char *key) { return from.value(key, uint64_t(0)); }
static std::string textOf(const Json &from, const char *key) {
  return escapeHtml(from.value(key, std::string()));
}

static std::string makeRow(const std::vector<std::string> &cells, const char *tag = "td") {
  std::string row = "<tr>";
  for (const std::string &cell : cells)
    row += std::string("<") + tag + ">" + cell + "</" + tag + ">";
  return row + "</tr>\n";
}

static std::string drawRectangle(double x, double y, double width, double height, const std::string &more) {
  char place[160];
  std::snprintf(place, sizeof place, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" ", x, y,
                width, height);
  return place + more;
}

/// The colours of the page's script.
static const char *chooseColour(const std::string &name, const std::string &type) {
  if (name.starts_with("gradient of ") || name.starts_with("part of the gradient of "))
    return "#f0b37e";
  return name.starts_with("part of ") ? "#b9d8a8" : type == "scratch" ? "#cfcfcf" : "#8db8e8";
}

/// Bytes in use above, the arena below; steps go to the right.
static std::string drawArena(const Json &entry) {
  const Json &steps = entry["steps"];
  double step = kWidth / double(std::max<size_t>(steps.size(), 1));
  double most = double(std::max<uint64_t>(numberOf(entry["memory"], "transient"), 1));
  std::string svg =
      "<svg viewBox=\"0 0 1000 500\" width=\"100%\" height=\"500\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"the arena over the steps\">\n";
  for (size_t i = 0; i < steps.size(); ++i) {
    double height = kUsage * std::min(double(numberOf(steps[i], "bytes")) / most, 1.0);
    svg += drawRectangle(double(i) * step, kUsage - height, step, height,
                         "class=\"usage\" fill=\"#c8d4e0\"/>\n");
  }
  for (const Json &buffer : entry["buffers"]) {
    uint64_t first = numberOf(buffer, "first"), last = numberOf(buffer, "last"),
             bytes = numberOf(buffer, "bytes"), offset = numberOf(buffer, "offset");
    std::string fill = std::string("class=\"buffer\" fill=\"") +
                       chooseColour(buffer.value("name", ""), buffer.value("type", "")) +
                       "\" stroke=\"#555\" stroke-width=\".3\"><title>";
    svg += drawRectangle(double(first) * step, kUsage + kArena * double(offset) / most,
                         double(last + 1 - first) * step, kArena * double(bytes) / most, fill) +
           textOf(buffer, "name") + ", " + textOf(buffer, "type") + ", " + formatBytes(bytes) +
           " at offset " + std::to_string(offset) + ", steps " + std::to_string(first) + " to " +
           std::to_string(last) + "</title></rect>\n";
  }
  return svg + "</svg>\n";
}

/// The largest tensors of the step that needs most.
static std::string listPeak(const Json &entry) {
  const Json &memory = entry["memory"];
  if (!memory.contains("peak"))
    return "";
  uint64_t step = numberOf(memory["peak"], "step");
  std::vector<const Json *> alive;
  for (const Json &buffer : entry["buffers"])
    if (numberOf(buffer, "first") <= step && step <= numberOf(buffer, "last"))
      alive.push_back(&buffer);
  // Elements of one array: of equal ones, the first comes first.
  std::sort(alive.begin(), alive.end(), [](const Json *a, const Json *b) {
    uint64_t ofA = numberOf(*a, "bytes"), ofB = numberOf(*b, "bytes");
    return ofA != ofB ? ofA > ofB : a < b;
  });
  alive.resize(std::min(alive.size(), kListed));
  std::string text = "<h3>Step " + std::to_string(step) +
                     ", the peak: " + formatBytes(numberOf(memory["peak"], "bytes")) + " (" +
                     textOf(memory["peak"], "kernel") + ")</h3>\n<table class=\"peak\">\n" +
                     makeRow({"bytes", "tensor", "type", "offset", "steps"}, "th");
  for (const Json *buffer : alive)
    text += makeRow(
        {formatBytes(numberOf(*buffer, "bytes")), textOf(*buffer, "name"), textOf(*buffer, "type"),
         std::to_string(numberOf(*buffer, "offset")),
         std::to_string(numberOf(*buffer, "first")) + " to " + std::to_string(numberOf(*buffer, "last"))});
  return text + "</table>\n";
}

static std::string listCurve(const Json &memory) {
  if (!memory.contains("curve") || memory["curve"].empty())
    return "";
  std::string text =
      "<table class=\"curve\">\n" + makeRow({"budget", "transient", "more time", "at least"}, "th");
  for (const Json &point : memory["curve"]) {
    bool isPossible = point.value("possible", false);
    text += makeRow({formatBytes(numberOf(point, "budget")),
                     isPossible ? formatBytes(numberOf(point, "transient")) : "not found",
                     isPossible ? formatShare(point.value("added_time", 0.0)) : "",
                     formatShare(point.value("least_added_time", 0.0))});
  }
  return text + "</table>\n";
}

std::string describeShared(const Json &report) {
  const Json &memory = report["memory"];
  return "Persistent " + formatBytes(numberOf(memory, "persistent")) + ", constants " +
         formatBytes(numberOf(memory, "constants")) + ", at most " +
         formatCount(int64_t(numberOf(memory, "max_workers")), "worker") + ".";
}

std::string drawPlans(const Json &report) {
  std::string text;
  for (const Json &entry : report["entries"]) {
    const Json &memory = entry["memory"];
    uint64_t transient = numberOf(memory, "transient"), bound = numberOf(memory, "bound");
    text += "<h2>" + textOf(entry, "name") + "</h2>\n<p>" +
            formatCount(int64_t(entry["steps"].size()), "step") + ", " +
            formatCount(int64_t(entry["buffers"].size()), "buffer") + ". Transient " +
            formatBytes(transient) + ". Placement: " + formatGap(transient, bound) +
            " above the most bytes alive at once, " + formatBytes(bound) + ".";
    if (memory.contains("order_bound"))
      text += " Order: that is " + formatGap(bound, numberOf(memory, "order_bound")) +
              " above what every order needs; in the order of the source it would be " +
              formatBytes(numberOf(memory, "source_order")) + ".";
    text += "</p>\n" + listCurve(memory) + drawArena(entry) + listPeak(entry);
  }
  return text;
}

} // namespace ortc::report
