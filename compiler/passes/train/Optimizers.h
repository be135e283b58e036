// Optimizers: what a definition says, and the table of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An optimizer is a file in optimizers/ with one definition, and a row in optimizers/Table.inc. Parser, `--help`,
// messages, state, hyper-parameters and the manifest are made from the table; docs/adding-an-optimizer.md has the
// steps. Formulas are PyTorch's. Scalars are f64 of rank 0, as PyTorch computes with them in Python; they are rounded
// to the parameter's type where they meet it. Most formulas are elementwise on the parameter's shape, so that an update
// becomes one kernel and can be computed of some rows; others say what they compute of the whole (`spans`).
#pragma once

#include "compiler/options/CompileOptions.h"
#include "dialects/nn/TensorBuilder.h"
#include "llvm/ADT/StringMap.h"

namespace ortc::train {

/// Keys that every optimizer has.
inline constexpr const char *kLr = "lr", *kWeightDecay = "weight_decay";
/// Where an optimizer has this switch, formulas see the gradient with its sign turned.
inline constexpr const char *kMaximize = "maximize";

/// Scalars by name, f64 of rank 0: hyper-parameters, and what parameters share.
struct ScalarStep {
  nn::TensorBuilder &b;
  const Settings &settings;
  llvm::StringMap<mlir::Value> scalars = {};

  /// Null where a zero has compiled the hyper-parameter out.
  mlir::Value scalar(llvm::StringRef name) const { return scalars.lookup(name); }
};

/// One step of one parameter: a formula replaces `parameter` and the values of `states`.
struct UpdateStep : ScalarStep {
  mlir::Value parameter, gradient;
  llvm::StringMap<mlir::Value> states = {}; ///< by name, those that are needed
  llvm::ArrayRef<int64_t> shape = {};       ///< of what is trained, as the file has it
  /// The dimension of `parameter` that is dimension i of `shape`, as parameters may be stored transposed.
  llvm::SmallVector<int64_t> axes = {};
  bool isSparse = false; ///< of rows that have a gradient, whose state waits in between
  /// `parameter` is what `OptimizerDefinition::ahead` gives, and a state that has a name for that is it.
  bool holdsAhead = false;
  const OnnxOptimizer *file = nullptr; ///< the formula is an ONNX function
  bool isRefused = false; ///< set by a formula that does not take the parameter, and has said why

  /// The scalar times the tensor.
  mlir::Value scale(mlir::Value tensor, mlir::Value scalar);
  /// g += weight_decay p
  void decayGradient();
  /// p *= 1 - lr weight_decay
  void decayParameter();
};

/// How a state is kept of parameters that are large enough (compiler/passes/train/ByteStates.h).
enum class Storage {
  Whole,
  Bytes,        ///< of numbers of both signs
  PositiveBytes ///< of numbers that are not negative
};

/// Of the shape, type and layout of the parameter it belongs to.
struct StateDefinition {
  const char *name;
  bool (*isNeeded)(const Settings &settings) = nullptr; ///< null: always
  /// Another shape of the same rank, from the parameter's in the file; nothing: this parameter has no such state.
  std::optional<llvm::SmallVector<int64_t>> (*shape)(llvm::ArrayRef<int64_t> file) = nullptr;
  Storage storage =
      Storage::Whole;          ///< others are for elementwise formulas, which then see rows of 256 elements
  double initial = 0;          ///< of every element
  const char *ahead = nullptr; ///< the state in its place where the step holds what training reads
};

/// State of rank 0, f64, that all parameters with the same `keys` share.
struct SharedState {
  const char *name;
  std::vector<const char *> keys; ///< hyper-parameters that it is made from
  /// The new value. `step` has the keys, and the shared states that stand before this one.
  mlir::Value (*advance)(ScalarStep &step, const SharedState &state, mlir::Value old);
  double initial = 0;
  bool (*isNeeded)(const Settings &settings) = nullptr; ///< null: always
  /// Updates without a model take the old value and give the new one. They take the new value of others, which follows
  /// from what a host counts.
  bool isAdvancedByUpdates = false;
};

struct OptimizerDefinition {
  const char *name;
  const char *meaning; ///< a phrase for the documentation
  std::vector<Key>
      keys; ///< numbers are hyper-parameters that a host may set between steps, other keys are compiled in
  /// Why keys do not go together, or null.
  const char *(*contradict)(const Settings &settings) = nullptr;
  std::vector<SharedState> shared = {};
  std::vector<StateDefinition> states = {};
  void (*update)(UpdateStep &step);
  /// What moves an element, or its state, that has no gradient, in a phrase; null: nothing but weight decay, or what is
  /// meant to wait for the next gradient.
  const char *(*movesAlways)(const Settings &settings) = nullptr;
  /// What it computes of a whole parameter, in a phrase; null: it is elementwise.
  const char *spans = nullptr;
  int64_t rank = 0; ///< of the parameters that it updates; 0: any
  /// What training reads in place of the parameter, which stays what evaluation reads; null: the parameter.
  mlir::Value (*ahead)(UpdateStep &step) = nullptr;
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

/// A group with its keys read.
struct OptimizerGroup {
  OptimizerSpec optimizer; ///< its own, or that of --optimizer with what the group changes
  bool isOther = false;    ///< it named one
  double lrScale = 1;
  KeyValues own; ///< keys of the optimizer that the group gave
};
Expected<OptimizerGroup> readGroup(const GroupSpec &group, const OptimizerSpec &base);
/// Reads all groups, for their messages.
Status checkGroups(const CompileOptions &options);

/// 1 - beta^t from 1 - beta^(t-1), as beta c + (1 - beta): no power, no cancellation, zero at the start. It
/// is the sum of the weights in the moving average, also when beta changes on the way. Within 1e-13 of 1 -
/// pow(beta, t) for t up to 1e6.
mlir::Value advanceCorrection(nn::TensorBuilder &builder, mlir::Value correction, mlir::Value beta);
/// 1 - key^t in step t.
SharedState correctionState(const char *name, const char *key);
/// `updates`, the number of steps that updated something, this one among them.
SharedState countState(bool (*isNeeded)(const Settings &settings) = nullptr);
inline constexpr const char *kUpdates = "updates";

/// 1 - scalar
mlir::Value oneMinus(nn::TensorBuilder &builder, mlir::Value scalar);
/// base^exponent of f64 scalars, base above 0.
mlir::Value power(nn::TensorBuilder &builder, double base, mlir::Value exponent);

/// The f64 scalar, rounded to the element type of `tensor` and repeated to its shape.
mlir::Value spread(nn::TensorBuilder &builder, mlir::Value scalar, mlir::Value tensor);

/// The root of the sum of squares, f64. Squares are summed in the type of the tensor.
mlir::Value normOf(nn::TensorBuilder &builder, mlir::Value tensor);

// Keys that several optimizers have.
Key lrKey(double initial);
Key weightDecayKey(double initial, const char *meaning);
/// `weightDecayKey` of decay that belongs to the gradient.
Key gradientDecayKey();
/// `weightDecayKey` of decay that does not.
Key ownDecayKey(double initial);
Key momentumKey();
/// `name` is that of a moving average's factor.
Key betaKey(const char *name, double initial, const char *meaning);
Key epsilonKey(double initial = 1e-8, const char *meaning = "added to the divisor");
/// A switch that is off.
Key switchKey(const char *name, const char *meaning);
Key maximizeKey();

#define ORTC_OPTIMIZER(name) extern const OptimizerDefinition k##name##Optimizer;
#include "compiler/passes/train/optimizers/Table.inc"
#undef ORTC_OPTIMIZER

} // namespace ortc::train
