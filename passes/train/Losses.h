// Losses as tensor programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/options/CompileOptions.h"
#include "dialects/nn/TensorBuilder.h"

namespace ortc::train {

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

} // namespace ortc::train
