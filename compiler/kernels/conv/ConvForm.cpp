// Turns a tensor program around one convolution into a ConvForm. The epilogue is that of contractions; every
// dimension of the result must be one dimension of it, since the walk over the result is a walk over images
// and positions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/conv/ConvForm.h"

#include "compiler/kernels/conv/ConvShape.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::kernels {

/// Whether `op` is a convolution of f32 or f64.
static bool isConv(Operation *op) {
  if (!isa<nn::ConvOp, nn::ConvInputGradOp, nn::ConvFilterGradOp>(op))
    return false;
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  return element.isF32() || element.isF64();
}

bool storesWholeSums(Operation *conv) {
  if (!isa<nn::ConvFilterGradOp>(conv))
    return true;
  ConvShape shape = shapeOfConv(conv);
  return shape.parts == 1 && !hasNarrowGroups(shape) && usesWinograd(shape);
}

std::optional<ConvForm> ConvForm::analyze(ValueRange inputs, ValueRange outputs, std::string &reason) {
  ConvForm form;
  form.op = findOnly(inputs, outputs, isConv);
  reason = "there is not exactly one convolution";
  if (!form.op)
    return std::nullopt;
  reason = "an operand of the convolution is no input";
  for (auto [narrow, operand] : llvm::zip_equal(form.narrow, form.op->getOperands())) {
    if (auto extended = findWidening(operand)) {
      operand = extended->from;
      narrow = extended->type;
    }
    auto input = llvm::find(inputs, operand);
    if (input == inputs.end())
      return std::nullopt;
    form.operands.push_back({static_cast<unsigned>(input - inputs.begin()), 0, {}});
  }
  Value result = form.op->getResult(0);
  form.epilogue = FusedEpilogue::analyze(inputs, outputs, result, reason);
  if (!form.epilogue)
    return std::nullopt;
  reason = "this filter gradient is stored as it is";
  if (form.epilogue->computes && !storesWholeSums(form.op))
    return std::nullopt;
  for (const ContractionOperand &operand : form.epilogue->view.operands)
    form.operands.push_back({operand.buffer, operand.offset, {}});
  ArrayRef<int64_t> shape = cast<RankedTensorType>(result.getType()).getShape();
  nn::Shape strides = nn::rowMajorStrides(shape);
  for (auto [size, stride] : llvm::zip_equal(shape, strides)) {
    reason = "a dimension of the result is cut";
    SmallVector<ContractionDim> dims;
    if (!appendDims(size, &form.epilogue->view, stride, dims) || dims.size() > 1)
      return std::nullopt;
    for (auto [i, operand] : llvm::enumerate(llvm::drop_begin(form.operands, FusedEpilogue::firstOperand)))
      operand.strides.push_back(dims.empty() ? 0 : dims[0].strides[i]);
  }
  reason = "vectors of the result would be scattered";
  for (const ConvOperand &operand : llvm::drop_begin(form.operands, FusedEpilogue::firstOperand))
    if (operand.strides.back() != 0 && operand.strides.back() != 1)
      return std::nullopt;
  return form;
}

SmallVector<int64_t> ConvForm::inPlacePairs() const {
  return epilogue->inPlacePairs({operands[0].buffer, operands[1].buffer});
}

KernelWork ConvForm::work() const {
  KernelWork work;
  work.flops = shapeOfConv(op).flops() + epilogue->flops;
  return work;
}

} // namespace ortc::kernels
