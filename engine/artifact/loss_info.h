// What the manifest says about the loss, and what the host makes of outputs and labels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/ElementTypes.h"
#include "support/Status.h"

namespace ortc::engine {

/// No formula: what evaluation shows follows from what the label is.
struct LossInfo {
  std::string kind;            ///< as --loss has it
  bool isNone = false;         ///< the artifact only predicts
  bool isInGraph = false;      ///< the graph computes its loss: no label is compared
  std::string name;            ///< of several losses; else empty
  std::string value;           ///< of several losses: the output that is its value
  std::string weight;          ///< the hyper-parameter that multiplies it; empty: none does
  std::string label = "label"; ///< the input that it compares with, if it does
  std::string compares;        ///< "values" or "decisions", where metrics compare so; else empty
  std::string output;          ///< graph output that feeds the loss
  bool hasClasses = false;     ///< labels are classes, as indices or probabilities: there is an accuracy
  int64_t axis = 1;            ///< of classes in that output, not negative
  bool hasIgnored = false;     ///< labels of `ignoreIndex` take no part
  int64_t ignoreIndex = -100;
  bool isSum = false;              ///< over samples, instead of a mean
  bool comparesSamples = false;    ///< the term of one depends on others
  std::vector<double> classWeight; ///< what a label of each class counts in a mean; empty: 1
  std::vector<std::string> inputs; ///< that the loss reads beside the label
  int64_t blank = -1;              ///< of ctc: the class between labels

  bool reads(const std::string &input) const;
  /// The input that the loss has beside the label under that name, which is `name.ID` of several losses; empty: none.
  std::string findInput(const std::string &name) const;
  /// The input with a factor for every sample; empty: there is none.
  std::string findSampleWeight() const { return findInput("sample_weight"); }
};

/// Reads the key "loss" of a manifest: one loss, or those whose sum is trained. `where` begins messages.
Status parseLosses(const std::string &manifest, const std::string &where, std::vector<LossInfo> &losses);

/// A tensor in host memory, dense and row-major.
struct TensorView {
  DataType type = DataType::None;
  Shape shape;
  const uint8_t *data = nullptr;
};

/// A mean in the making: divide at the end.
struct WeightedSum {
  double sum = 0, weight = 0;
  void add(double value, double count) {
    if (count > 0) { // a NaN of an empty mean stays out
      sum += value * count;
      weight += count;
    }
  }
  double mean() const { return sum / weight; }
};

/// How much a mean loss over the first `rows` rows of `label` weighs: labels that are not ignored, by the factors of
/// their classes, or rows; times the factors of samples, which `weights` has where there are some.
double countLabels(const LossInfo &loss, const TensorView &label, const TensorView &weights, int64_t rows);

/// Whether the labels are class indices and one of them takes no part.
bool canIgnoreLabels(const LossInfo &loss, const TensorView &label);
/// Overwrites the labels from row `rows` on with the ignored one.
void ignoreLabels(const LossInfo &loss, const TensorView &label, int64_t rows, uint8_t *data);

} // namespace ortc::engine
