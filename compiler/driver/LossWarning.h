//===- LossWarning.h - models that apply what the loss applies ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/onnx.pb.h"
#include "compiler/options/CompileOptions.h"
#include "mlir/IR/BuiltinOps.h"

namespace ortc::driver {

/// Many models end with the softmax, or the sigmoid, that the loss has in itself: the warning for `output`, which feeds the
/// loss, or "". `source` is the imported graph, `model` the file.
std::string warnOfProbabilities(mlir::ModuleOp source, const proto::ModelProto &model, const LossSpec &loss,
                                const std::string &output);

} // namespace ortc::driver
