// Optimizers whose training reads another point than the parameter.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/passes/train/ParameterGroups.h"
#include "compiler/passes/train/ProgramParts.h"

namespace ortc::train {

/// Where the backward functions read `parameter`, they read what OptimizerDefinition::ahead computes of it. `step` has
/// scalars and states as arguments of the update, `arguments` the attributes of these.
void readAhead(mlir::ModuleOp module, TensorOp parameter, const ParameterGroup &group, const UpdateStep &step,
               llvm::ArrayRef<mlir::DictionaryAttr> arguments);

} // namespace ortc::train
