// Optimizers: what a definition says, and the table of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An optimizer is a file in optimizers/ with one definition, and a row in optimizers/Table.inc. Parser, `--help`,
// messages, state, hyper-parameters and the manifest are made from the table; docs/adding-an-optimizer.md has the
// steps. Formulas are PyTorch's. Scalars are f64 of rank 0, as PyTorch computes with them in Python; they are rounded
// to the parameter's type where they meet it. Every tensor operation is elementwise on the parameter's shape, so that
// an update can become one kernel.
#pragma once

#include "compiler/options/CompileOptions.h"
#include "dialects/nn/TensorBuilder.h"
#include "llvm/ADT/StringMap.h"

namespace ortc::train {

/// Keys that every optimizer has: groups change them.
inline constexpr const char *kLr = "lr", *kWeightDecay = "weight_decay";

/// One step of one parameter: a formula replaces `parameter` and the values of `states`.
struct UpdateStep {
  nn::TensorBuilder &b;
  const Settings &settings;
  mlir::Value parameter, gradient;
  llvm::StringMap<mlir::Value> scalars; ///< hyper-parameters by key, corrections by name
  llvm::StringMap<mlir::Value> states;  ///< by name, those that are needed
  bool isSparse = false;                ///< of rows that have a gradient, whose state waits in between

  /// f64 of rank 0; null where a zero has compiled the hyper-parameter out.
  mlir::Value scalar(llvm::StringRef name) const { return scalars.lookup(name); }
  /// The scalar times the tensor.
  mlir::Value scale(mlir::Value tensor, mlir::Value scalar);
  /// g += weight_decay p
  void decayGradient();
};

/// Zero at first, and of the shape, type and layout of the parameter it belongs to.
struct StateDefinition {
  const char *name;
  bool (*isNeeded)(const Settings &settings) = nullptr; ///< null: always
};

/// 1 - key^t in step t: a scalar that all parameters share.
struct Correction {
  const char *name, *key;
};

struct OptimizerDefinition {
  const char *name;
  const char *meaning; ///< a phrase for the documentation
  std::vector<Key>
      keys; ///< numbers are hyper-parameters that a host may set between steps, switches are compiled in
  /// Why keys do not go together, or null.
  const char *(*contradict)(const Settings &settings) = nullptr;
  std::vector<Correction> corrections = {};
  std::vector<StateDefinition> states = {};
  void (*update)(UpdateStep &step);
  /// What moves an element, or its state, that has no gradient, in a phrase; null: nothing but weight decay, or what is
  /// meant to wait for the next gradient.
  const char *(*movesAlways)(const Settings &settings) = nullptr;
};

/// All optimizers, in the order of messages.
llvm::ArrayRef<const OptimizerDefinition *> listOptimizers();
/// The definition of a parsed spec.
const OptimizerDefinition &definitionOf(const OptimizerSpec &optimizer);
Settings settingsOf(const OptimizerSpec &optimizer);
/// lr, weight_decay, then the other keys as the table has them: the order of hyper-parameters and of the manifest.
std::vector<Key> orderKeys(const OptimizerDefinition &definition);

/// Parses `--optimizer`.
Expected<OptimizerSpec> parseOptimizer(std::string_view text);
/// What `--help` says of `--optimizer`.
std::string describeOptimizers();

/// 1 - beta^t from 1 - beta^(t-1), as beta c + (1 - beta): no power, no cancellation, zero at the start. It
/// is the sum of the weights in the moving average, also when beta changes on the way. Within 1e-13 of 1 -
/// pow(beta, t) for t up to 1e6.
mlir::Value advanceCorrection(nn::TensorBuilder &builder, mlir::Value correction, mlir::Value beta);

/// 1 - scalar
mlir::Value oneMinus(nn::TensorBuilder &builder, mlir::Value scalar);

/// The f64 scalar, rounded to the element type of `tensor` and repeated to its shape.
mlir::Value spread(nn::TensorBuilder &builder, mlir::Value scalar, mlir::Value tensor);

// Keys that several optimizers have.
Key lrKey(double initial);
Key weightDecayKey(double initial, const char *meaning);
Key momentumKey();
/// `name` is that of a moving average's factor.
Key betaKey(const char *name, double initial, const char *meaning);
Key epsilonKey();

#define ORTC_OPTIMIZER(name) extern const OptimizerDefinition k##name##Optimizer;
#include "passes/train/optimizers/Table.inc"
#undef ORTC_OPTIMIZER

} // namespace ortc::train
