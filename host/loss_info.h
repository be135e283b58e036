// What the manifest says about the loss, and what the host itself computes from outputs and labels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include "host/types.h"
#include "support/Status.h"

namespace ortc::host {

enum class LossKind { CrossEntropy, Nll, Mse, L1, SmoothL1, BceWithLogits, Output, None };

struct LossInfo {
  LossKind kind = LossKind::None;
  std::string output;      ///< graph output that feeds the loss
  int64_t axis = 1;        ///< of classes in that output, not negative
  bool hasIgnored = false; ///< labels of `ignoreIndex` take no part
  int64_t ignoreIndex = -100;
  double labelSmoothing = 0, beta = 1;
  bool hasClasses() const { return kind == LossKind::CrossEntropy || kind == LossKind::Nll; }
};

/// Reads the key "loss" of a manifest; `where` begins messages.
Status parseLossInfo(const std::string &manifest, const std::string &where, LossInfo &loss);

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

/// How much a mean loss over the first `rows` rows of `label` weighs: labels that are not ignored, or rows.
double countLabels(const LossInfo &loss, const TensorView &label, int64_t rows);

/// Whether the labels are class indices and one of them takes no part.
bool canIgnoreLabels(const LossInfo &loss, const TensorView &label);
/// Overwrites the labels from row `rows` on with the ignored one.
void ignoreLabels(const LossInfo &loss, const TensorView &label, int64_t rows, uint8_t *data);

/// Whether hostLoss() knows the definition of this loss for these labels.
bool canComputeLoss(const LossInfo &loss, const TensorView &output, const TensorView &label);
/// The loss over the first `rows` rows, in double precision, by PyTorch's definition. Only for losses that
/// average over values (not over class indices).
double computeLoss(const LossInfo &loss, const TensorView &output, const TensorView &label, int64_t rows);

/// Adds how many of the first `rows` rows' predictions are right. Ties go to the lower class. Labels are
/// class indices (ignored ones do not count) or probabilities of the output's shape. A prediction with a NaN in it is
/// wrong, and counted in `notNumbers` too. False when the shapes do not fit together.
bool addAccuracy(const LossInfo &loss, const TensorView &output, const TensorView &label, int64_t rows,
                 int64_t &right, int64_t &total, int64_t &notNumbers);

} // namespace ortc::host
