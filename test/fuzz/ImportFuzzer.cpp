// Models into MLIR and through legalisation, every dimension that is open set to 2.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/Importer.h"
#include "compiler/frontend/onnx.pb.h"
#include "compiler/legalize/Legalize.h"
#include "compiler/passes/import/Passes.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/onnx/OnnxDialect.h"
#include "dialects/train/TrainDialect.h"
#include "test/fuzz/Models.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

namespace ortc::fuzz {

using namespace mlir;

static std::vector<ShapeSpec> bindAll(const proto::GraphProto &graph) {
  std::vector<ShapeSpec> shapes;
  for (const proto::ValueInfoProto &input : graph.input()) {
    ShapeSpec spec{input.name(), {}};
    for (const auto &dim : input.type().tensor_type().shape().dim())
      spec.dims.push_back(dim.has_dim_value() ? dim.dim_value() : 2);
    bool isInitializer =
        std::any_of(graph.initializer().begin(), graph.initializer().end(),
                    [&](const proto::TensorProto &tensor) { return tensor.name() == input.name(); });
    if (!spec.dims.empty() && !isInitializer)
      shapes.push_back(std::move(spec));
  }
  return shapes;
}

bool fuzzImport(Input file) {
  std::shared_ptr<const frontend::Model> model = readModel(file);
  if (!model)
    return false;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect, nn::NnDialect,
                      onnx::OnnxDialect, train::TrainDialect>();
  std::string error;
  context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      error = diagnostic.str();
    return success();
  });
  Status outcome;
  auto source = frontend::importModel(model, context, outcome);
  if (failed(source)) {
    demand(!outcome.isOk(), "a refusal has no reason");
    return false;
  }
  PassManager passes(&context);
  passes.addPass(import::createInlineFunctionsPass());
  if (failed(passes.run(**source))) {
    demand(!error.empty(), "a refusal has no reason");
    return false;
  }
  OwningOpRef<ModuleOp> program = ModuleOp::create(UnknownLoc::get(&context));
  legalize::LegalizeOptions options;
  options.shapes = bindAll(model->getProto().graph());
  for (legalize::Mode mode : {legalize::Mode::train, legalize::Mode::eval}) {
    options.mode = mode;
    legalize::LegalizeReport report;
    if (failed(legalize::legalize(**source, *program, options, report))) {
      demand(!report.message().empty(), "a refusal has no reason");
      return false;
    }
    if (failed(verify(*program)))
      demand(false, ("legalised IR is not valid: " + error).c_str());
  }
  return true;
}

} // namespace ortc::fuzz
