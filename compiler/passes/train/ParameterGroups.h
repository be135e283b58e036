// Parameters with hyper-parameters, or an optimizer, of their own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/passes/train/Optimizers.h"
#include "compiler/passes/train/ProgramTensors.h"

#include <functional>

namespace ortc::train {

/// The formula of some parameters: that of --optimizer, or of one --group. Scalars that are a group's own are named
/// `groupN.NAME`; its others are those of --optimizer.
class ParameterGroup {
public:
  /// That of --optimizer.
  explicit ParameterGroup(const OptimizerSpec &optimizer);
  /// The one of --group with this number.
  ParameterGroup(const OptimizerGroup &group, size_t number);

  /// What makes the rate of a step of a learning rate.
  void setSchedule(std::function<mlir::Value(mlir::Value base)> rate) { schedule = std::move(rate); }

  const OptimizerDefinition &getDefinition() const { return *definition; }
  const Settings &getSettings() const { return settings; }
  /// The ONNX function that the formula is, or null.
  const OnnxOptimizer *getFile() const { return file.get(); }
  /// Whether the group gives this key, so that nothing else decides about it.
  bool owns(llvm::StringRef key) const { return own.count(key) != 0; }

  /// Whether its rate is a scalar of its own, which 'lr' does not move.
  bool hasOwnRate() const { return isOther || owns(kLr); }

  /// Declares what its parameters share and computes the new values, which are added to `updates` with the old ones.
  /// `base` is the group of --optimizer, or null for that itself.
  mlir::LogicalResult advance(ProgramTensors &tensors, nn::TensorBuilder &b, const ParameterGroup *base,
                              llvm::SmallVectorImpl<std::pair<Port, mlir::Value>> &updates);
  /// Declares the hyper-parameters, and gives them with what is shared. With `decays` off, those of weight decay are
  /// none.
  mlir::LogicalResult takeScalars(ProgramTensors &tensors, nn::TensorBuilder &b, bool decays,
                                  llvm::StringMap<mlir::Value> &scalars) const;

private:
  mlir::LogicalResult takeScalar(ProgramTensors &tensors, nn::TensorBuilder &b, const Key &key,
                                 mlir::Value &value) const;
  bool isShared(const SharedState &state, const ParameterGroup &base) const;

  std::shared_ptr<const OnnxOptimizer> file; ///< owns the definition, where there is one
  const OptimizerDefinition *definition;
  std::vector<Key> keys; ///< in the order of hyper-parameters
  Settings settings;
  std::string prefix; ///< of its scalars; empty: that of --optimizer
  bool isOther = false;
  double lrScale = 1;
  KeyValues own;
  llvm::StringMap<mlir::Value> shared;
  std::function<mlir::Value(mlir::Value)> schedule; ///< empty: rates stay as they are
};

} // namespace ortc::train
