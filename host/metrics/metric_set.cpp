// The metrics that --metric names, over the slices of an evaluation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/metrics/metric_set.h"

#include <algorithm>
#include <cstring>

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

static constexpr const char *kInstead = "; output=NAME,label=INPUT say what to compare";

/// Classes of which the loss ctc has a blank between two.
static void describeSequences(const LossInfo &loss, Comparison &comparison) {
  comparison.facts.labels = LabelKind::Sequences;
  comparison.facts.blank = loss.blank;
  comparison.inputLengths = loss.findInput("input_lengths");
  comparison.targetLengths = loss.findInput("target_lengths");
}

/// By the loss: what its label is.
static Status describeLoss(const std::string &what, const LossInfo &loss, const TensorShape &output,
                           const TensorShape &label, Comparison &comparison) {
  if (loss.isInGraph)
    return Status::refusal(what + ": the graph computes its loss, so no label is known" + kInstead);
  if (output.type == DataType::None)
    return Status::refusal(what + ": the artifact does not give the output '" + loss.output +
                           "', which feeds its loss; compile with --loss-input of a graph output");
  comparison.output = output.name;
  comparison.label = label.name;
  MetricFacts &facts = comparison.facts;
  if (loss.hasClasses) {
    facts.labels = isFloat(label.type) ? LabelKind::Probabilities : LabelKind::Indices;
    comparison.axis = loss.axis;
    if (loss.hasIgnored)
      comparison.ignore = loss.ignoreIndex;
  } else if (loss.compares == "decisions") {
    facts.labels = LabelKind::Decisions;
  } else if (loss.compares == "values") {
    facts.labels = LabelKind::Values;
  } else if (loss.blank >= 0) {
    describeSequences(loss, comparison);
  } else {
    return Status::refusal(what + " does not fit the loss '" + loss.kind + "'" + kInstead);
  }
  return Status();
}

/// What a loss ctc compares, by its names.
static Status describeNamed(const std::string &what, const std::vector<LossInfo> &losses,
                            Comparison &comparison) {
  auto found = std::find_if(losses.begin(), losses.end(), [&](const LossInfo &loss) {
    return loss.blank >= 0 && loss.output == comparison.output && loss.label == comparison.label;
  });
  if (found == losses.end())
    return Status::refusal(what + ": no loss 'ctc' compares '" + comparison.output + "' with '" +
                           comparison.label + "', and the loss says which class is the blank");
  if (comparison.axis || comparison.ignore)
    return Status::refusal(what + ": axis and ignore are for labels of one class each; leave them out");
  describeSequences(*found, comparison);
  return Status();
}

/// By the types: integers are classes along the axis that the label has not, or decisions; other labels are values for
/// metrics of these, else probabilities, of classes where an axis is given.
static Status describeTensors(const std::string &what, const MetricKind &kind, const TensorShape &output,
                              const TensorShape &label, Comparison &comparison) {
  MetricFacts &facts = comparison.facts;
  auto rank = int64_t(output.shape.size());
  if (comparison.axis && *comparison.axis < 0)
    *comparison.axis += rank;
  if (comparison.axis && (*comparison.axis < 0 || *comparison.axis >= rank))
    return Status::refusal(what + ": the output '" + output.name + "' has shape " +
                           formatShape(output.shape) + ", and no such axis");
  if (isFloat(label.type) || label.shape == output.shape) {
    facts.labels = comparison.axis                  ? LabelKind::Probabilities
                   : takes(kind, LabelKind::Values) ? LabelKind::Values
                                                    : LabelKind::Decisions;
    return Status();
  }
  facts.labels = LabelKind::Indices;
  for (int64_t axis = 0, found = 0; !comparison.axis || found; ++axis) {
    if (axis == rank)
      return Status();
    Shape shape = output.shape;
    shape.erase(shape.begin() + axis);
    if (shape != label.shape)
      continue;
    if (found++)
      return Status::refusal(what + ": several axes of the output '" + output.name + "' of shape " +
                             formatShape(output.shape) + " may be that of the classes; axis=N says which");
    comparison.axis = axis;
  }
  return Status();
}

