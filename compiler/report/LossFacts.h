// What is said of a loss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/onnx.pb.h"
#include "compiler/options/CompileOptions.h"
#include "compiler/report/Manifest.h"
#include "mlir/IR/BuiltinOps.h"

namespace ortc::report {

/// What the losses of `program` are computed from, for the manifest.
void describeLosses(mlir::ModuleOp program, llvm::ArrayRef<LossSpec> losses, CompileFacts &facts);

/// Which inputs of the program have the batch in front, for the manifest. `source` is the imported graph.
/// After describeLosses().
void describeBatch(mlir::ModuleOp source, llvm::ArrayRef<LossSpec> losses, CompileFacts &facts);

/// Logits with two more axes than classes are [batch, classes, ...] for PyTorch, but often [batch, tokens,
/// classes]: a note on which axis is taken where no flag says so, or "".
std::string tellClassAxis(const LossSpec &loss, const LossFacts &facts);

/// Many models end with the softmax, or the sigmoid, that the loss has in itself: the warning for `output`,
/// which feeds the loss, or "". `source` is the imported graph, `model` the file.
std::string warnOfProbabilities(mlir::ModuleOp source, const proto::ModelProto &model, const LossSpec &loss,
                                const std::string &output);

} // namespace ortc::report
