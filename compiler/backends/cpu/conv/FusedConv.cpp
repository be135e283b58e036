// From the form of a convolution to its kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/conv/ConvKernel.h"
#include "compiler/backends/cpu/conv/DenseConv.h"
#include "compiler/backends/cpu/conv/NarrowGroups.h"
#include "compiler/backends/cpu/conv/Winograd.h"

#include "compiler/backends/cpu/contraction/EpilogueCode.h"
#include "compiler/kernels/conv/ConvForm.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::cpu {

/// Which kernel makes which convolution.
static FailureOr<KernelInfo> emitConv(ModuleOp module, const ConvSpec &spec, const Target &target) {
  ConvShape shape = shapeOfConv(spec.op);
  if (isa<nn::ConvFilterGradOp>(spec.op)) {
    assert((!spec.epilogue || storesWholeSums(shape)) && "other kernels store what they have summed so far");
    if (hasNarrowGroups(shape))
      return emitNarrowFilterGrad(module, spec, target);
    if (usesWinograd(shape))
      return emitWinogradFilterGrad(module, spec, target);
    // Vectors gain nothing from copies where there is one filter position; the matrix unit needs them anyway.
    if (std::optional<ContractionSpec> product = productOf(spec);
        product && isFasterOnUnit(*product, target)) {
      OpBuilder builder(module.getContext());
      return emitContraction(builder, module, *product, target);
    }
    bool isPoint = nn::elementCount(shape.filter) == 1;
    if (shape.groups > 1 || isPoint)
      return emitConvFilterGrad(module, spec, target);
    if (isShallowFilterGrad(shape))
      return emitShallowFilterGrad(module, spec, target);
    return emitDenseFilterGrad(module, spec, target);
  }
  if (shape.groups > 1)
    return hasNarrowGroups(shape) ? emitNarrowWalk(module, spec, target) : emitConvWalk(module, spec, target);
  if (std::optional<ContractionSpec> product = productOf(spec)) {
    OpBuilder builder(module.getContext());
    return emitContraction(builder, module, *product, target);
  }
  if (isa<nn::ConvInputGradOp>(spec.op) && isScattered(shape))
    return emitScatteredInputGrad(module, spec, target);
  if (isa<nn::ConvOp>(spec.op) && isShallowConv(shape))
    return emitShallowConv(module, spec, target);
  return usesWinograd(shape) ? emitWinogradConv(module, spec, target) : emitDenseConv(module, spec, target);
}

FailureOr<KernelInfo> generateConv(ModuleOp module, func::FuncOp function, ArrayRef<KernelBuffer> buffers,
                                   const Target &target, Numerics numerics, const KernelChoices *choices) {
  std::string reason;
  auto outputs = function.getBody().front().getTerminator()->getOperands();
  auto form = ConvForm::analyze(function.getArguments(), outputs, reason);
  if (!form)
    return function.emitError() << "no convolution kernel can be made of this program: " << reason, failure();
  ConvSpec spec;
  spec.op = form->op;
  spec.operands = form->operands;
  spec.name = function.getSymName().str();
  spec.buffers.assign(buffers.begin(), buffers.end());
  spec.numerics = numerics;
  spec.choices = choices;
  spec.epilogue = codeOf(form->epilogue, MathOptions::of(target, numerics));
  spec.rollEpilogue = form->epilogue->computes && form->epilogue->isLong();
  FailureOr<KernelInfo> info = emitConv(module, spec, target);
  if (succeeded(info))
    info->flops += form->epilogue->flops;
  return info;
}

} // namespace ortc::cpu
