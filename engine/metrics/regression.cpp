// mae, rmse, r2: how far values are from those that are right.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/metrics/metric.h"

#include <cmath>
#include <limits>

namespace ortc::engine {
namespace {

class MeanAbsoluteError : public Metric {
public:
  void add(const Prediction &prediction) override {
    sum += std::fabs(prediction.scores[0] - prediction.value);
    ++counted;
  }
  double compute() override { return sum / double(counted); } // 0 / 0 is NaN

private:
  double sum = 0;
  int64_t counted = 0;
};

class RootMeanSquaredError : public Metric {
public:
  void add(const Prediction &prediction) override {
    double difference = prediction.scores[0] - prediction.value;
    sum += difference * difference;
    ++counted;
  }
  double compute() override { return std::sqrt(sum / double(counted)); }

private:
  double sum = 0;
  int64_t counted = 0;
};

/// 1 - (squared errors) / (squared distances from the mean) of each column, and the mean of that over columns, as
/// scikit-learn and torchmetrics have it. Distances by Welford's algorithm: one pass, and nothing cancels.
class Determination : public Metric {
public:
  explicit Determination(int64_t columns) : columns(size_t(columns)) {}
  void add(const Prediction &prediction) override {
    Column &column = columns[size_t(prediction.column)];
    double error = prediction.scores[0] - prediction.value, distance = prediction.value - column.mean;
    ++column.count;
    column.mean += distance / double(column.count);
    column.distances += distance * (prediction.value - column.mean);
    column.errors += error * error;
  }
  double compute() override {
    double sum = 0;
    for (const Column &column : columns)
      sum += column.count < 2 ? std::numeric_limits<double>::quiet_NaN() : column.compute();
    return sum / double(columns.size());
  }

private:
  struct Column {
    double mean = 0, distances = 0, errors = 0;
    int64_t count = 0;
    /// Of a constant column 1 where it is predicted, and else 0: scikit-learn's finite values.
    double compute() const {
      if (distances == 0)
        return errors == 0 ? 1 : std::isnan(errors) ? errors : 0;
      return 1 - errors / distances;
    }
  };
  std::vector<Column> columns;
};

/// Of a metric without keys.
template <typename Make>
Status parsePlain(const Spec &spec, const std::string &what, MakeMetric &make, Make one) {
  make = [one](const MetricFacts &facts, std::unique_ptr<Metric> &metric) {
    metric = one(facts);
    return Status();
  };
  return checkMetricKeys(spec, what, {});
}

} // namespace

Status parseMae(const Spec &spec, const std::string &what, MakeMetric &make) {
  return parsePlain(spec, what, make,
                    [](const MetricFacts &) { return std::make_unique<MeanAbsoluteError>(); });
}

Status parseRmse(const Spec &spec, const std::string &what, MakeMetric &make) {
  return parsePlain(spec, what, make,
                    [](const MetricFacts &) { return std::make_unique<RootMeanSquaredError>(); });
}

Status parseR2(const Spec &spec, const std::string &what, MakeMetric &make) {
  return parsePlain(spec, what, make,
                    [](const MetricFacts &facts) { return std::make_unique<Determination>(facts.columns); });
}

} // namespace ortc::engine
