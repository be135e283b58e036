// What a file of --metrics says, as series over steps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/page/metrics_log.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "host/data/mapped_file.h"
#include "host/json.h"

namespace ortc::host {
namespace {

using Json = nlohmann::json;

/// null stands for what is not finite; others than numbers are no points.
bool readValue(const Json &from, double &value) {
  value = from.is_number() ? from.get<double>() : std::numeric_limits<double>::quiet_NaN();
  return from.is_number() || from.is_null();
}

/// What is no series of a line.
bool isPlace(const std::string &key) { return key == "step" || key == "epoch" || key == "event"; }

void addPoint(Series &series, double step, double value) {
  while (!series.steps.empty() && series.steps.back() >= step) {
    series.steps.pop_back();
    series.values.pop_back();
  }
  series.steps.push_back(step);
  series.values.push_back(value);
}

/// The step of a line; false where it has none.
bool readStep(const Json &line, double &step) {
  return line.contains("step") && readValue(line["step"], step) && std::isfinite(step);
}

class Reader {
public:
  explicit Reader(MetricsLog &log) : log(log) {}

  bool readLine(const Json &line) {
    if (!line.is_object())
      return false;
    if (line.contains("event"))
      return line["event"].is_string() && readEvent(line, line["event"]);
    double step = 0, time = 0;
    if (!line.contains("loss") || !readStep(line, step))
      return false;
    if (step <= last) // evaluations of steps that are done again
      for (auto &[key, series] : log.ofEvaluations)
        while (!series.steps.empty() && series.steps.back() >= step) {
          series.steps.pop_back();
          series.values.pop_back();
        }
    last = step;
    addAll(line, step, log.ofSteps);
    if (line.contains("ms") && readValue(line["ms"], time) && std::isfinite(time))
      log.milliseconds += time;
    return true;
  }

private:
  bool readEvent(const Json &line, const std::string &event) {
    double step = 0;
    if (event == "profile") {
      log.profiles.push_back(line);
      return true;
    }
    if (!readStep(line, step))
      return false;
    if (event == "eval")
      addAll(line, step, log.ofEvaluations);
    else if (event == "watch")
      addWatched(line, step);
    else if (event != "save" && event != "best")
      log.events.push_back({int64_t(step), event});
    return true;
  }
  void addWatched(const Json &line, double step) {
    for (const auto &[key, suffix] : {std::pair("values", ""), std::pair("gradients", ", gradient")})
      if (line.contains(key) && line[key].is_object())
        for (const auto &[name, statistics] : line[key].items())
          for (const char *of : {"min", "mean", "max"})
            if (double value = 0;
                statistics.is_object() && statistics.contains(of) && readValue(statistics[of], value))
              addPoint(log.watched[name + suffix][of], step, value);
  }
  static void addAll(const Json &line, double step, std::map<std::string, Series> &series) {
    for (const auto &[key, from] : line.items())
      if (double value = 0; !isPlace(key) && readValue(from, value))
        addPoint(series[key], step, value);
  }

  MetricsLog &log;
  double last = -1;
};

} // namespace

Status MetricsLog::read(const std::string &path, MetricsLog &log) {
  log = MetricsLog();
  log.path = path;
  std::shared_ptr<const MappedFile> file;
  ORTC_TRY(MappedFile::open(path, file));
  std::string text;
  ORTC_TRY(file->read([&] { text.assign(file->getText()); }));
  Reader reader(log);
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos)
      continue;
    if (!reader.readLine(parseJson(line)))
      return Status::refusal(path + ": line " + std::to_string(number) +
                             " is no step and no event of ortc run --metrics");
  }
  return Status();
}

} // namespace ortc::host
