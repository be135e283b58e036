// Legalisation as a pass.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Legalize.h"
#include "compiler/legalize/Passes.h"
#include "dialects/onnx/OnnxDialect.h"

using namespace mlir;

namespace ortc::legalize {

#define GEN_PASS_DEF_LEGALIZEPASS
#include "compiler/legalize/Passes.h.inc"

namespace {

struct LegalizePass : impl::LegalizePassBase<LegalizePass> {
  using Base::Base;

  Status readPatterns(ArrayRef<std::string> texts, std::vector<NamePattern> &patterns) {
    for (const std::string &text : texts)
      ORTC_TRY(NamePattern::parse(text).moveTo(patterns.emplace_back()));
    return Status();
  }

  Status readOptions(LegalizeOptions &options) {
    CompileOptions parsed;
    for (const std::string &text : shapes)
      ORTC_TRY(addShapes(text, parsed));
    options.shapes = parsed.bindings.front().shapes;
    options.lossOutputs.assign(outputs.begin(), outputs.end());
    options.float64 = float64;
    ORTC_TRY(readPatterns(train, options.train));
    ORTC_TRY(readPatterns(freeze, options.freeze));
    ORTC_TRY(readPatterns(materialized, options.materialized));
    ORTC_TRY(parseBatchNorm(batchNorm).moveTo(options.batchNorm));
    ORTC_TRY(parseDropout(dropout).moveTo(options.dropout));
    if (!llvm::is_contained({"train", "eval", "both"}, mode))
      return Status::refusal("mode is '" + mode + "', not train, eval or both");
    return Status();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    LegalizeOptions options;
    LegalizeReport report;
    if (Status status = readOptions(options); !status.isOk()) {
      emitError(module.getLoc()) << status.getMessage();
      return signalPassFailure();
    }
    for (Mode each : {Mode::train, Mode::eval}) {
      if (mode == (each == Mode::train ? "eval" : "train"))
        continue;
      options.mode = each;
      if (failed(legalize(module, module, options, report))) {
        emitError(module.getLoc()) << report.message();
        return signalPassFailure();
      }
      for (const std::vector<std::string> &list : {report.notes, report.warnings})
        for (const std::string &sentence : list)
          emitRemark(module.getLoc()) << sentence;
    }
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (isa<onnx::OnnxDialect>(op.getDialect()))
        op.erase();
    for (NamedAttribute attribute : llvm::to_vector(module->getAttrs()))
      if (attribute.getName().getValue().starts_with("onnx."))
        module->removeAttr(attribute.getName());
  }
};

} // namespace
} // namespace ortc::legalize
