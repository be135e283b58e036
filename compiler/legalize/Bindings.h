// Static shapes of the graph's inputs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/options/CompileOptions.h"
#include "dialects/onnx/OnnxDialect.h"
#include "support/Expected.h"

namespace ortc::legalize {

/// The shape of every graph input under `shapes` (`NAME=N` or `INPUT=AxBxC`). A refusal lists every
/// dimension without a value, or says which item of `shapes` does not fit.
Expected<llvm::SmallVector<llvm::SmallVector<int64_t>>> bindInputs(onnx::GraphOp graph,
                                                                   llvm::ArrayRef<ShapeSpec> shapes);

} // namespace ortc::legalize
