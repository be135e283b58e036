// Declaring scalars and optimizer state.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/passes/train/ProgramParts.h"
#include "llvm/ADT/StringSet.h"

namespace ortc::train {

/// Declares train.tensors beside the model's own and hands out their values in a function being composed.
/// Names are what a host finds a tensor by; one that the model already uses is an error.
class ProgramTensors {
public:
  /// Without a composer tensors can be declared, but nothing is handed out.
  explicit ProgramTensors(mlir::ModuleOp module, FunctionComposer *composer = nullptr);

  /// A hyper-parameter: rank 0, f64, settable between steps. Asked for twice, it is declared once.
  mlir::FailureOr<mlir::Value> getScalar(llvm::StringRef name, double initial);
  /// State of `type` that starts at `initial`; null: at zero.
  mlir::FailureOr<Port> getState(llvm::StringRef name, mlir::RankedTensorType type,
                                 mlir::ElementsAttr initial = {});
  /// State that is named `owner.name` and has the layout of its owner. `type` has the rank of the owner. All elements
  /// start at `initial`.
  mlir::FailureOr<Port> getState(llvm::StringRef name, TensorOp owner, mlir::RankedTensorType type,
                                 double initial = 0);
  /// The same of any rank, in the order of the file, that starts at zero. Integers of it have no sign.
  mlir::FailureOr<Port> getRows(llvm::StringRef name, TensorOp owner, mlir::RankedTensorType type);

  /// Whether the model, or this object, has a tensor, an input or an output of that name.
  bool isTaken(llvm::StringRef name) const { return taken.contains(name); }

  /// State that starts at a value.
  mlir::FailureOr<TensorOp> declareState(llvm::StringRef name, mlir::RankedTensorType type,
                                         mlir::ElementsAttr initial);

private:
  mlir::FailureOr<TensorOp> declare(TensorOp tensor);
  mlir::FailureOr<TensorOp> declareState(llvm::StringRef name, TensorOp owner, mlir::RankedTensorType type,
                                         mlir::DenseI64ArrayAttr permutation, mlir::ElementsAttr initial);
  mlir::FailureOr<Port> portOf(mlir::FailureOr<TensorOp> state);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  FunctionComposer *composer;
  llvm::StringMap<TensorOp> declared; ///< by this object
  llvm::StringSet<> taken;            ///< names of the model's tensors
  mlir::Operation *last = nullptr;    ///< the declaration to append after
};

} // namespace ortc::train
