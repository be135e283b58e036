// label_error_rate: labels to insert, remove or replace in what is predicted of a sequence, over the labels there are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is predicted is the best class of every frame, without repetitions and blanks (greedy decoding).
#include "engine/metrics/metric.h"

#include <limits>

#include "support/EditDistance.h"

namespace ortc::engine {
namespace {

class LabelErrorRate : public Metric {
public:
  explicit LabelErrorRate(int64_t blank) : blank(blank) {}
  void add(const Prediction &prediction) override {
    predicted.clear();
    int64_t last = blank;
    for (int64_t each : prediction.frames) {
      if (each != last && each != blank)
        predicted.push_back(each);
      last = each;
    }
    wrong += countEdits(std::span<const int64_t>(predicted), prediction.labels);
    counted += prediction.labels.size();
  }
  double compute() override {
    return counted ? double(wrong) / double(counted) : std::numeric_limits<double>::quiet_NaN();
  }

private:
  int64_t blank;
  size_t wrong = 0, counted = 0;
  std::vector<int64_t> predicted;
};

} // namespace

Status parseLabelErrorRate(const Spec &spec, const std::string &what, MakeMetric &make) {
  make = [](const MetricFacts &facts, std::unique_ptr<Metric> &metric) {
    metric = std::make_unique<LabelErrorRate>(facts.blank);
    return Status();
  };
  return checkMetricKeys(spec, what, {});
}

} // namespace ortc::engine
