// The metrics that --metric names, over the slices of an evaluation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/metrics/metric_set.h"

#include <algorithm>

#include "host/data/convert.h"

namespace ortc::host {

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
  }
  return "";
}

static bool takes(const MetricKind &kind, LabelKind labels) {
  return std::find(kind.labels.begin(), kind.labels.end(), labels) != kind.labels.end();
}

bool MetricSet::has(const std::string &spec) const {
  return std::any_of(wanted.begin(), wanted.end(), [&](const Wanted &one) { return one.spec == spec; });
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
  Wanted one{text, &*kind, nullptr};
  ORTC_TRY(kind->parse(spec, what, one.make));
  wanted.push_back(std::move(one));
  return Status();
}

/// What the labels are, by the loss and by their type.
Status MetricSet::describe(const TensorShape &output, const TensorShape &label) {
  const std::string what = "metric '" + wanted[0].spec + "'";
  if (loss.isInGraph)
    return Status::refusal(what +
                           ": the graph computes its loss, so no label is known to compare an output with; "
                           "compile with --loss NAME instead of --loss output:NAME");
  if (output.type == DataType::None)
    return Status::refusal(what + ": the artifact does not give the output '" + loss.output +
                           "', which feeds its loss; compile with --loss-input of a graph output");
  facts = MetricFacts();
  Shape shape = output.shape;
  if (loss.hasClasses) {
    auto axis = size_t(loss.axis);
    facts.labels = isFloat(label.type) ? LabelKind::Probabilities : LabelKind::Indices;
    facts.classes = axis < shape.size() ? shape[axis] : 0;
    facts.isLogarithm = loss.kind == "nll";
    facts.isSequence = label.shape.size() > 1;
    if (facts.labels == LabelKind::Indices && axis < shape.size())
      shape.erase(shape.begin() + loss.axis);
  } else if (loss.kind == "bce_with_logits") {
    facts.labels = LabelKind::Decisions;
    facts.classes = 2;
  } else if (loss.kind == "mse" || loss.kind == "l1" || loss.kind == "smooth_l1" || loss.kind == "huber") {
    facts.labels = LabelKind::Values;
    for (size_t i = 1; i < shape.size(); ++i)
      facts.columns *= shape[i];
  } else {
    return Status::refusal(what + " does not fit the loss '" + loss.kind + "'; no metric does");
  }
  if (!isFloat(output.type) || label.shape != shape || (loss.hasClasses && facts.classes == 0))
    return Status::refusal(what + ": the output '" + loss.output + "' has shape " +
                           formatShape(output.shape) + ", and its label " + formatShape(label.shape) +
                           ", which cannot be compared");
  return Status();
}

Status MetricSet::begin(const LossInfo &ofLoss, const TensorShape &output, const TensorShape &label) {
  metrics.clear();
  loss = ofLoss;
  if (wanted.empty())
    return Status();
  ORTC_TRY(describe(output, label));
  for (const Wanted &one : wanted) {
    if (!takes(*one.kind, facts.labels)) {
      std::vector<std::string> own, fitting;
      for (LabelKind labels : one.kind->labels)
        own.push_back(getLabelText(labels));
      for (const MetricKind &other : listMetrics())
        if (takes(other, facts.labels))
          fitting.push_back(other.name);
      return Status::refusal("metric '" + one.spec + "' needs labels that are " + joinWords(own, "or") +
                             ", and those of the loss '" + loss.kind + "' are " + getLabelText(facts.labels) +
                             "; it fits " + joinWords(fitting));
    }
    ORTC_TRY(one.make(facts, metrics.emplace_back()));
  }
  scores.resize(size_t(std::max<int64_t>(facts.classes, 1)));
  return Status();
}

void MetricSet::pass(const Prediction &prediction) {
  for (const std::unique_ptr<Metric> &metric : metrics)
    metric->add(prediction);
}

static int64_t countFrom(const Shape &shape, size_t from) {
  int64_t count = 1;
  for (size_t i = from; i < shape.size(); ++i)
    count *= shape[i];
  return count;
}

/// Classes along an axis, or two of which a logit has the second one's score.
void MetricSet::addChoices(const TensorView &output, const TensorView &label, int64_t rows) {
  bool isDecision = facts.labels == LabelKind::Decisions, isIndex = facts.labels == LabelKind::Indices;
  // Everything in front of the axis is `outer`, all behind it `inner`; a decision has an axis of its own at the end.
  Shape shape = output.shape;
  auto axis = isDecision ? shape.size() : size_t(loss.axis);
  if (!shape.empty() && axis > 0) // with classes in front there are no rows
    shape[0] = rows;
  int64_t inner = isDecision ? 1 : countFrom(shape, axis + 1);
  int64_t outer = countFrom(Shape(shape.begin(), shape.begin() + int64_t(axis)), 0);
  size_t element = getElementBytes(output.type), labelElement = getElementBytes(label.type);
  int64_t classes = isDecision ? 1 : facts.classes;
  std::vector<double> probabilities(scores.size());
  for (int64_t place = 0; place < outer * inner; ++place) {
    int64_t base = place / inner * classes * inner + place % inner;
    Prediction prediction;
    prediction.scores = scores.data();
    auto read = [&](const TensorView &view, size_t bytes, int64_t c) {
      return loadAsDouble(view.type, view.data + size_t(base + c * inner) * bytes);
    };
    if (isIndex) {
      prediction.wanted = loadAsInteger(label.type, label.data + size_t(place) * labelElement);
      if ((loss.hasIgnored && prediction.wanted == loss.ignoreIndex) || prediction.wanted < 0 ||
          prediction.wanted >= classes) // the step has refused all but the ignored ones
        continue;
    }
    if (isDecision) {
      scores[1] = read(output, element, 0);
      prediction.wanted = read(label, labelElement, 0) >= 0.5;
    } else {
      for (int64_t c = 0; c < classes; ++c)
        scores[size_t(c)] = read(output, element, c);
    }
    if (facts.labels == LabelKind::Probabilities) {
      for (int64_t c = 0; c < classes; ++c)
        probabilities[size_t(c)] = read(label, labelElement, c);
      prediction.wanted = std::max<int64_t>(findLargest(probabilities.data(), classes), 0);
    }
    pass(prediction);
  }
}

void MetricSet::addValues(const TensorView &output, const TensorView &label, int64_t rows) {
  size_t element = getElementBytes(output.type), labelElement = getElementBytes(label.type);
  int64_t count = facts.columns * (output.shape.empty() ? 1 : rows);
  for (int64_t i = 0; i < count; ++i) {
    scores[0] = loadAsDouble(output.type, output.data + size_t(i) * element);
    Prediction prediction;
    prediction.scores = scores.data();
    prediction.value = loadAsDouble(label.type, label.data + size_t(i) * labelElement);
    prediction.column = i % facts.columns;
    pass(prediction);
  }
}

Status MetricSet::addSlice(const TensorView &output, const TensorView &label, int64_t rows) {
  if (metrics.empty())
    return Status();
  for (const std::unique_ptr<Metric> &metric : metrics)
    ORTC_TRY(metric->expect(countFrom(label.shape, 0)));
  if (facts.labels == LabelKind::Values)
    addValues(output, label, rows);
  else
    addChoices(output, label, rows);
  return Status();
}

std::vector<std::pair<std::string, double>> MetricSet::compute() {
  std::vector<std::pair<std::string, double>> values;
  for (size_t i = 0; i < metrics.size(); ++i)
    values.push_back({wanted[i].spec, metrics[i]->compute()});
  return values;
}

} // namespace ortc::host
