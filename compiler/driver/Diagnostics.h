// The first error that MLIR reports.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "support/Status.h"

#include <string>

namespace ortc::driver {

/// Takes the diagnostics of a context from its construction on, so that none is printed.
class Diagnostics {
public:
  /// `model`: the path that messages name.
  Diagnostics(mlir::MLIRContext &context, std::string model);
  ~Diagnostics();
  Diagnostics(const Diagnostics &) = delete;
  Diagnostics &operator=(const Diagnostics &) = delete;

  /// A refusal with the first error, its node and the model; for what has failed.
  Status refuse() const;
  /// A refusal with this message and the model, which it may name itself.
  Status refuse(const std::string &message) const;
  /// Fine, or refuse().
  Status check(mlir::LogicalResult result) const { return mlir::succeeded(result) ? Status() : refuse(); }
  /// Fine, or a refusal with the message of `outcome` and the model.
  Status check(const Status &outcome) const {
    return outcome.isOk() ? outcome : refuse(outcome.getMessage());
  }
  /// Runs the passes that `build` adds.
  Status run(mlir::ModuleOp module, llvm::function_ref<void(mlir::OpPassManager &)> build) const;

private:
  mlir::MLIRContext &context;
  const std::string model;
  std::string error;
  mlir::DiagnosticEngine::HandlerID handler;
};

} // namespace ortc::driver