/// The facts that shapes give; refuses shapes that cannot be compared.
static Status measure(const std::string &what, const TensorShape &output, const TensorShape &label,
                      Comparison &comparison) {
  MetricFacts &facts = comparison.facts;
  Shape shape = output.shape;
  bool isWrong = !isFloat(output.type);
  if (facts.labels == LabelKind::Decisions) {
    facts.classes = 2;
  } else if (facts.labels == LabelKind::Values) {
    for (size_t i = 1; i < shape.size(); ++i)
      facts.columns *= shape[i];
  } else if (facts.labels == LabelKind::Sequences) { // [frames, samples, classes] and [samples, labels]
    isWrong |= isFloat(label.type) || shape.size() != 3 || label.shape.size() != 2 || facts.blank >= shape[2];
    facts.classes = isWrong ? 0 : shape[2];
    shape = isWrong ? Shape() : Shape{shape[1], label.shape[1]};
  } else if (auto axis = size_t(comparison.axis.value_or(INT64_MAX)); axis < shape.size()) {
    facts.classes = shape[axis];
    facts.isSequence = label.shape.size() > 1;
    if (facts.labels == LabelKind::Indices)
      shape.erase(shape.begin() + int64_t(axis));
  } else {
    isWrong = true;
  }
  if (isWrong || label.shape != shape)
    return Status::refusal(what + ": the output '" + output.name + "' has shape " +
                           formatShape(output.shape) + ", and its label " + formatShape(label.shape) +
                           ", which cannot be compared");
  return Status();
}

static Status findTensor(const std::string &what, const std::string &kind,
                         const std::vector<TensorShape> &all, const std::string &name, TensorShape &found) {
  std::vector<std::string> names;
  for (const TensorShape &one : all) {
    names.push_back(one.name);
    if (one.name == name)
      found = one;
  }
  return found.type != DataType::None ? Status()
                                      : Status::refusal(what + ": evaluation has no " + kind + " '" + name +
                                                        "'; " + describeNames(name, names));
}

static TensorShape findOrNone(const std::vector<TensorShape> &all, const std::string &name) {
  for (const TensorShape &one : all)
    if (one.name == name)
      return one;
  return {};
}

