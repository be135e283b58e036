// What all families of targets must have in common.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "support/Status.h"

#include <string>

namespace ortc::driver {

/// Whether a family's program has the tensors of the first family's, with the same types, layouts, regions and offsets,
/// and the same entries: one tensor table serves both, and checkpoints of one go on in the other. Fails with the first
/// difference, without naming the model.
Status checkFamily(mlir::ModuleOp first, mlir::ModuleOp other, const std::string &name);

} // namespace ortc::driver
