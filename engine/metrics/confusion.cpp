// f1 and iou: what the counts of right and wrong predictions of each class give.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/metrics/metric.h"

#include <limits>

namespace ortc::engine {
namespace {

/// How often a class was predicted, was right, and both.
struct ClassCounts {
  int64_t predicted = 0, wanted = 0, both = 0;
  bool isThere() const { return predicted + wanted > 0; }
  /// scikit-learn's value of 0 / 0 is 0.
  double f1() const { return isThere() ? 2 * double(both) / double(predicted + wanted) : 0; }
  double iou() const { return isThere() ? double(both) / double(predicted + wanted - both) : 0; }
};

class Confusion : public Metric {
public:
  explicit Confusion(int64_t classes) : counts(size_t(classes)) {}
  void add(const Prediction &prediction) override {
    int64_t predicted = findLargest(prediction.scores, int64_t(counts.size()));
    ++counts[size_t(prediction.wanted)].wanted;
    if (predicted < 0) // a NaN: no class was predicted
      return;
    ++counts[size_t(predicted)].predicted;
    counts[size_t(predicted)].both += predicted == prediction.wanted;
  }

protected:
  /// Over the classes that were predicted or right; others are not there, as in scikit-learn.
  double average(double (ClassCounts::*value)() const) const {
    double sum = 0;
    int64_t there = 0;
    for (const ClassCounts &count : counts)
      if (count.isThere()) {
        sum += (count.*value)();
        ++there;
      }
    return there ? sum / double(there) : std::numeric_limits<double>::quiet_NaN();
  }
  std::vector<ClassCounts> counts;
};

enum class Average { Binary, Macro, Micro };

class F1 : public Confusion {
public:
  F1(int64_t classes, Average mode) : Confusion(classes), mode(mode) {}
  double compute() override {
    if (mode == Average::Macro)
      return average(&ClassCounts::f1);
    ClassCounts all;
    for (const ClassCounts &count : counts) {
      all.predicted += count.predicted;
      all.wanted += count.wanted;
      all.both += count.both;
    }
    if (!all.isThere())
      return std::numeric_limits<double>::quiet_NaN();
    return mode == Average::Micro ? all.f1() : counts[1].f1();
  }

private:
  Average mode;
};

class Iou : public Confusion {
public:
  using Confusion::Confusion;
  double compute() override { return average(&ClassCounts::iou); }
};

} // namespace

Status parseF1(const Spec &spec, const std::string &what, MakeMetric &make) {
  ORTC_TRY(checkMetricKeys(spec, what, {"average"}));
  auto given = spec.values.find("average");
  std::string average = given == spec.values.end() ? "" : given->second;
  if (!average.empty() && average != "binary" && average != "macro" && average != "micro")
    return Status::refusal(what + ": average is '" + average + "'; " +
                           describeNames(average, {"binary", "macro", "micro"}));
  make = [average, what](const MetricFacts &facts, std::unique_ptr<Metric> &metric) {
    if (average == "binary" && facts.classes != 2)
      return Status::refusal(what + ": average=binary is for two classes, and the output has " +
                             std::to_string(facts.classes) + "; macro and micro fit");
    Average mode = average == "micro"                         ? Average::Micro
                   : average == "macro" || facts.classes != 2 ? Average::Macro
                                                              : Average::Binary;
    metric = std::make_unique<F1>(facts.classes, mode);
    return Status();
  };
  return Status();
}

Status parseIou(const Spec &spec, const std::string &what, MakeMetric &make) {
  make = [](const MetricFacts &facts, std::unique_ptr<Metric> &metric) {
    metric = std::make_unique<Iou>(facts.classes);
    return Status();
  };
  return checkMetricKeys(spec, what, {});
}

} // namespace ortc::engine
