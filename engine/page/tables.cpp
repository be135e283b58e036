// Tables of a report: runs, memory plans, profiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/page/tables.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/page/chart.h"
#include "support/Json.h"
#include "support/MappedFile.h"
#include "support/Text.h"

namespace ortc::engine {
namespace {

using Json = nlohmann::json;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Rows of cells; the first row is the head. Cells are text, not HTML.
class Table {
public:
  explicit Table(const std::vector<std::string> &head) { addCells(head, "th"); }
  void add(const std::vector<std::string> &cells) { addCells(cells, "td"); }
  std::string finish() const { return "<table>" + html + "</table>\n"; }

private:
  void addCells(const std::vector<std::string> &cells, const std::string &tag) {
    html += "<tr>";
    for (const std::string &cell : cells)
      html += "<" + tag + ">" + escapeHtml(cell) + "</" + tag + ">";
    html += "</tr>\n";
  }
  std::string html;
};

std::string heading(const std::string &text) { return "<h2>" + escapeHtml(text) + "</h2>\n"; }

/// A member that may not be there, or may be something else: others may have written the file.
const Json &get(const Json &from, const char *key) {
  static const Json none;
  auto found = from.is_object() ? from.find(key) : from.end();
  return from.is_object() && found != from.end() ? *found : none;
}
double getNumber(const Json &from, const char *key) {
  const Json &value = get(from, key);
  return value.is_number() ? value.get<double>() : kNone;
}
std::string getText(const Json &from, const char *key) {
  const Json &value = get(from, key);
  return value.is_string() ? value.get<std::string>() : "";
}
/// "" where a number is missing.
std::string show(double value, int digits = 4) { return std::isnan(value) ? "" : formatShort(value, digits); }
std::string showBytes(double bytes) {
  return bytes >= 0 && bytes < 0x1p63 ? formatBytes(uint64_t(bytes)) : "";
}

std::string describeValue(double value) {
  return std::isfinite(value) ? formatShort(value, 5) : "not finite";
}

int64_t countBad(const Series &series) {
  return std::count_if(series.values.begin(), series.values.end(),
                       [](double value) { return !std::isfinite(value); });
}

/// The last value of a series, and how many are not finite.
std::string describeLast(const Series &series, int64_t bad, const std::string &weights) {
  return describeValue(series.values.back()) + (weights.empty() ? "" : " (" + weights + ")") +
         (bad ? " (" + formatCount(bad, "value") + " not finite)" : "");
}

using Evaluations = std::map<std::string, Series>; ///< by the averages that they are of

std::string describeLast(const Evaluations &evaluations) {
  const Series *last = nullptr;
  std::string of;
  int64_t bad = 0;
  for (const auto &[weights, series] : evaluations) {
    bad += countBad(series);
    if (!series.steps.empty() && (!last || series.steps.back() >= last->steps.back())) {
      last = &series;
      of = weights;
    }
  }
  return last ? describeLast(*last, bad, of) : "";
}

std::string describeSmallest(const Evaluations &evaluations) {
  double smallest = HUGE_VAL, step = 0;
  std::string of;
  for (const auto &[weights, series] : evaluations)
    for (size_t i = 0; i < series.values.size(); ++i)
      if (series.values[i] < smallest) {
        smallest = series.values[i];
        step = series.steps[i];
        of = weights;
      }
  return smallest == HUGE_VAL ? ""
                              : formatShort(smallest, 5) + " (step " + formatShort(step, 16) +
                                    (of.empty() ? "" : ", " + of) + ")";
}

const Series *find(const std::map<std::string, Series> &all, const std::string &key) {
  auto found = all.find(key);
  return found == all.end() ? nullptr : &found->second;
}

std::string describeEvents(const MetricsLog &run) {
  std::string text;
  for (const auto &[step, event] : run.events)
    text += (text.empty() ? "" : ", ") + event + " (step " + std::to_string(step) + ")";
  return text;
}

std::string drawPeak(const Json &entry) {
  const Json &peak = get(get(entry, "memory"), "peak"), &tensors = get(peak, "tensors");
  if (!tensors.is_array() || tensors.empty())
    return "";
  Table table({"tensor at the peak", "type", "bytes", "offset", "first step", "last step"});
  for (const Json &tensor : tensors)
    table.add({getText(tensor, "name"), getText(tensor, "type"), showBytes(getNumber(tensor, "bytes")),
               show(getNumber(tensor, "offset"), 15), show(getNumber(tensor, "first")),
               show(getNumber(tensor, "last"))});
  return "<p>" + escapeHtml(getText(entry, "name")) + ": most bytes in step " +
         show(getNumber(peak, "step")) + " (" + escapeHtml(getText(peak, "kernel")) + ")</p>\n" +
         table.finish();
}

} // namespace

std::string drawRuns(const std::vector<MetricsLog> &runs) {
  Table table({"run", "steps", "last loss", "smallest loss of an evaluation", "last evaluation", "ms a step",
               "seconds of steps", "events"});
  for (const MetricsLog &run : runs) {
    const Series *loss = find(run.ofSteps, "loss"), *times = find(run.ofSteps, "ms");
    auto evaluated = run.ofEvaluations.find("eval_loss");
    const Evaluations evaluations = evaluated == run.ofEvaluations.end() ? Evaluations() : evaluated->second;
    if (!loss || loss->steps.empty()) {
      table.add({run.path, "no steps", "", "", "", "", "", describeEvents(run)});
      continue;
    }
    double sum = 0;
    int64_t count = 0;
    for (size_t i = 0; times && i < times->values.size(); ++i)
      if (std::isfinite(times->values[i])) {
        sum += times->values[i];
        ++count;
      }
    table.add({run.path, formatShort(loss->steps.back(), 16), describeLast(*loss, countBad(*loss), ""),
               describeSmallest(evaluations), describeLast(evaluations),
               count > 0 ? formatShort(sum / double(count)) : "", formatShort(run.milliseconds / 1e3),
               describeEvents(run)});
  }
  return table.finish();
}

std::string drawProfile(const std::string &run, const Json &profile) {
  double total = getNumber(profile, "ms");
  std::string html = heading("Profile of " + run) + "<p>" + show(getNumber(profile, "steps"), 15) +
                     " steps of " + show(total) + " ms; between kernels " +
                     show(getNumber(profile, "between_ms")) +
                     " ms, the data (waiting for it, copies of the inputs) " +
                     show(getNumber(profile, "data_ms")) + " ms</p>\n";
  Table table({"ms a step", "share", "calls", "GFLOP/s", "GB/s", "of bound", "work", "shape", "place"});
  for (const Json &kernel : get(profile, "kernels")) {
    double ms = getNumber(kernel, "ms"), bound = getNumber(kernel, "bound_ms");
    auto percent = [](double part, double whole) {
      return std::isnan(part / whole) ? "" : formatShort(100 * part / whole, 3) + " %";
    };
    std::string work = getText(kernel, "work");
    table.add({show(ms), percent(ms, total), show(getNumber(kernel, "calls")),
               show(getNumber(kernel, "flops") / ms * 1e-6), show(getNumber(kernel, "bytes") / ms * 1e-6),
               percent(bound, ms), work.empty() ? getText(kernel, "name") : work, getText(kernel, "shape"),
               getText(kernel, "place")});
  }
  return html + table.finish();
}

Status drawPlan(const std::string &path, std::string &html) {
  std::shared_ptr<const MappedFile> file;
  ORTC_TRY(MappedFile::open(path, file));
  std::string text;
  ORTC_TRY(file->read([&] { text.assign(file->getText()); }));
  Json plan = parseJson(text);
  const Json &entries = get(plan, "entries"), &memory = get(plan, "memory");
  if (!entries.is_array() || !memory.is_object())
    return Status::refusal(
        path + ": is no manifest.json and no report of ortc plan: it has no 'memory' and 'entries'");
  html = heading("Memory plan of " + path) + "<p>persistent " + showBytes(getNumber(memory, "persistent")) +
         ", constants " + showBytes(getNumber(memory, "constants")) + "</p>\n";
  Table table({"entry", "transient", "no plan of its order is below", "no order is below",
               "in the order of the source"});
  std::string peaks;
  for (const Json &entry : entries) {
    const Json &of = get(entry, "memory");
    table.add({getText(entry, "name"), showBytes(getNumber(of, "transient")),
               showBytes(getNumber(of, "bound")), showBytes(getNumber(of, "order_bound")),
               showBytes(getNumber(of, "source_order"))});
    if (peaks.empty()) // of the training step; the others are no larger, mostly
      peaks = drawPeak(entry);
  }
  html += table.finish() + peaks;
  return Status();
}

} // namespace ortc::engine
