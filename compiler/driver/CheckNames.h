// Index checks speak of the graph's inputs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace ortc::driver {

/// Gives every `nn.check_index` whose indices are elements of a graph input, moved or cast but not computed with, the
/// name of that input: the one that a host knows. Others keep the name of the value in the graph.
void nameChecksAfterInputs(mlir::ModuleOp module);

} // namespace ortc::driver
