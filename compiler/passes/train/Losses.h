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
// Keys that every formula has: reduceTerms() reads them. The second is the name of an input, too.
inline constexpr const char *kReduction = "reduction", *kSampleWeight = "sample_weight";
// Keys whose value is a file of factors (losses/FactorFiles.h).
inline constexpr const char *kClassWeight = "class_weight", *kPosWeight = "pos_weight";

extern const Range kNumber; ///< of a key: -3.4e38 to 3.4e38
extern const Range kFile;   ///< of a key: an .npy file, or kNoFile
inline constexpr const char *kNoFile = "none";

/// What a formula computes with.
struct LossOperands {
  nn::TensorBuilder &b;
  const LossSpec &loss;
  const Settings &settings;
  mlir::Value prediction; ///< in f32, or f64
  mlir::Value label;      ///< of inferLabelType()'s type; indices may be i32
  int64_t axis;           ///< of the classes in `prediction`, not negative; other labels: the last
  llvm::ArrayRef<mlir::Value> predictions = {}; ///< all of them, of one type of elements
  mlir::Value factors = {};                     ///< of the key class_weight or pos_weight, or null
  mlir::Value sampleWeight = {};                ///< of the label's leading dimension, or null
  llvm::ArrayRef<mlir::Value> inputs = {};      ///< the definition's own, in its order
};

/// An input that a loss has beside its label.
struct LossInput {
  std::string name; ///< of several losses with that of the loss: "sample_weight.ID"
  mlir::RankedTensorType type;
};

/// Labels that a loss takes.
enum class LabelKind {
  Values, ///< of the prediction's shape and type
  Rows,   ///< values of the prediction's shape without its last axis
  None,   ///< the loss compares outputs
  /// Class indices: of the prediction's shape without the axis of the classes. The keys are `axis` and `ignore_index`;
  /// with a key `probabilities`, labels may have the shape of the prediction instead. Evaluation shows the accuracy.
  Classes,
  /// Class indices, several for a sample: LossDefinition::inferLabel says of what shape.
  Sequences
};

/// As what metrics of `ortc run` and `ortc eval` compare predictions with labels, where these are no classes.
enum class Comparands {
  None,     ///< not at all
  Values,   ///< numbers that should be equal
  Decisions ///< logits, with labels that are 1 or less than one half
};

/// An operator that most likely must not be in front of the loss.
struct Misfit {
  const char *opType;
  const char *reason;
  const char *flag; ///< the value of --loss that takes what goes into the operator; null: this loss does
  bool isBehindConcat = false; ///< only as an operand of a Concat, as in [1 - p, p]
};

/// One loss of `--loss`: its keys, the shapes that it takes and its formula (docs/adding-a-loss.md).
struct LossDefinition {
  const char *name;
  const char *meaning;                                ///< a phrase for the documentation
  std::vector<const char *> predictions = {"OUTPUT"}; ///< what the graph outputs are that it reads, in order
  LabelKind label = LabelKind::Values;
  std::vector<Key> keys = {};
  /// Why keys do not go together, or null.
  const char *(*contradict)(const Settings &settings) = nullptr;
  std::vector<Misfit> misfits = {};
  /// Whether shapes of predictions go together; null: they must be equal.
  bool (*fits)(llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes) = nullptr;
  /// The scalar loss, of reduceTerms(): a mean or a sum over samples, as `ortc eval` takes it to be. Null where an
  /// error was reported.
  mlir::Value (*build)(const LossOperands &operands);
  /// Why the formula does not take a prediction of that type, or null.
  const char *(*misshape)(const Settings &settings, mlir::RankedTensorType prediction) = nullptr;
  /// LabelKind::Sequences: the shape of labels.
  llvm::SmallVector<int64_t> (*inferLabel)(const Settings &settings,
                                           mlir::RankedTensorType prediction) = nullptr;
  /// Inputs beside the label, or null: none.
  llvm::SmallVector<LossInput> (*listInputs)(const Settings &settings,
                                             mlir::RankedTensorType prediction) = nullptr;
  /// Whether the term of a sample depends on other samples: `ortc eval` cannot take one out then.
  bool comparesSamples = false;
  Comparands comparands = Comparands::None;
};

/// All losses, in the order of messages.
llvm::ArrayRef<const LossDefinition *> listLosses();
/// The definition, or null.
const LossDefinition *findLoss(llvm::StringRef name);
/// That of a spec: null unless it is of LossSource::Formula.
const LossDefinition *findLoss(const LossSpec &loss);

/// The keys of the definition, and those that every loss has.
std::vector<Key> keysOf(const LossDefinition &definition);

/// Parses the SPEC of `--loss`: a loss without its name, outputs and weight.
Expected<LossSpec> parseLoss(std::string_view text);
/// Handles one `--loss`: `[NAME=]SPEC[@OUTPUT][:weight=W]`. The first one replaces the default. Of several, each must
/// have a name and outputs.
Status addLoss(std::string_view text, std::vector<LossSpec> &losses);
/// Of several losses: the output of steps that is the value of one; the hyper-parameter that is its weight.
std::string valueName(const LossSpec &loss);
std::string weightName(const LossSpec &loss);
/// The input of a loss that is called `name` where there is one loss: of several "NAME.ID", as labels are "label.ID".
std::string inputName(const LossSpec &loss, llvm::StringRef name);

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

/// The inputs that the loss has beside its label: those of the formula, then `sample_weight` where it was asked for.
/// `prediction` is the first one's type; `known` gives the type of the model's input of a name, or null.
mlir::FailureOr<llvm::SmallVector<LossInput>>
inferLossInputs(const LossSpec &loss, mlir::RankedTensorType prediction, mlir::Location loc,
                llvm::function_ref<mlir::Type(llvm::StringRef)> known = nullptr);

/// The scalar loss by PyTorch's definition, in f32 or, for a prediction in f64, in f64. `label` is null when
/// the loss needs none; `inputs` are those of inferLossInputs(). Fails, with an error, when the types do not fit.
mlir::FailureOr<mlir::Value> buildLossValue(nn::TensorBuilder &builder, const LossSpec &loss,
                                            mlir::ValueRange predictions, mlir::Value label,
                                            llvm::ArrayRef<mlir::Value> inputs = {});

/// What a formula ends in: its terms, samples in front.
struct LossTerms {
  mlir::Value each;
  /// Of the shape of `each`, numbers or i1: what each counts in a mean; null: 1.
  mlir::Value counts = {};
  int64_t size = 1; ///< how many of `each` are one term: the classes, where a term is their sum
  double sign = 1;  ///< -1: the loss is minus what the terms give
};

/// The loss of terms by the key `reduction`. Without any term, a mean is NaN, as 0 / 0 is.
mlir::Value reduceTerms(const LossOperands &operands, const LossTerms &terms);

#define ORTC_LOSS(name) extern const LossDefinition k##name##Loss;
#include "compiler/passes/train/losses/Table.inc"
#undef ORTC_LOSS

} // namespace ortc::train
