// `ortc report`: runs, plans and profiles as one page that needs no scripts and loads nothing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/page/report_page.h"

#include <set>

#include "host/data/atomic_file.h"
#include "host/data/output_paths.h"
#include "host/page/chart.h"
#include "host/page/tables.h"
#include "host/report.h"
#include "host/text.h"

namespace ortc::host {
namespace {

/// Colours that people with any eyes tell apart (Okabe and Ito), on white and on black.
constexpr const char *kColourValues[kColours] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#56b4e9", "#e69f00", "#8c6bb1", "#808080"};

std::string makeStyle() {
  std::string style = ":root{color-scheme:light dark}body{font:14px "
                      "system-ui,sans-serif;max-width:1340px;margin:1em auto;padding:0 "
                      "1em}h1{font-size:1.4em}h2{font-size:1.15em}.charts{display:flex;flex-wrap:wrap}figure{"
                      "flex:1 1 600px;margin:0 "
                      "1em 1em 0;min-width:0}figcaption{font-weight:600}svg{width:100%;height:auto}svg "
                      "text{font-size:11px;fill:currentColor}.grid{stroke:#8884}polyline{fill:none;stroke-"
                      "width:1.5}polygon{stroke:"
                      "none;opacity:.2}.d polyline{stroke-dasharray:5 "
                      "3}table{border-collapse:collapse;display:block;overflow-x:auto}"
                      "td,th{padding:2px 10px;border-bottom:1px solid #8884;text-align:left}";
  for (size_t i = 0; i < kColours; ++i) {
    std::string name = ".c" + std::to_string(i), value = kColourValues[i];
    style += "span" + name + "{color:" + value + "}" + name + " polyline{stroke:" + value + "}" + name +
             " polygon," + name + " circle{fill:" + value + "}";
  }
  return style;
}

/// One chart for each key of steps and evaluations; the losses of both share theirs.
std::string drawCharts(const std::vector<MetricsLog> &runs) {
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
  std::string html;
  for (const std::string &key : keys) {
    std::vector<Curve> curves;
    for (size_t i = 0; i < runs.size(); ++i) {
      auto add = [&](const std::map<std::string, Series> &all, const std::string &name, const char *what,
                     bool isDashed) {
        if (auto found = all.find(name); found != all.end())
          curves.push_back({runs[i].path + what, &found->second, i, isDashed});
      };
      add(runs[i].ofSteps, key, "", false);
      add(runs[i].ofEvaluations, key == "loss" ? "eval_loss" : key, key == "loss" ? ", evaluation" : "",
          true);
    }
    if (!curves.empty())
      html += drawChart(key, curves);
  }
  return html;
}

/// One chart for each tensor that a run has watched.
std::string drawWatched(const std::vector<MetricsLog> &runs) {
  std::set<std::string> names;
  for (const MetricsLog &run : runs)
    for (const auto &[name, statistics] : run.watched)
      names.insert(name);
  std::string html;
  for (const std::string &name : names) {
    std::vector<Curve> curves;
    for (size_t i = 0; i < runs.size(); ++i)
      if (auto found = runs[i].watched.find(name); found != runs[i].watched.end())
        for (const auto &[of, series] : found->second)
          curves.push_back({runs[i].path + ", " + of, &series, i, of != "mean"});
    html += drawChart(name, curves);
  }
  return html.empty() ? "" : "<h2>Watched tensors</h2>\n<div class=\"charts\">\n" + html + "</div>\n";
}

} // namespace

Status writeReportPage(const ReportOptions &options) {
  std::vector<NamedFile> inputs;
  for (const std::string &run : options.runs)
    inputs.push_back({"METRICS", run});
  for (const std::string &plan : options.plans)
    inputs.push_back({"--plan", plan});
  ORTC_TRY(checkOutputs(inputs, {{"-o", options.output}}));
  std::vector<MetricsLog> runs(options.runs.size());
  for (size_t i = 0; i < runs.size(); ++i)
    ORTC_TRY(MetricsLog::read(options.runs[i], runs[i]));
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>ortc report</title>\n<style>" +
      makeStyle() + "</style></head>\n<body><h1>Training runs</h1>\n" + drawRuns(runs) +
      "<div class=\"charts\">\n" + drawCharts(runs) + "</div>\n" + drawWatched(runs);
  for (const MetricsLog &run : runs)
    for (const nlohmann::json &profile : run.profiles)
      html += drawProfile(run.path, profile);
  for (const std::string &path : options.plans) {
    std::string plan;
    ORTC_TRY(drawPlan(path, plan));
    html += plan;
  }
  ORTC_TRY(writeFile(options.output, html + "</body></html>\n"));
  Reporter(options.quiet).line("wrote " + options.output + ": " + formatCount(int64_t(runs.size()), "run"));
  return Status();
}

} // namespace ortc::host
