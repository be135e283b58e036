// Optimizers that are ONNX functions: `--optimizer onnx:FILE`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs are `parameter`, `gradient`, `lr`, and `step`, which counts updates from 1; an input NAME beside an output
// NAME_new is state of each parameter, others are keys. Outputs are `parameter_new` and the new states. A default
// (FunctionFile.h) of a state is what it begins as.
#pragma once

#include "compiler/frontend/FunctionFile.h"
#include "compiler/passes/train/Optimizers.h"

namespace ortc {

struct OnnxOptimizer {
  std::shared_ptr<const frontend::FunctionFile> file;
  train::OptimizerDefinition definition;
  std::string name; ///< of the definition
};

} // namespace ortc

namespace ortc::train {

/// Reads `FILE[:key=value,...]` and gives `keys` what follows the file.
Status readOnnxOptimizer(std::string_view text, std::shared_ptr<const OnnxOptimizer> &optimizer,
                         std::string_view &keys);

} // namespace ortc::train
