// The metrics that --metric names, over the slices of an evaluation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/metrics/metric_set.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "support/Plural.h"
#include "support/Text.h"

namespace ortc::engine {

const std::vector<MetricKind> &listMetrics() {
  using enum LabelKind;
  static const std::vector<MetricKind> kinds = {
      {"accuracy", {Indices, Probabilities, Decisions}, parseAccuracy},
      {"topk", {Indices, Probabilities}, parseTopK},
      {"f1", {Indices, Probabilities, Decisions}, parseF1},
      {"auc", {Indices, Probabilities, Decisions}, parseAuc},
      {"iou", {Indices, Probabilities, Decisions}, parseIou},
      {"perplexity", {Indices}, parsePerplexity},
      {"token_accuracy", {Indices}, parseTokenAccuracy},
      {"label_error_rate", {Sequences}, parseLabelErrorRate},
      {"mae", {Values}, parseMae},
      {"rmse", {Values}, parseRmse},
      {"r2", {Values}, parseR2},
  };
  return kinds;
}

static const char *getLabelText(LabelKind kind) {
  switch (kind) {
  case LabelKind::Indices:
    return "indices of classes";
  case LabelKind::Probabilities:
    return "probabilities of classes";
  case LabelKind::Decisions:
    return "probabilities beside logits";
  case LabelKind::Values:
    return "values";
  case LabelKind::Sequences:
    return "sequences of classes";
  }
  return "";
}

static bool takes(const MetricKind &kind, LabelKind labels) {
  return std::find(kind.labels.begin(), kind.labels.end(), labels) != kind.labels.end();
}

bool MetricSet::has(const std::string &spec) const {
  return std::any_of(wanted.begin(), wanted.end(), [&](const Wanted &one) { return one.spec == spec; });
}

void MetricSet::add(const std::string &name, std::shared_ptr<SliceMetric> metric) {
  wanted.push_back({name, nullptr, nullptr, {}, nullptr, std::move(metric)});
}

bool MetricSet::readsAll() const {
  return std::any_of(wanted.begin(), wanted.end(), [](const Wanted &one) { return one.other != nullptr; });
}

Status checkMetricKeys(const Spec &spec, const std::string &what, std::vector<std::string> keys) {
  for (const char *key : {"output", "label", "axis", "ignore"})
    keys.push_back(key);
  return checkKeys(spec, what, keys);
}

/// Takes the keys out of the spec that all metrics have.
static Status readComparison(const std::string &what, Spec &spec, Comparison &comparison) {
  auto take = [&spec](const char *key) {
    auto found = spec.values.extract(key);
    return found.empty() ? std::string() : found.mapped();
  };
  auto readInteger = [&](const char *key, std::optional<int64_t> &value) {
    if (!spec.values.count(key))
      return Status();
    ORTC_TRY(readWhole(spec, what, key, INT32_MIN, INT32_MAX, value.emplace(0)));
    spec.values.erase(key);
    return Status();
  };
  comparison.output = take("output");
  comparison.label = take("label");
  ORTC_TRY(readInteger("axis", comparison.axis));
  ORTC_TRY(readInteger("ignore", comparison.ignore));
  if (comparison.output.empty() != comparison.label.empty() ||
      (comparison.output.empty() && (comparison.axis || comparison.ignore)))
    return Status::refusal(what +
                           ": output=NAME and label=INPUT belong together, and axis and ignore to them");
  return Status();
}

Status MetricSet::add(const std::string &text) {
  if (has(text))
    return Status();
  Spec spec;
  const std::string what = "metric '" + text + "'";
  ORTC_TRY(parseSpec(text, what, spec));
  const std::vector<MetricKind> &kinds = listMetrics();
  auto kind =
      std::find_if(kinds.begin(), kinds.end(), [&](const MetricKind &one) { return one.name == spec.name; });
  if (kind == kinds.end()) {
    std::vector<std::string> names;
    for (const MetricKind &one : kinds)
      names.push_back(one.name);
    return Status::refusal(what + ": there is no metric '" + spec.name + "'; " +
                           describeNames(spec.name, names));
  }
  Wanted one{text, &*kind, nullptr, {}, nullptr};
  ORTC_TRY(readComparison(what, spec, one.asked));
  ORTC_TRY(kind->parse(spec, what, one.make));
  wanted.push_back(std::move(one));
  return Status();
}

static Status findNamed(const std::string &what, const std::string &kind, const std::vector<TensorShape> &all,
                        const std::string &name, TensorShape &found) {
  found = findShape(all, name);
  if (found.type != DataType::None)
    return Status();
  std::vector<std::string> names;
  for (const TensorShape &one : all)
    names.push_back(one.name);
  return Status::refusal(what + ": evaluation has no " + kind + " '" + name + "'; " +
                         describeNames(name, names));
}

Status MetricSet::begin(const std::vector<LossInfo> &losses, const std::vector<TensorShape> &outputs,
                        const std::vector<TensorShape> &inputs) {
  groups.clear();
  const LossInfo &loss = losses.front();
  for (Wanted &one : wanted) {
    if (one.other) {
      one.other->begin();
      continue;
    }
    const std::string what = "metric '" + one.spec + "'";
    Comparison comparison = one.asked;
    TensorShape output, label;
    bool isNamed = !comparison.output.empty();
    if (isNamed) {
      ORTC_TRY(findNamed(what, "output", outputs, comparison.output, output));
      ORTC_TRY(findNamed(what, "input", inputs, comparison.label, label));
      ORTC_TRY(compareNamed(what, losses, one.kind->labels, output, label, comparison));
    } else {
      output = findShape(outputs, loss.output);
      label = findShape(inputs, loss.label);
      if (losses.size() > 1)
        return Status::refusal(what + ": there are " + formatCount(int64_t(losses.size()), "loss", "losses") +
                               kNameWhatToCompare);
      ORTC_TRY(compareLoss(what, loss, output, label, comparison));
    }
    LabelKind labels = comparison.facts.labels;
    if (!takes(*one.kind, labels)) {
      std::vector<std::string> own, fitting;
      for (LabelKind other : one.kind->labels)
        own.push_back(getLabelText(other));
      for (const MetricKind &other : listMetrics())
        if (takes(other, labels))
          fitting.push_back(other.name);
      return Status::refusal(what + " needs labels that are " + joinWords(own, "or") + ", and those of " +
                             (isNamed ? "'" + comparison.label + "'" : "the loss '" + loss.kind + "'") +
                             " are " + getLabelText(labels) + "; it fits " + joinWords(fitting));
    }
    ORTC_TRY(one.make(comparison.facts, one.metric));
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group &other) { return other.comparison.isSame(comparison); });
    if (group == groups.end())
      group = groups.insert(group, Group{comparison, {}});
    group->metrics.push_back(one.metric.get());
  }
  return Status();
}

