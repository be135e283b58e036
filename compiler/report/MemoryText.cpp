// Memory plans for people.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/report/MemoryText.h"

#include "support/Printable.h"
#include "support/Text.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace ortc::report {

using Json = nlohmann::ordered_json;

/// 0 for what is missing, and no whole number from 0 on.
static uint64_t getNumber(const Json &from, const char *key) {
  if (!from.is_object() || !from.contains(key) || !from[key].is_number_integer())
    return 0;
  return from[key].is_number_unsigned() ? from[key].get<uint64_t>()
                                        : uint64_t(std::max<int64_t>(from[key].get<int64_t>(), 0));
}

static double getFraction(const Json &from, const char *key) {
  return from.is_object() && from.contains(key) && from[key].is_number() ? from[key].get<double>() : 0;
}

static std::string getText(const Json &from, const char *key) {
  bool isText = from.is_object() && from.contains(key) && from[key].is_string();
  return isText ? makePrintable(from[key].get<std::string>()) : "";
}

std::string formatShare(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100);
  return text;
}

std::string formatGap(uint64_t value, uint64_t bound) {
  return formatShare(bound == 0 ? 0 : (double(value) - double(bound)) / double(bound));
}

static std::string makeLine(const char *key, const std::string &text) {
  char head[24];
  std::snprintf(head, sizeof head, "  %-10s ", key);
  return head + text + "\n";
}

static std::string pad(const std::string &text, size_t width, bool atEnd) {
  std::string blanks(width > text.size() ? width - text.size() : 0, ' ');
  return atEnd ? text + blanks : blanks + text;
}

static std::string describePeak(const Json &peak) {
  std::string why;
  if (peak.contains("for") && peak["for"].is_array() && !peak["for"].empty()) {
    Json first{{"text", peak["for"].back()}};
    why = ": " + getText(first, "text") + (peak["for"].size() > 1 ? ", ..." : "");
  }
  std::string text = makeLine("peak", formatBytes(getNumber(peak, "bytes")) + " in step " +
                                          std::to_string(getNumber(peak, "step")) + " (" +
                                          getText(peak, "kernel") + why + ")");
  if (!peak.contains("tensors") || !peak["tensors"].is_array())
    return text;
  const Json &tensors = peak["tensors"];
  size_t names = 0, types = 0;
  for (const Json &tensor : tensors) {
    names = std::max(names, getText(tensor, "name").size());
    types = std::max(types, getText(tensor, "type").size());
  }
  for (const Json &tensor : tensors)
    text += "    " + pad(formatBytes(getNumber(tensor, "bytes")), 10, false) + "  " +
            pad(getText(tensor, "name"), std::min<size_t>(names, 60), true) + "  " +
            pad(getText(tensor, "type"), types, true) + "  steps " +
            std::to_string(getNumber(tensor, "first")) + " to " + std::to_string(getNumber(tensor, "last")) +
            "\n";
  if (uint64_t alive = getNumber(peak, "alive"); alive > tensors.size())
    text += "    and " + std::to_string(alive - tensors.size()) + " smaller\n";
  return text;
}

static std::string describeRecomputation(const Json &memory) {
  if (!memory.contains("recompute") || getNumber(memory["recompute"], "repeated") == 0)
    return makeLine("recompute", "nothing is computed twice");
  const Json &made = memory["recompute"];
  uint64_t plain = getNumber(made, "plain_picoseconds");
  return makeLine("recompute", formatCount(int64_t(getNumber(made, "repeated")), "step") + " run twice, " +
                                   formatGap(getNumber(made, "picoseconds"), plain) +
                                   " more time: nothing within the budget takes less than " +
                                   formatGap(getNumber(made, "least_picoseconds"), plain) +
                                   " more, and nothing at all less than " +
                                   formatBytes(getNumber(made, "least_bytes")));
}

static std::string describeCurve(const Json &curve) {
  std::string text = makeLine("budget", "    transient    more time     at least");
  for (const Json &point : curve) {
    bool isPossible = point.is_object() && point.contains("possible") && point["possible"] == true;
    text += "  " + pad(formatBytes(getNumber(point, "budget")), 10, false) + " " +
            pad(isPossible ? formatBytes(getNumber(point, "transient")) : "not found", 13, false) +
            pad(isPossible ? formatShare(getFraction(point, "added_time")) : "", 13, false) +
            pad(formatShare(getFraction(point, "least_added_time")), 13, false) + "\n";
  }
  return text;
}

std::string describePlan(const Json &memory) {
  std::string text;
  if (memory.contains("peak"))
    text += describePeak(memory["peak"]);
  uint64_t transient = getNumber(memory, "transient"), live = getNumber(memory, "bound");
  text += makeLine("offsets", formatBytes(transient) + ", " + formatGap(transient, live) +
                                  " above the bytes alive at once: no placement of this order is below " +
                                  formatBytes(live));
  if (memory.contains("order_bound"))
    text += makeLine("order", formatBytes(live) + ", " + formatGap(live, getNumber(memory, "order_bound")) +
                                  " above what every order needs; in the order of the source " +
                                  formatBytes(getNumber(memory, "source_order")));
  text += describeRecomputation(memory);
  if (memory.contains("curve") && memory["curve"].is_array())
    text += describeCurve(memory["curve"]);
  return text;
}

/// To the byte: this is for those who have few.
static std::string formatStack(const Json &use) {
  auto format = [&](const char *key) {
    return use.contains(key) ? std::to_string(getNumber(use, key)) + " B" : "unknown";
  };
  std::string text = format("caller");
  if (!use.contains("worker") || getNumber(use, "worker") > 0)
    text += " (a worker " + format("worker") + ")";
  return text;
}

std::string describeStack(const Json &manifest, const std::string &entry) {
  std::string text;
  if (!manifest.is_object() || !manifest.contains("targets"))
    return text;
  for (const Json &target : manifest["targets"])
    if (target.is_object() && target.contains("stack"))
      for (const Json &use : target["stack"])
        if (getText(use, "name") == entry)
          text += (text.empty() ? "" : ", ") + getText(target, "name") + " " + formatStack(use);
  return text.empty() ? text : makeLine("stack", text);
}

std::string describePlanReport(const Json &report, bool everyEntry) {
  std::string text = "model      " + getText(report, "model") + "\n";
  text += "persistent " + formatBytes(getNumber(report["memory"], "persistent")) + ", constants " +
          formatBytes(getNumber(report["memory"], "constants")) + "\n";
  bool isFirst = true;
  for (const Json &entry : report["entries"]) {
    text += "transient  " + getText(entry, "name") + ": " +
            formatBytes(getNumber(entry["memory"], "transient")) + ", " +
            formatCount(int64_t(entry["steps"].size()), "step") + "\n";
    if (isFirst || everyEntry)
      text += describePlan(entry["memory"]);
    isFirst = false;
  }
  return text;
}

} // namespace ortc::report
