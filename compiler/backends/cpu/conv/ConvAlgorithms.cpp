// The ways to make a kernel of a convolution.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/conv/ConvAlgorithms.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::cpu {

using namespace kernels;

/// An emitter that cannot fail.
template <KernelInfo (*emit)(ModuleOp, const ConvSpec &, const Target &)>
static FailureOr<KernelInfo> always(ModuleOp module, const ConvSpec &spec, const Target &target) {
  return emit(module, spec, target);
}
template <bool (*predicate)(const ConvShape &)>
static bool ofShape(const ConvSpec &, const ConvShape &shape, const Target &) {
  return predicate(shape);
}

static bool isGrouped(const ConvShape &shape) { return shape.groups > 1; }
static bool isGroupedOrPoint(const ConvShape &shape) {
  return shape.groups > 1 || nn::elementCount(shape.filter) == 1;
}
static bool isAny(const ConvShape &) { return true; }
static bool isPoint(const ConvSpec &spec, const ConvShape &, const Target &) { return isProduct(spec); }
static bool isPointForUnit(const ConvSpec &spec, const ConvShape &, const Target &target) {
  return isProductForUnit(spec, target);
}

ArrayRef<ConvAlgorithm> convAlgorithms() {
  constexpr unsigned kForwardInputGrad = kForward | kInputGrad;
  static constexpr ConvAlgorithm algorithms[] = {
      {"narrow", kForwardInputGrad, ofShape<hasNarrowGroups>, always<emitNarrowConv>},
      {"narrow", kFilterGrad, ofShape<hasNarrowGroups>, always<emitNarrowFilterGrad>},
      {"grouped", kForwardInputGrad, ofShape<isGrouped>, always<emitGroupedConv>},
      {"product", kForwardInputGrad, isPoint, emitProduct},
      {"winograd", kFilterGrad, ofShape<usesWinograd>, emitWinogradFilterGrad},
      {"product", kFilterGrad, isPointForUnit, emitProduct},
      {"grouped", kFilterGrad, ofShape<isGroupedOrPoint>, always<emitGroupedFilterGrad>},
      {"shallow", kInputGrad, ofShape<isScattered>, always<emitScatteredInputGrad>},
      {"shallow", kForward, isShallowConv, always<emitShallowConv>},
      {"shallow", kFilterGrad, ofShape<isShallowFilterGrad>, always<emitShallowFilterGrad>},
      {"winograd", kForwardInputGrad, ofShape<usesWinograd>, emitWinogradConv},
      {"dense", kForwardInputGrad, ofShape<isAny>, emitDenseConv},
      {"dense", kFilterGrad, ofShape<isAny>, emitDenseFilterGrad},
  };
  return algorithms;
}

const ConvAlgorithm &chooseAlgorithm(const ConvSpec &spec, const Target &target) {
  ConvShape shape = shapeOfConv(spec.op);
  unsigned operation = isa<nn::ConvOp>(spec.op)            ? kForward
                       : isa<nn::ConvInputGradOp>(spec.op) ? kInputGrad
                                                           : kFilterGrad;
  return *llvm::find_if(convAlgorithms(), [&](const ConvAlgorithm &algorithm) {
    return (algorithm.operations & operation) && algorithm.applies(spec, shape, target);
  });
}

} // namespace ortc::cpu