std::vector<std::string> MetricSet::getOutputs() const {
  std::vector<std::string> names;
  for (const Group &group : groups)
    names.push_back(group.comparison.output);
  return names;
}

std::vector<std::string> MetricSet::getTensors() const {
  std::vector<std::string> names;
  for (const Group &group : groups) {
    const Comparison &read = group.comparison;
    for (const std::string &name : {read.output, read.label, read.inputLengths, read.targetLengths})
      if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
  }
  return names;
}

Status MetricSet::addSlice(const FindTensor &find, int64_t rows, int64_t batch) {
  for (Group &group : groups) {
    const Shape shape = find(group.comparison.label).shape;
    const int64_t labels = std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
    for (Metric *metric : group.metrics)
      ORTC_TRY(metric->expect(labels));
    readPredictions(group.comparison, find, rows, batch, [&](const Prediction &prediction) {
      for (Metric *metric : group.metrics)
        metric->add(prediction);
    });
  }
  for (const Wanted &one : wanted)
    if (one.other)
      ORTC_TRY(one.other->addSlice(find, rows, batch));
  return Status();
}

std::vector<std::pair<std::string, double>> MetricSet::compute() {
  std::vector<std::pair<std::string, double>> values;
  for (const Wanted &one : wanted)
    values.push_back({one.spec, one.other ? one.other->compute() : one.metric->compute()});
  return values;
}

} // namespace ortc::engine