Status MetricSet::begin(const std::vector<LossInfo> &losses, const std::vector<TensorShape> &outputs,
                        const std::vector<TensorShape> &inputs) {
  groups.clear();
  const LossInfo &loss = losses.front();
  for (Wanted &one : wanted) {
    const std::string what = "metric '" + one.spec + "'";
    Comparison comparison = one.asked;
    TensorShape output, label;
    bool isNamed = !comparison.output.empty();
    if (isNamed) {
      ORTC_TRY(findTensor(what, "output", outputs, comparison.output, output));
      ORTC_TRY(findTensor(what, "input", inputs, comparison.label, label));
      ORTC_TRY(takes(*one.kind, LabelKind::Sequences)
                   ? describeNamed(what, losses, comparison)
                   : describeTensors(what, *one.kind, output, label, comparison));
    } else {
      output = findOrNone(outputs, loss.output);
      label = findOrNone(inputs, loss.label);
      if (losses.size() > 1)
        return Status::refusal(what + ": there are " + std::to_string(losses.size()) + " losses" + kInstead);
      ORTC_TRY(describeLoss(what, loss, output, label, comparison));
    }
    ORTC_TRY(measure(what, output, label, comparison));
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

static int64_t countFrom(const Shape &shape, size_t from) {
  int64_t count = 1;
  for (size_t i = from; i < shape.size(); ++i)
    count *= shape[i];
  return count;
}

/// Elements `step` apart, from `first` on.
static void readAlong(const TensorView &view, int64_t first, int64_t step, int64_t count, double *to) {
  const uint8_t *from = view.data + size_t(first) * getElementBytes(view.type);
  if (view.type == DataType::Float32 && step == 1) { // logits of a large vocabulary, say
    for (int64_t i = 0; i < count; ++i) {
      float value = 0;
      std::memcpy(&value, from + size_t(i) * sizeof(value), sizeof(value));
      to[i] = double(value);
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    to[i] = loadAsDouble(view.type, from + size_t(i * step) * getElementBytes(view.type));
}

/// Classes along an axis, or two of which a logit has the second one's score.
void MetricSet::addChoices(Group &group, const TensorView &output, const TensorView &label, int64_t rows) {
  const Comparison &comparison = group.comparison;
  bool isDecision = comparison.facts.labels == LabelKind::Decisions;
  bool isIndex = comparison.facts.labels == LabelKind::Indices;
  // Everything in front of the axis is `outer`, all behind it `inner`; a decision has an axis of its own at the end.
  Shape shape = output.shape;
  auto axis = isDecision ? shape.size() : size_t(*comparison.axis);
  if (!shape.empty() && axis > 0) // with classes in front there are no rows
    shape[0] = rows;
  int64_t inner = isDecision ? 1 : countFrom(shape, axis + 1);
  int64_t outer = countFrom(Shape(shape.begin(), shape.begin() + int64_t(axis)), 0);
  size_t labelElement = getElementBytes(label.type);
  int64_t classes = isDecision ? 1 : comparison.facts.classes;
  std::vector<double> scores(size_t(comparison.facts.classes)), probabilities(scores.size());
  Prediction prediction;
  prediction.scores = scores.data();
  for (int64_t place = 0; place < outer * inner; ++place) {
    int64_t base = place / inner * classes * inner + place % inner;
    if (isIndex) {
      prediction.wanted = loadAsInteger(label.type, label.data + size_t(place) * labelElement);
      if (prediction.wanted == comparison.ignore || prediction.wanted < 0 || prediction.wanted >= classes)
        continue;
    }
    readAlong(output, base, inner, classes, isDecision ? &scores[1] : scores.data());
    if (!isIndex) {
      readAlong(label, base, inner, classes, probabilities.data());
      prediction.wanted = isDecision ? probabilities[0] >= 0.5
                                     : std::max<int64_t>(findLargest(probabilities.data(), classes), 0);
    }
    group.add(prediction);
  }
}

/// The best class of every frame, and labels, of the first samples.
void MetricSet::addSequences(Group &group, const TensorView &output, const TensorView &label,
                             const View &view, int64_t samples) {
  const Comparison &comparison = group.comparison;
  auto viewLengths = [&](const std::string &name) { return name.empty() ? TensorView() : view(name); };
  const TensorView inputLengths = viewLengths(comparison.inputLengths),
                   targetLengths = viewLengths(comparison.targetLengths);
  auto count = [](const TensorView &lengths, int64_t sample, int64_t all) {
    return lengths.type == DataType::None
               ? all
               : std::clamp<int64_t>(
                     loadAsInteger(lengths.type,
                                   lengths.data + size_t(sample) * getElementBytes(lengths.type)),
                     0, all);
  };
  const int64_t classes = comparison.facts.classes;
  std::vector<double> scores(static_cast<size_t>(classes));
  std::vector<int64_t> frames, labels;
  for (int64_t sample = 0; sample < samples; ++sample) {
    frames.resize(size_t(count(inputLengths, sample, output.shape[0])));
    labels.resize(size_t(count(targetLengths, sample, label.shape[1])));
    for (size_t i = 0; i < frames.size(); ++i) {
      readAlong(output, (int64_t(i) * output.shape[1] + sample) * classes, 1, classes, scores.data());
      frames[i] = findLargest(scores.data(), classes);
    }
    for (size_t i = 0; i < labels.size(); ++i)
      labels[i] = loadAsInteger(label.type, label.data + (size_t(sample * label.shape[1]) + i) *
                                                             getElementBytes(label.type));
    Prediction prediction;
    prediction.frames = frames;
    prediction.labels = labels;
    group.add(prediction);
  }
}

void MetricSet::addValues(Group &group, const TensorView &output, const TensorView &label, int64_t rows) {
  size_t element = getElementBytes(output.type), labelElement = getElementBytes(label.type);
  int64_t columns = group.comparison.facts.columns, count = columns * (output.shape.empty() ? 1 : rows);
  for (int64_t i = 0; i < count; ++i) {
    double score = loadAsDouble(output.type, output.data + size_t(i) * element);
    Prediction prediction;
    prediction.scores = &score;
    prediction.value = loadAsDouble(label.type, label.data + size_t(i) * labelElement);
    prediction.column = i % columns;
    group.add(prediction);
  }
}

Status MetricSet::addSlice(const std::function<TensorView(const std::string &name)> &view, int64_t rows,
                           int64_t batch) {
  for (Group &group : groups) {
    TensorView output = view(group.comparison.output), label = view(group.comparison.label);
    const LabelKind kind = group.comparison.facts.labels;
    const Shape &samples = kind == LabelKind::Sequences ? label.shape : output.shape;
    int64_t leading = samples.empty() ? 1 : samples[0];
    // [batch * tokens, classes], say, has rows of all samples.
    int64_t real = batch > 0 && leading % batch == 0 ? leading / batch * rows : leading;
    for (Metric *metric : group.metrics)
      ORTC_TRY(metric->expect(countFrom(label.shape, 0)));
    if (kind == LabelKind::Sequences)
      addSequences(group, output, label, view, real);
    else if (kind == LabelKind::Values)
      addValues(group, output, label, real);
    else
      addChoices(group, output, label, real);
  }
  return Status();
}

std::vector<std::pair<std::string, double>> MetricSet::compute() {
  std::vector<std::pair<std::string, double>> values;
  for (const Wanted &one : wanted)
    values.push_back({one.spec, one.metric->compute()});
  return values;
}

} // namespace ortc::host
