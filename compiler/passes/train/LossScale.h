// Scaling the loss so that small gradients have numbers: torch.amp.GradScaler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scale is state, and so are its counters: `loss_scale`, `loss_scale.growth_tracker` and `loss_scale.skipped`.
#pragma once

#include "compiler/options/CompileOptions.h"
#include "compiler/passes/train/ProgramTensors.h"

namespace ortc::train {

/// Declares the scale, of f32. Fails when the model has a tensor of that name.
mlir::FailureOr<TensorOp> declareLossScale(mlir::ModuleOp module, const LossScaleSpec &spec);

/// The scale as an argument of a function being composed.
mlir::FailureOr<mlir::Value> takeLossScale(TensorOp scale, FunctionComposer &composer);

/// i1: whether every element of all these tensors is finite.
mlir::Value areFinite(nn::TensorBuilder &builder, llvm::ArrayRef<mlir::Value> tensors);

/// The scale and its counters after a step whose gradients are finite, or are not.
mlir::FailureOr<llvm::SmallVector<Port>> updateLossScale(const LossScaleSpec &spec, mlir::Value finite,
                                                         mlir::ModuleOp module, FunctionComposer &composer,
                                                         ProgramTensors &tensors);

} // namespace ortc::train
