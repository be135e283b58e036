// The steps from forward functions to entries.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the passes of this folder call, for callers that have parsed options at hand. Each step reads the
// functions that the one before it left in the module; all fail with a diagnostic.
//
//   forward_train_B, forward_eval_B            from legalisation, per binding B = 0, 1, ...
//   loss_B                                     buildLoss
//   backward_B = forward_train + loss + gradients        differentiateLoss, or
//              = forward_train + gradients for cotangents, differentiateOutputs
//   (the same, with parameters of bf16)         narrowParameters, if asked for
//   update[, accumulation]                      buildUpdate, shared by all bindings
//   train_B, eval_B, predict_B[, accumulate_B][, gradients_B, update_B]  composeEntries; the parts are gone. Or
//   forward_backward_B, predict_B[, update_B]
//   train_B, whose tables of `--sparse` are updated row by row           updateRows
#pragma once

#include "compiler/autodiff/Differentiate.h"
#include "compiler/kernels/TrainingLimits.h"
#include "compiler/options/CompileOptions.h"
#include "mlir/IR/BuiltinOps.h"

#include <set>

namespace ortc::train {

/// Adds `@loss_B` for every binding. A loss that names no outputs takes `lossInput`, and without that the only one,
/// else the first of floating point. The choice can be read from the `train.output` attribute of the function's first
/// argument. The label is an argument of the spec's name: of the type of the graph's input of that name when there is
/// one. Several losses, and one with a weight, are multiplied by hyper-parameters and added; of several, each is an
/// output, too (valueName, weightName). `countsLabels`: the number of labels that are not ignored is the output
/// kLabelCount; fails where the loss has no class indices.
mlir::LogicalResult buildLoss(mlir::ModuleOp module, llvm::ArrayRef<LossSpec> losses,
                              llvm::StringRef lossInput, bool countsLabels = false);
inline constexpr llvm::StringLiteral kLabelCount = "loss.count";

struct LossOptions {
  std::optional<LossScaleSpec> scale; ///< gradients are computed of the loss times that, and divided by it
  std::optional<int64_t>
      headChunk; ///< rows of logits that exist at a time; 0: all; absent: of `chunkBytes` (ChunkHead.h)
  std::vector<std::string> outputs;      ///< of the forward part, which the function gives, too
  std::vector<NamePattern> materialized; ///< parameters with gradients of zeros where none reaches them
  int64_t chunkBytes = kernels::TrainingLimits().chunkBytes; ///< of logits
};

/// Adds `@backward_B` for every binding that has a training part. Other parameters that no gradient reaches become
/// constants.
mlir::LogicalResult differentiateLoss(mlir::ModuleOp module,
                                      const autodiff::DifferentiateOptions &options = {},
                                      const LossOptions &what = {});

struct CotangentOptions {
  std::vector<std::string> outputs;      ///< the host gives their cotangents
  std::vector<std::string> inputs;       ///< gradients are computed of them, too
  std::vector<NamePattern> materialized; ///< as for a loss
};

/// Adds `@backward_B` for every binding: all outputs, updates of state, and for the cotangents of some outputs, which
/// are inputs named `OUTPUT.cotangent`, the gradients of parameters and of some inputs, which are outputs named
/// `INPUT.gradient` (zeros where none reaches it). Other parameters that no gradient reaches become constants.
mlir::LogicalResult differentiateOutputs(mlir::ModuleOp module, const CotangentOptions &what,
                                         const autodiff::DifferentiateOptions &options = {});

/// Marks the parameters, and the state among `initializers`, as bound: their places are the host's.
void bindParameters(mlir::ModuleOp module, const std::set<std::string> &initializers);

/// Leaves the initial values out of what bindParameters() would mark.
void dropWeights(mlir::ModuleOp module, const std::set<std::string> &initializers);

/// Stores parameters of f32 as bf16: initial values are rounded to the nearest, and functions extend what they take.
/// Gradients stay f32. Fails where a parameter is of another type.
mlir::LogicalResult narrowParameters(mlir::ModuleOp module);

/// Marks the parameters that `sparse` names `train.sparse`: no pass makes products of what reads them.
void markSparseTables(mlir::ModuleOp module, llvm::ArrayRef<SparseSpec> sparse);

/// Fails where the gradient of a marked parameter is not zero in rows that nothing gathers.
mlir::LogicalResult checkSparseGradients(mlir::ModuleOp module);

struct UpdateOptions {
  OptimizerSpec optimizer;
  std::vector<GroupSpec> groups;             ///< the first that matches a parameter's name is its group
  std::vector<SparseSpec> sparse;            ///< the first that matches a parameter's name
  std::optional<double> clipNorm, clipValue; ///< > 0
  int64_t accumulate = 1;                    ///< gradient steps before an update
  std::optional<LossScaleSpec> lossScale;    ///< updates nothing where a gradient is not finite
  UpdateSpecs specs = {};
  /// Of bf16 parameters' new values, which are rounded at random; without it to the nearest.
  std::optional<uint64_t> roundingSeed = {};
  NoDecaySpec noDecay = {}; ///< which parameters have no weight decay where their group gives none
  /// state below the smallest normal number becomes zero, whatever the processor does
  bool flushesState = false;
  bool accumulatesLabels = false; ///< gradients are means over all their labels, of kLabelCount each
};

/// Adds `@update`, hyper-parameters and optimizer state. With more than one gradient step before an update, also
/// `@accumulation`: it takes a step's gradients and returns under the same attribute their sum with those of
/// the steps since the last update, each divided by the hyper-parameter "accumulate"; the sum so far is the
/// state `PARAMETER.accumulated`. With `accumulatesLabels` it multiplies each by its labels, and divides by the number
/// of all, whose sum so far is the state `accumulated.count`. Optimizers that train at another point than the parameter
/// change what `@backward_B` reads.
mlir::LogicalResult buildUpdate(mlir::ModuleOp module, const UpdateOptions &options);

struct EntryOptions {
  bool gradients = false;  ///< also the entries `gradients` and `update`
  bool cotangents = false; ///< `backward_B` has outputs and gradients for cotangents (differentiateOutputs)
  bool bindsGradients = false; ///< gradients are outputs `PARAMETER.gradient`
  std::string hidden = {};     ///< an output that no entry gives; empty: there is none
};

/// Replaces the parts by the entries.
mlir::LogicalResult composeEntries(mlir::ModuleOp module, const EntryOptions &options);

/// Of the parameters that are marked `train.sparse`, and of their state, entries update the rows alone
/// that have been gathered. Fails where something else reads such a table.
mlir::LogicalResult updateRows(mlir::ModuleOp module);

} // namespace ortc::train
