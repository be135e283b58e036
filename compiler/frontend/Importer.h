// An ONNX file as IR of the onnx dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/Model.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace ortc::frontend {

/// Reads `path` and mirrors it in the onnx dialect (dialects/onnx/README.md). The module passes the verifier.
/// Large constants view the loaded model and keep it alive. Same file, same IR. On failure `status` says why;
/// nothing is reported through the context.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
importModel(const std::string &path, mlir::MLIRContext &context, Status &status, const Limits &limits = {});

/// The same for a model that is already loaded.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> importModel(const std::shared_ptr<const Model> &model,
                                                               mlir::MLIRContext &context, Status &status);

} // namespace ortc::frontend
