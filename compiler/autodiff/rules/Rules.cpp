// The table of rule families.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/autodiff/rules/Rules.h"

#include "compiler/autodiff/Differentiate.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ortc::autodiff {

void registerGradientRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) { attachArithRules(context); });
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) { attachMathRules(context); });
  registry.addExtension(+[](MLIRContext *context, nn::NnDialect *) {
    attachMovementRules(context);
    attachReductionRules(context);
    attachContractionRules(context);
    attachSpatialRules(context);
    attachIndexingRules(context);
    attachScanRules(context);
  });
}

} // namespace ortc::autodiff
