// The first error that MLIR reports.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Diagnostics.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace ortc::driver {

/// The message with the node it belongs to. What compiler/passes/train makes beside the model is of none.
static std::string describe(Diagnostic &diagnostic) {
  std::string text;
  if (auto name = diagnostic.getLocation()->findInstanceOf<NameLoc>();
      name && !llvm::is_contained({"loss", "update", "accumulate"}, name.getName().getValue()))
    text = "node '" + name.getName().str() + "': ";
  return text + diagnostic.str();
}

Diagnostics::Diagnostics(MLIRContext &context, std::string model)
    : context(context), model(std::move(model)),
      handler(context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error && error.empty())
          error = describe(diagnostic);
        return success();
      })) {}

Diagnostics::~Diagnostics() { context.getDiagEngine().eraseHandler(handler); }

Status Diagnostics::refuse() const {
  return refuse(error.empty() ? "the compiler failed without a reason; please report this with the model"
                              : error);
}

Status Diagnostics::refuse(const std::string &message) const {
  return Status::refusal(message.find(model) == std::string::npos ? model + ": " + message : message);
}

Status Diagnostics::run(ModuleOp module, llvm::function_ref<void(OpPassManager &)> build) const {
  PassManager passes(&context);
  passes.enableVerifier(true);
  build(passes);
  return check(passes.run(module));
}

} // namespace ortc::driver
