// Comparisons of metrics: what a loss, or names, say.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/metrics/comparison.h"

#include <algorithm>

#include "support/Text.h"

namespace ortc::engine {

TensorShape findShape(const std::vector<TensorShape> &all, const std::string &name) {
  for (const TensorShape &one : all)
    if (one.name == name)
      return one;
  return {};
}

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
    return Status::refusal(what + ": the graph computes its loss, so no label is known" + kNameWhatToCompare);
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
    return Status::refusal(what + " does not fit the loss '" + loss.kind + "'" + kNameWhatToCompare);
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
static Status describeTensors(const std::string &what, bool takesValues, const TensorShape &output,
                              const TensorShape &label, Comparison &comparison) {
  MetricFacts &facts = comparison.facts;
  auto rank = int64_t(output.shape.size());
  if (comparison.axis && *comparison.axis < 0)
    *comparison.axis += rank;
  if (comparison.axis && (*comparison.axis < 0 || *comparison.axis >= rank))
    return Status::refusal(what + ": the output '" + output.name + "' has shape " +
                           formatShape(output.shape) + ", and no such axis");
  if (isFloat(label.type) || label.shape == output.shape) {
    facts.labels = comparison.axis ? LabelKind::Probabilities
                   : takesValues   ? LabelKind::Values
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

Status compareLoss(const std::string &what, const LossInfo &loss, const TensorShape &output,
                   const TensorShape &label, Comparison &comparison) {
  ORTC_TRY(describeLoss(what, loss, output, label, comparison));
  return measure(what, output, label, comparison);
}

Status compareNamed(const std::string &what, const std::vector<LossInfo> &losses,
                    const std::vector<LabelKind> &takes, const TensorShape &output, const TensorShape &label,
                    Comparison &comparison) {
  auto has = [&](LabelKind kind) { return std::find(takes.begin(), takes.end(), kind) != takes.end(); };
  ORTC_TRY(has(LabelKind::Sequences)
               ? describeNamed(what, losses, comparison)
               : describeTensors(what, has(LabelKind::Values), output, label, comparison));
  return measure(what, output, label, comparison);
}

} // namespace ortc::engine
