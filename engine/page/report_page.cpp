// `ortc report`: runs, plans and profiles as one page that needs no scripts and loads nothing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/page/report_page.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "engine/page/chart.h"
#include "engine/page/tables.h"
#include "engine/report.h"
#include "support/AtomicFile.h"
#include "support/OutputPaths.h"
#include "support/Text.h"

namespace ortc::engine {
namespace {

constexpr const char *kStyle =
    ":root{color-scheme:light dark}body{font:14px system-ui,sans-serif;max-width:1340px;margin:1em "
    "auto;padding:"
    "0 "
    "1em;background:#fff;color:#111}h1{font-size:1.4em}h2{font-size:1.15em}.charts{display:flex;flex-wrap:"
    "wrap}"
    "figure{flex:1 1 560px;max-width:660px;margin:0 1em 1.5em "
    "0;min-width:0}figcaption{font-weight:600}svg{width:100%;height:auto"
    "}ul{list-style:none;margin:.3em 0;padding:0}li{display:inline-block;margin-right:1.2em;overflow-wrap:"
    "anywhere}table{margin-bottom:1em}.key{width:28px;height:12px;vertical-align:middle}table{border-"
    "collapse:collapse;display:block;"
    "overflow-x:auto}td,th{padding:2px 10px;border-bottom:1px solid #8884;text-align:left}"
    // Letters of a drawing that is scaled down are larger in it.
    "@media(max-width:640px){.charts{display:block}figure{margin-right:0}svg "
    "text{font-size:17px}body{padding:0 "
    ".5em}}@media(prefers-color-scheme:dark){body{background:#121212;color:#eee}}";

/// The name of an axis.
std::string nameQuantity(const std::string &key) {
  return key == "lr" ? "learning rate" : key == "ms" ? "milliseconds of a step" : key;
}

/// One chart for each key of steps and evaluations; the losses of both share theirs.
std::vector<Chart> listCharts(const std::vector<MetricsLog> &runs) {
  std::vector<std::string> keys = {"loss"};
  std::set<std::string> others;
  for (const MetricsLog &run : runs) {
    for (const auto &[key, series] : run.ofEvaluations)
      others.insert(key);
    for (const auto &[key, series] : run.ofSteps)
      others.insert(key);
  }
  others.erase("loss");
  others.erase("eval_loss");
  keys.insert(keys.end(), others.begin(), others.end());
  std::vector<Chart> charts;
  for (const std::string &key : keys) {
    Chart chart{key, nameQuantity(key), {}};
    for (size_t i = 0; i < runs.size(); ++i) {
      if (auto found = runs[i].ofSteps.find(key); found != runs[i].ofSteps.end())
        chart.curves.push_back({runs[i].path, &found->second, i, LineStyle::Solid});
      if (auto found = runs[i].ofEvaluations.find(key == "loss" ? "eval_loss" : key);
          found != runs[i].ofEvaluations.end())
        for (const auto &[weights, series] : found->second)
          chart.curves.push_back(
              {runs[i].path + ", evaluation" + (weights.empty() ? "" : " of averages (" + weights + ")"),
               &series, i, weights.empty() ? LineStyle::Dashed : LineStyle::Dotted});
    }
    if (!chart.curves.empty())
      charts.push_back(std::move(chart));
  }
  return charts;
}

/// One chart for each tensor that a run has watched.
std::vector<Chart> listWatched(const std::vector<MetricsLog> &runs) {
  std::set<std::string> names;
  for (const MetricsLog &run : runs)
    for (const auto &[name, statistics] : run.watched)
      names.insert(name);
  std::vector<Chart> charts;
  for (const std::string &name : names) {
    Chart &chart = charts.emplace_back(Chart{name, "value", {}});
    for (size_t i = 0; i < runs.size(); ++i)
      if (auto found = runs[i].watched.find(name); found != runs[i].watched.end())
        for (const auto &[of, series] : found->second)
          chart.curves.push_back(
              {runs[i].path + ", " + of, &series, i, of == "mean" ? LineStyle::Solid : LineStyle::Dashed});
  }
  return charts;
}

std::string drawFigures(const std::vector<Chart> &charts) {
  std::string html = "<div class=\"charts\">\n";
  for (const Chart &chart : charts)
    html += drawFigure(chart);
  return html + "</div>\n";
}

enum class Format { Html, Svg };

/// By the end of the file's name. A picture of pixels would need a library that draws letters, which nothing else here
/// needs, and every browser makes one.
Status findFormat(const ReportOptions &options, Format &format) {
  std::string end = std::filesystem::path(options.output).extension().string();
  std::transform(end.begin(), end.end(), end.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  format = end == ".svg" ? Format::Svg : Format::Html;
  if (format == Format::Html && end != ".html" && end != ".htm" && !end.empty())
    return Status::refusal(
        "-o " + options.output + ": ortc report does not write " + end +
        " files; name it .html for a page, or .svg for the charts alone, which browsers and "
        "rsvg-convert make into pictures of other kinds");
  if (format == Format::Svg && !options.plans.empty())
    return Status::refusal("-o " + options.output +
                           ": a file of charts has no place for the tables of --plan; name " + "it .html");
  return Status();
}

/// The page, or the plan of it that cannot be read.
Status drawPage(const std::vector<MetricsLog> &runs, const std::vector<std::string> &plans,
                std::string &html) {
  const std::vector<Chart> watched = listWatched(runs);
  html = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
         "content=\"width=device-width,initial-scale=1\"><title>ortc report</title>\n<style>" +
         makeChartStyle() + kStyle + "</style></head>\n<body><h1>Training runs</h1>\n" + drawRuns(runs) +
         drawFigures(listCharts(runs)) +
         (watched.empty() ? "" : "<h2>Watched tensors</h2>\n" + drawFigures(watched));
  for (const MetricsLog &run : runs)
    for (const nlohmann::json &profile : run.profiles)
      html += drawProfile(run.path, profile);
  for (const std::string &path : plans) {
    std::string plan;
    ORTC_TRY(drawPlan(path, plan));
    html += plan;
  }
  html += "</body></html>\n";
  return Status();
}

} // namespace

Status writeReportPage(const ReportOptions &options) {
  std::vector<NamedFile> inputs;
  for (const std::string &run : options.runs)
    inputs.push_back({"METRICS", run});
  for (const std::string &plan : options.plans)
    inputs.push_back({"--plan", plan});
  ORTC_TRY(checkOutputs(inputs, {{"-o", options.output}}));
  Format format = Format::Html;
  ORTC_TRY(findFormat(options, format));
  std::vector<MetricsLog> runs(options.runs.size());
  for (size_t i = 0; i < runs.size(); ++i)
    ORTC_TRY(MetricsLog::read(options.runs[i], runs[i]));
  std::string text;
  if (format == Format::Html) {
    ORTC_TRY(drawPage(runs, options.plans, text));
  } else {
    std::vector<Chart> charts = listCharts(runs), watched = listWatched(runs);
    charts.insert(charts.end(), watched.begin(), watched.end());
    text = drawDocument(charts);
  }
  ORTC_TRY(writeFile(options.output, text));
  Reporter(options.quiet).line("wrote " + options.output + ": " + formatCount(int64_t(runs.size()), "run"));
  return Status();
}

} // namespace ortc::engine
