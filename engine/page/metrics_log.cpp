// What a file of --metrics says, as series over steps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/page/metrics_log.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/Json.h"
#include "support/MappedFile.h"

namespace ortc::engine {
namespace {

using Json = nlohmann::json;

/// null stands for what is not finite; others than numbers are no points.
bool readValue(const Json &from, double &value) {
  value = from.is_number() ? from.get<double>() : std::numeric_limits<double>::quiet_NaN();
  return from.is_number() || from.is_null();
}

/// What is no series of a line.
bool isPlace(const std::string &key) { return key == "step" || key == "epoch" || key == "event"; }

/// What is a word.
bool isWord(const std::string &key) { return key == "binding" || key == "weights"; }

void dropFrom(Series &series, double step) {
  while (!series.steps.empty() && series.steps.back() >= step) {
    series.steps.pop_back();
    series.values.pop_back();
  }
}

void addPoint(Series &series, double step, double value) {
  dropFrom(series, step);
  series.steps.push_back(step);
  series.values.push_back(value);
}

/// The step of a line; false where it has none.
bool readStep(const Json &line, double &step) {
  constexpr double kMost = 1LL << 53; // what a double counts
  return line.contains("step") && readValue(line["step"], step) && step >= 0 && step <= kMost &&
         std::trunc(step) == step;
}

class Reader {
public:
  explicit Reader(MetricsLog &log) : log(log) {}

  /// The key that has no value which a run writes, where that is what is wrong.
  const std::string &getWrong() const { return wrong; }

  bool readLine(const Json &line) {
    if (!line.is_object())
      return false;
    if (line.contains("event"))
      return line["event"].is_string() && readEvent(line, line["event"]);
    double step = 0, time = 0;
    if (!line.contains("loss") || !readStep(line, step))
      return false;
    if (step <= last) // evaluations of steps that are done again
      for (auto &[key, ofWeights] : log.ofEvaluations)
        for (auto &[weights, series] : ofWeights)
          dropFrom(series, step);
    last = step;
    if (!addAll(line, step, [this](const std::string &key) -> Series & { return log.ofSteps[key]; }))
      return false;
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
    if (event == "eval") {
      const std::string weights =
          line.contains("weights") && line["weights"].is_string() ? line["weights"].get<std::string>() : "";
      return addAll(line, step,
                    [&](const std::string &key) -> Series & { return log.ofEvaluations[key][weights]; });
    }
    if (event == "watch")
      return addWatched(line, step);
    if (event != "save" && event != "best")
      log.events.push_back({int64_t(step), event});
    return true;
  }
  bool addWatched(const Json &line, double step) {
    for (const auto &[key, suffix] : {std::pair("values", ""), std::pair("gradients", ", gradient")}) {
      if (!line.contains(key))
        continue;
      if (!line[key].is_object())
        return refuse(key);
      for (const auto &[name, statistics] : line[key].items())
        for (const char *of : {"min", "mean", "max"}) {
          double value = 0;
          if (!statistics.is_object() || !statistics.contains(of) || !readValue(statistics[of], value))
            return refuse(name);
          addPoint(log.watched[name + suffix][of], step, value);
        }
    }
    return true;
  }
  /// False, and what is wrong, where something is neither a number nor the word that it may be.
  template <typename Find> bool addAll(const Json &line, double step, Find findSeries) {
    for (const auto &[key, from] : line.items()) {
      double value = 0;
      if (isPlace(key) || (isWord(key) && from.is_string()))
        continue;
      if (!readValue(from, value))
        return refuse(key);
      addPoint(findSeries(key), step, value);
    }
    return true;
  }
  bool refuse(const std::string &key) {
    wrong = key.substr(0, 40);
    return false;
  }

  MetricsLog &log;
  double last = -1;
  std::string wrong;
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
                             (reader.getWrong().empty()
                                  ? " is no step and no event of ortc run --metrics"
                                  : " has '" + reader.getWrong() + "', which is no number there"));
  }
  return Status();
}

} // namespace ortc::engine
