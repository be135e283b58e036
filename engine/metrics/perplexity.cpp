// perplexity: the exponential of the mean negative logarithm of the probabilities of what is right.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/metrics/metric.h"

#include <algorithm>
#include <cmath>

namespace ortc::engine {
namespace {

class Perplexity : public Metric {
public:
  explicit Perplexity(int64_t classes) : classes(classes) {}
  void add(const Prediction &prediction) override {
    sum += logSumExp(prediction.scores) - prediction.scores[prediction.wanted];
    ++counted;
  }
  double compute() override { return std::exp(sum / double(counted)); } // 0 / 0 is NaN

private:
  /// 0 where scores are logarithms of probabilities already.
  double logSumExp(const double *scores) const {
    double largest = *std::max_element(scores, scores + classes), total = 0;
    if (std::isinf(largest)) // nothing is left of the others; differences would be NaN
      return largest;
    for (int64_t i = 0; i < classes; ++i)
      total += std::exp(scores[i] - largest);
    return largest + std::log(total);
  }
  int64_t classes, counted = 0;
  double sum = 0;
};

} // namespace

Status parsePerplexity(const Spec &spec, const std::string &what, MakeMetric &make) {
  make = [](const MetricFacts &facts, std::unique_ptr<Metric> &metric) {
    metric = std::make_unique<Perplexity>(facts.classes);
    return Status();
  };
  return checkMetricKeys(spec, what, {});
}

} // namespace ortc::engine
