// What in the data of a step has made it fail.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/session/failed_step.h"

#include <algorithm>
#include <charconv>

#include "support/Elements.h"
#include "support/Text.h"

namespace ortc::engine {
namespace {

/// Integers that the session has as an input.
struct Integers {
  size_t input = 0;
  TensorView view;
  int64_t count = 0; ///< 0: there is no such input
  int64_t operator[](int64_t i) const {
    return loadAsInteger(view.type, view.data + size_t(i) * getElementBytes(view.type));
  }
};

} // namespace

std::string FailedStep::describeElement(size_t input, int64_t element, const Shape &shape) const {
  if (batches)
    return batches->describeElement(input, slice, element, shape, order);
  std::string place;
  int64_t rest = element;
  for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
    place = std::to_string(rest % shape[axis]) + (place.empty() ? "" : ", ") + place;
  return "element [" + place + "] of '" + entry.inputs[input].name + "' in the batch";
}

static Integers findIntegers(const FailedStep &step, const std::string &name) {
  for (size_t input = 0; input < step.entry.inputs.size(); ++input)
    if (step.entry.inputs[input].name == name && !isFloat(step.entry.inputs[input].type)) {
      Integers found{input, step.session.view(step.entry, name)};
      return found.view.data && countElements(found.view.shape, found.count) ? found : Integers();
    }
  return {};
}

/// The loss ctc that has this label; null: none.
static const LossInfo *findSequences(const FailedStep &step, const std::string &label) {
  for (const LossInfo &loss : step.losses)
    if (loss.kind == "ctc" && loss.label == label)
      return &loss;
  return nullptr;
}

/// What the loss reads beside its label.
static Integers findBeside(const FailedStep &step, const LossInfo &loss, const std::string &name) {
  const std::string input = loss.findInput(name);
  return input.empty() ? Integers() : findIntegers(step, input);
}

std::string describeIndex(const std::string &message, const FailedStep &step) {
  constexpr std::string_view kIndex = "index ", kIn = " in '"; // runtime/src/errors.h
  size_t begin = message.find(kIndex), end = message.rfind("' is out of range [");
  if (begin == std::string::npos || end == std::string::npos)
    return "";
  int64_t index = 0;
  auto parsed = std::from_chars(message.data() + begin + kIndex.size(), message.data() + end, index);
  size_t name = size_t(parsed.ptr - message.data());
  if (parsed.ec != std::errc() || message.compare(name, kIn.size(), kIn) != 0)
    return "";
  name += kIn.size();
  const std::string input = message.substr(name, end - name);
  const Integers values = findIntegers(step, input);
  const LossInfo *sequences = findSequences(step, input);
  std::string advice;
  if (sequences && index == sequences->blank)
    advice = "; " + std::to_string(index) +
             " is the blank of the loss ctc, which no label is: leave it out, or give "
             "another class with ctc:blank=N";
  else if (sequences)
    advice = "; labels are classes but " + std::to_string(sequences->blank) + ", the blank of the loss ctc";
  const Integers lengths = sequences ? findBeside(step, *sequences, "target_lengths") : Integers();
  const int64_t width = values.count && sequences && values.view.shape.size() == 2 ? values.view.shape[1] : 1;
  for (int64_t i = 0; i < values.count; ++i)
    if (values[i] == index && (lengths.count <= i / width || i % width < lengths[i / width])) // no padding
      return "; it is from " + step.describeElement(values.input, i, values.view.shape) +
             (sequences && step.batches && !step.batches->isBatch()
                  ? ", label " + std::to_string(i % width) + " of sample " + std::to_string(i / width) +
                        " of the slice"
                  : "") +
             advice;
  return "";
}

/// "; every label in 'label' is ignored ...", where the mean of a loss is one of nothing.
static std::string describeIgnoredLabels(const FailedStep &step) {
  for (const LossInfo &loss : step.losses) {
    const Integers labels = findIntegers(step, loss.label);
    if (loss.isSum || loss.isInGraph || !labels.count || !canIgnoreLabels(loss, labels.view))
      continue;
    const std::string weights = loss.findSampleWeight();
    const TensorView factors = weights.empty() ? TensorView() : step.session.view(step.entry, weights);
    if (countLabels(loss, labels.view, factors, labels.view.shape.empty() ? 1 : labels.view.shape[0]) != 0)
      continue;
    const std::string ignored = "ignored (ignore_index " + std::to_string(loss.ignoreIndex) + ")";
    const bool hasFactors = !loss.classWeight.empty() || factors.type != DataType::None,
               sumsUpdates = step.session.view(step.entry, "loss.count").type != DataType::None;
    return (hasFactors
                ? "; no label in '" + loss.label + "' counts: each is " + ignored + " or has the factor 0"
                : "; every label in '" + loss.label + "' is " + ignored) +
           ", and the mean of none is nan; the first is from " +
           step.describeElement(labels.input, 0, labels.view.shape) + ": leave such samples out" +
           (sumsUpdates ? "" : ", or compile with " + loss.kind + ":reduction=sum");
  }
  return "";
}

static std::string describeLongLabels(const FailedStep &step) {
  for (const LossInfo &loss : step.losses) {
    const Integers labels = loss.kind == "ctc" ? findIntegers(step, loss.label) : Integers();
    const Integers frames = findBeside(step, loss, "input_lengths"),
                   lengths = findBeside(step, loss, "target_lengths");
    const int64_t width = labels.view.shape.size() == 2 ? labels.view.shape[1] : 0;
    for (int64_t sample = 0; width > 0 && sample < labels.count / width && sample < frames.count; ++sample) {
      const int64_t count = lengths.count ? std::min(lengths[sample], width) : width;
      int64_t repeats = 0; // between equal labels is a blank
      for (int64_t i = 1; i < count; ++i)
        repeats += labels[sample * width + i] == labels[sample * width + i - 1];
      if (count + repeats > frames[sample])
        return "; " + step.describeElement(frames.input, sample, frames.view.shape) + ", is " +
               formatCount(frames[sample], "frame") + ", and its " + formatCount(count, "label") +
               (repeats ? ", equal neighbours among them," : "") + " need " +
               std::to_string(count + repeats) +
               ": leave such samples out, or compile with ctc:zero_infinity=1, where they count nothing";
    }
  }
  return "";
}

std::string describeLabels(const FailedStep &step) {
  const std::string ignored = describeIgnoredLabels(step);
  return ignored.empty() ? describeLongLabels(step) : ignored;
}

} // namespace ortc::engine
