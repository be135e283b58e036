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

  bool readPatterns(ArrayRef<std::string> texts, std::vector<NamePattern> &patterns, std::string &error) {
    return llvm::all_of(texts, [&](const std::string &text) {
      patterns.emplace_back();
      return NamePattern::parse(text, patterns.back(), error);
    });
  }

  bool readOptions(LegalizeOptions &options, std::string &error) {
    CompileOptions parsed;
    for (const std::string &text : shapes)
      if (!addShapes(text, parsed, error))
        return false;
    options.shapes = parsed.bindings.front().shapes;
    options.lossOutputs.assign(outputs.begin(), outputs.end());
    options.float64 = float64;
    return readPatterns(train, options.train, error) && readPatterns(freeze, options.freeze, error) &&
           parseBatchNorm(batchNorm, options.batchNorm, error) &&
           parseDropout(dropout, options.dropout, error);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    LegalizeOptions options;
    LegalizeReport report;
    std::string error;
    if (!readOptions(options, error) || !llvm::is_contained({"train", "eval", "both"}, mode)) {
      emitError(module.getLoc()) << (error.empty() ? "mode is '" + mode + "', not train, eval or both"
                                                   : error);
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
