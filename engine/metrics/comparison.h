// Comparisons of metrics: an output of the artifact with labels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <optional>

#include "engine/artifact/loss_info.h"
#include "engine/metrics/metric.h"

namespace ortc::engine {

/// An output or an input before there are data.
struct TensorShape {
  std::string name;
  DataType type = DataType::None;
  Shape shape;
};

/// That of a name; without a type where there is none.
TensorShape findShape(const std::vector<TensorShape> &all, const std::string &name);

/// What a metric compares. The keys `output`, `label`, `axis` and `ignore` of its spec say it; without them it is what
/// the loss compares.
struct Comparison {
  std::string output, label;
  std::optional<int64_t> axis; ///< of classes in the output, not negative
  std::optional<int64_t> ignore;
  std::string inputLengths,
      targetLengths; ///< of sequences: inputs with the sizes of samples; empty: all count
  MetricFacts facts;

  bool isSame(const Comparison &other) const {
    return output == other.output && label == other.label && axis == other.axis && ignore == other.ignore &&
           facts.labels == other.facts.labels; // sequences have one loss that says the rest
  }
};

/// What a loss compares. `what` begins messages; refuses losses that say nothing of labels, and shapes that do not fit.
Status compareLoss(const std::string &what, const LossInfo &loss, const TensorShape &output,
                   const TensorShape &label, Comparison &comparison);

/// What the names say in `comparison`. Labels are what their types and those that a metric `takes` make of them, of
/// sequences what a loss ctc of the same names says.
Status compareNamed(const std::string &what, const std::vector<LossInfo> &losses,
                    const std::vector<LabelKind> &takes, const TensorShape &output, const TensorShape &label,
                    Comparison &comparison);

/// How a message ends that asks for names.
inline constexpr const char *kNameWhatToCompare = "; output=NAME,label=INPUT say what to compare";

/// An output or an input by its name.
using FindTensor = std::function<TensorView(const std::string &name)>;

/// Reads the predictions of a slice, of whose `batch` samples the first `rows` count; a batch of 0: all do.
void readPredictions(const Comparison &comparison, const FindTensor &find, int64_t rows, int64_t batch,
                     const std::function<void(const Prediction &prediction)> &visit);

} // namespace ortc::engine
