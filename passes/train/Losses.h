// Losses: what a definition says, and the table of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loss is a file in losses/ with one definition, and a row in losses/Table.inc. Parser, `--help`, messages, the
// manifest and warnings are made from the table; docs/adding-a-loss.md has the steps. Formulas are PyTorch's. Each is
// written such that its gradient, too, is exact at special points: where a formula has two branches, every part of it
// takes the same one.
#pragma once

#include "compiler/options/CompileOptions.h"
#include "dialects/nn/TensorBuilder.h"

namespace ortc::train {

// Keys with a meaning outside of a formula: they say what the label is. The manifest has them in other words.
inline constexpr const char *kAxis = "axis", *kIgnoreIndex = "ignore_index",
                            *kProbabilities = "probabilities";

/// What a formula computes with.
struct LossOperands {
  nn::TensorBuilder &b;
  const Settings &settings;
  mlir::Value prediction; ///< in f32, or f64
  mlir::Value label;      ///< of inferLabelType()'s type; indices may be i32
  int64_t axis;           ///< LabelKind::Classes: of the classes in `prediction`, not negative
};

enum class LabelKind {
  Values, ///< of the prediction's shape and type
  /// Class indices: of the prediction's shape without the axis of the classes. The keys are `axis` and `ignore_index`;
  /// with a key `probabilities`, labels may have the shape of the prediction instead. Evaluation shows the accuracy.
  Classes
};

/// An operator that most likely must not be in front of the loss.
struct Misfit {
  const char *opType;
  const char *reason;
  const char *flag; ///< the value of --loss that takes what goes into the operator; null: this loss does
  bool isBehindConcat = false; ///< only as an operand of a Concat, as in [1 - p, p]
};

struct LossDefinition {
  const char *name;
  const char *meaning; ///< a phrase for the documentation
  LabelKind label = LabelKind::Values;
  std::vector<Key> keys = {};
  /// Why keys do not go together, or null.
  const char *(*contradict)(const Settings &settings) = nullptr;
  std::vector<Misfit> misfits = {};
  /// The scalar loss: a mean over samples, as `ortc eval` takes it to be.
  mlir::Value (*build)(const LossOperands &operands);
};

/// All losses, in the order of messages.
llvm::ArrayRef<const LossDefinition *> listLosses();
/// The definition, or null.
const LossDefinition *findLoss(llvm::StringRef name);

/// Parses `--loss`.
Expected<LossSpec> parseLoss(std::string_view text);
/// What `--help` says of `--loss`.
std::string describeLosses();

/// Every key's value; the spec must be of LossSource::Formula.
Settings settingsOf(const LossSpec &loss);
/// Whether the loss compares with class indices, or with probabilities of classes.
bool hasClasses(const LossSpec &loss);
/// Whether the type of a label that is in the graph may say that it holds probabilities.
bool mayHoldProbabilities(const LossSpec &loss);

/// Whether the loss compares with a label.
bool needsLabel(const LossSpec &loss);

/// The type of the label for a prediction of type `prediction`. Fails, with an error at `loc`, when the spec
/// does not fit the prediction.
mlir::FailureOr<mlir::RankedTensorType> inferLabelType(const LossSpec &loss,
                                                       mlir::RankedTensorType prediction, mlir::Location loc);

/// The scalar loss by PyTorch's definition, in f32 or, for a prediction in f64, in f64. `label` is null when
/// the loss needs none. Fails, with an error, when the types do not fit.
mlir::FailureOr<mlir::Value> buildLossValue(nn::TensorBuilder &builder, const LossSpec &loss,
                                            mlir::Value prediction, mlir::Value label);

/// Parts that formulas share: the mean of all elements, and their sum.
mlir::Value averageAll(nn::TensorBuilder &builder, mlir::Value x);
mlir::Value sumAll(nn::TensorBuilder &builder, mlir::Value x);

#define ORTC_LOSS(name) extern const LossDefinition k##name##Loss;
#include "passes/train/losses/Table.inc"
#undef ORTC_LOSS

} // namespace ortc::train
