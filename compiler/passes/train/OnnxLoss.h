// Losses that are ONNX functions: `--loss onnx:FILE`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs in front of `label` are outputs of the model, in order, and those behind it inputs of the program, by name.
// Without a label all are outputs. What has a default (FunctionFile.h) is a key. The only output is the loss, or terms
// of samples, which are reduced as those of other losses are.
#pragma once

#include "compiler/frontend/FunctionFile.h"
#include "compiler/passes/train/Losses.h"

namespace ortc {

struct OnnxLoss {
  std::shared_ptr<const frontend::FunctionFile> file;
  train::LossDefinition definition;
  std::string name;                                                 ///< of the definition
  const frontend::FunctionValue *label = nullptr;                   ///< null: there is none
  std::vector<const frontend::FunctionValue *> predictions, inputs; ///< `inputs` are those of the program
};

} // namespace ortc

namespace ortc::train {

/// The type of the label, or of an input, beside a prediction of that type.
mlir::FailureOr<mlir::RankedTensorType> inferInputType(const OnnxLoss &loss,
                                                       const frontend::FunctionValue &value,
                                                       mlir::RankedTensorType prediction, mlir::Location loc);

/// Parses `FILE[:key=value,...]`.
Status parseOnnxLoss(std::string_view text, LossSpec &loss);

} // namespace ortc::train
