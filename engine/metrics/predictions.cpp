// Predictions and what is right, from the memory of a step.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstring>

#include "engine/metrics/comparison.h"
#include "support/Elements.h"

namespace ortc::engine {

using Visit = std::function<void(const Prediction &prediction)>;

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
static void readChoices(const Comparison &comparison, const TensorView &output, const TensorView &label,
                        int64_t rows, const Visit &visit) {
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
    visit(prediction);
  }
}

/// The best class of every frame, and labels, of the first samples.
static void readSequences(const Comparison &comparison, const TensorView &output, const TensorView &label,
                          const FindTensor &find, int64_t samples, const Visit &visit) {
  auto viewLengths = [&](const std::string &name) { return name.empty() ? TensorView() : find(name); };
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
    visit(prediction);
  }
}

static void readValues(const Comparison &comparison, const TensorView &output, const TensorView &label,
                       int64_t rows, const Visit &visit) {
  size_t element = getElementBytes(output.type), labelElement = getElementBytes(label.type);
  int64_t columns = comparison.facts.columns, count = columns * (output.shape.empty() ? 1 : rows);
  for (int64_t i = 0; i < count; ++i) {
    double score = loadAsDouble(output.type, output.data + size_t(i) * element);
    Prediction prediction;
    prediction.scores = &score;
    prediction.value = loadAsDouble(label.type, label.data + size_t(i) * labelElement);
    prediction.column = i % columns;
    visit(prediction);
  }
}

void readPredictions(const Comparison &comparison, const FindTensor &find, int64_t rows, int64_t batch,
                     const Visit &visit) {
  TensorView output = find(comparison.output), label = find(comparison.label);
  const LabelKind kind = comparison.facts.labels;
  const Shape &samples = kind == LabelKind::Sequences ? label.shape : output.shape;
  int64_t leading = samples.empty() ? 1 : samples[0];
  // [batch * tokens, classes], say, has rows of all samples.
  int64_t real = batch > 0 && leading % batch == 0 ? leading / batch * rows : leading;
  if (kind == LabelKind::Sequences)
    readSequences(comparison, output, label, find, real, visit);
  else if (kind == LabelKind::Values)
    readValues(comparison, output, label, real, visit);
  else
    readChoices(comparison, output, label, real, visit);
}

} // namespace ortc::engine
