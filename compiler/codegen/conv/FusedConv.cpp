//===- FusedConv.cpp - convolutions with what hangs on them ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns a tensor program around one convolution into a ConvSpec. The epilogue is that of contractions; every dimension of
// the result must be one dimension of it, since the walk over the result is a walk over images and positions.
#include "compiler/codegen/conv/ConvKernel.h"
#include "compiler/codegen/conv/DenseConv.h"
#include "compiler/codegen/conv/NarrowGroups.h"
#include "compiler/codegen/conv/Winograd.h"

#include "compiler/codegen/contraction/FusedEpilogue.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::codegen {

/// Whether `op` is a convolution this generator makes: of f32 or f64.
static bool isConv(Operation *op) {
  if (!isa<nn::ConvOp, nn::ConvInputGradOp, nn::ConvFilterGradOp>(op))
    return false;
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  return element.isF32() || element.isF64();
}

/// Whether the kernel of this filter gradient has the whole sum of an element before it stores it, once.
static bool storesWholeSums(const ConvShape &shape) {
  return shape.parts == 1 && !hasNarrowGroups(shape) && usesWinograd(shape);
}

/// A spec without name and buffers; its epilogue is given as it was analysed.
static std::optional<ConvSpec> analyze(ValueRange inputs, ValueRange outputs,
                                       std::shared_ptr<FusedEpilogue> &epilogue, std::string &reason) {
  ConvSpec spec;
  spec.op = findOnly(inputs, outputs, isConv);
  reason = "there is not exactly one convolution";
  if (!spec.op)
    return std::nullopt;
  reason = "an operand of the convolution is no input";
  for (Value operand : spec.op->getOperands()) {
    auto input = llvm::find(inputs, operand);
    if (input == inputs.end())
      return std::nullopt;
    spec.operands.push_back({static_cast<unsigned>(input - inputs.begin()), 0, {}});
  }
  Value result = spec.op->getResult(0);
  epilogue = FusedEpilogue::analyze(inputs, outputs, result, reason);
  if (!epilogue)
    return std::nullopt;
  reason = "this filter gradient is stored as it is";
  if (epilogue->computes && isa<nn::ConvFilterGradOp>(spec.op) && !storesWholeSums(shapeOfConv(spec.op)))
    return std::nullopt;
  for (const ContractionOperand &operand : epilogue->view.operands)
    spec.operands.push_back({operand.buffer, operand.offset, {}});
  ArrayRef<int64_t> shape = cast<RankedTensorType>(result.getType()).getShape();
  nn::Shape strides = nn::rowMajorStrides(shape);
  for (auto [size, stride] : llvm::zip_equal(shape, strides)) {
    reason = "a dimension of the result is cut";
    SmallVector<ContractionDim> dims;
    if (!appendDims(size, &epilogue->view, stride, dims) || dims.size() > 1)
      return std::nullopt;
    for (auto [i, operand] : llvm::enumerate(llvm::drop_begin(spec.operands, FusedEpilogue::firstOperand)))
      operand.strides.push_back(dims.empty() ? 0 : dims[0].strides[i]);
  }
  reason = "vectors of the result would be scattered";
  for (const ConvOperand &operand : llvm::drop_begin(spec.operands, FusedEpilogue::firstOperand))
    if (operand.strides.back() != 0 && operand.strides.back() != 1)
      return std::nullopt;
  return spec;
}

bool isFusedConv(ValueRange inputs, ValueRange outputs, std::string &reason) {
  std::shared_ptr<FusedEpilogue> epilogue;
  return analyze(inputs, outputs, epilogue, reason).has_value();
}

SmallVector<int64_t> convInPlacePairs(ValueRange inputs, ValueRange outputs) {
  std::string reason;
  std::shared_ptr<FusedEpilogue> epilogue;
  auto spec = analyze(inputs, outputs, epilogue, reason);
  if (!spec)
    return {};
  return epilogue->inPlacePairs({spec->operands[0].buffer, spec->operands[1].buffer});
}

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
  std::shared_ptr<FusedEpilogue> epilogue;
  auto outputs = function.getBody().front().getTerminator()->getOperands();
  auto spec = analyze(function.getArguments(), outputs, epilogue, reason);
  if (!spec)
    return function.emitError() << "no convolution kernel can be made of this program: " << reason, failure();
  spec->name = function.getSymName().str();
  spec->buffers.assign(buffers.begin(), buffers.end());
  spec->numerics = numerics;
  spec->choices = choices;
  spec->epilogue = FusedEpilogue::code(epilogue, MathOptions::of(target, numerics));
  spec->rollEpilogue = epilogue->computes && epilogue->isLong();
  FailureOr<KernelInfo> info = emitConv(module, *spec, target);
  if (succeeded(info))
    info->flops += epilogue->flops;
  return info;
}

} // namespace ortc::codegen
