// Turns a tensor program around one nn.dot into a ContractionShape. Movement on both sides becomes strides.
// Each side is analysed as a loop program (LoopProgram.h). Its dims are intervals of the row-major positions
// of the dot's operand or result; every dim of the contraction is cut at the ends of the intervals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/contraction/ContractionForm.h"

#include "compiler/kernels/loop/LoopProgram.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::kernels {

/// An operand of the dot as a view of an input; of one that is extended to f32, `narrow` is the type.
static std::optional<View> viewOfInput(ValueRange inputs, Value operand, Type &narrow, std::string &reason) {
  if (auto extended = findWidening(operand)) {
    narrow = extended->type;
    operand = extended->from;
  }
  int64_t total = cast<RankedTensorType>(operand.getType()).getNumElements();
  View view;
  auto input = llvm::find(inputs, operand);
  if (input != inputs.end()) {
    view.operands.push_back({static_cast<unsigned>(input - inputs.begin()), 0});
    if (total > 1)
      view.digits.push_back({1, total, {1}});
    return view;
  }
  auto program = analyzeLoops(inputs, operand, reason);
  if (!program)
    return std::nullopt;
  reason = "an operand of the dot is more than a strided view of an input";
  if (program->outputs.size() != 1 || program->outputs[0].perRow || !program->reductions.empty())
    return std::nullopt;
  const LoopOutput &output = program->outputs[0];
  const LoopNode &node = program->nodes[output.node];
  if (node.kind != LoopNode::load || !node.at.dynamic.empty() ||
      !readDigits(*program, output.at, total, view.digits))
    return std::nullopt;
  addOperand(view, *program, output.at, node.at, node.buffer);
  return view;
}

/// Dims of all kinds, cut where any view asks for it.
static bool buildDims(ContractionForm &form, const View &lhs, const View &rhs) {
  nn::DotOp dot = form.dot;
  ArrayRef<int64_t> lhsShape = cast<RankedTensorType>(dot.getLhs().getType()).getShape();
  ArrayRef<int64_t> rhsShape = cast<RankedTensorType>(dot.getRhs().getType()).getShape();
  nn::Shape lhsStrides = nn::rowMajorStrides(lhsShape), rhsStrides = nn::rowMajorStrides(rhsShape);
  nn::Shape resultStrides = nn::rowMajorStrides(cast<RankedTensorType>(dot.getType()).getShape());
  const View *views[] = {&lhs, &rhs, &form.epilogue->view};
  bool isValid = true;
  size_t at = 0;
  for (auto [l, r] : llvm::zip_equal(dot.getLhsBatch(), dot.getRhsBatch()))
    isValid &=
        appendDims(lhsShape[l], views, {lhsStrides[l], rhsStrides[r], resultStrides[at++]}, form.shape.batch);
  for (int64_t d : nn::freeDimensions(lhsShape.size(), dot.getLhsBatch(), dot.getLhsContract()))
    isValid &= appendDims(lhsShape[d], views, {lhsStrides[d], 0, resultStrides[at++]}, form.shape.m);
  for (int64_t d : nn::freeDimensions(rhsShape.size(), dot.getRhsBatch(), dot.getRhsContract()))
    isValid &= appendDims(rhsShape[d], views, {0, rhsStrides[d], resultStrides[at++]}, form.shape.n);
  for (auto [l, r] : llvm::zip_equal(dot.getLhsContract(), dot.getRhsContract()))
    isValid &= appendDims(lhsShape[l], views, {lhsStrides[l], rhsStrides[r], 0}, form.shape.k);
  return isValid;
}

std::optional<ContractionForm> ContractionForm::analyze(ValueRange inputs, ValueRange outputs,
                                                        std::string &reason) {
  ContractionForm form;
  form.dot = dyn_cast_or_null<nn::DotOp>(findOnly(inputs, outputs, llvm::IsaPred<nn::DotOp>));
  if (!form.dot) {
    reason = "there is not exactly one dot";
    return std::nullopt;
  }
  ContractionShape &shape = form.shape;
  auto lhs = viewOfInput(inputs, form.dot.getLhs(), shape.narrowA, reason);
  auto rhs = lhs ? viewOfInput(inputs, form.dot.getRhs(), shape.narrowB, reason) : std::nullopt;
  if (rhs)
    form.epilogue = FusedEpilogue::analyze(inputs, outputs, form.dot.getResult(), reason);
  if (!form.epilogue)
    return std::nullopt;
  reason = "dims of the operands do not fit into each other";
  const View *views[] = {&*lhs, &*rhs, &form.epilogue->view};
  for (const View *view : views)
    shape.operands.append(view->operands);
  if (!buildDims(form, *lhs, *rhs))
    return std::nullopt;
  Type element = getElementTypeOrSelf(form.dot.getType());
  bool isNarrow = element.isF16() || element.isBF16();
  shape.accumulatorType = isNarrow ? Type(Float32Type::get(element.getContext())) : element;
  if (isNarrow)
    shape.narrowA = shape.narrowB = element;
  return form;
}

bool ContractionForm::suits(const FusionLimits &limits, std::string &reason) const {
  ContractionAxes axes = chooseAxes(shape, FusedEpilogue::firstOperand);
  reason = "vectors of the result would be scattered";
  for (unsigned i = FusedEpilogue::firstOperand; i < shape.operands.size(); ++i)
    if (int64_t stride = axes.lane.strides[i]; stride != 0 && stride != 1 && axes.lane.size > 1)
      return false;
  int64_t alongLanes = axes.lane.strides[axes.laneOperand],
          alongDepth = axes.kLoops.back().strides[axes.laneOperand];
  if (alongLanes != 1 && alongDepth != 1 && axes.lane.size > 1 && !usesDotKernel(shape))
    return false;
  // Cutting dims must not leave less of a tile than there was.
  reason = "dims would be cut too small";
  int64_t columns = sizeOf(axes.laneOperand == 1 ? shape.n : shape.m);
  int64_t rows = sizeOf(axes.laneOperand == 1 ? shape.m : shape.n);
  int64_t depth = axes.kLoops.back().size;
  return axes.lane.size >= std::min(columns, limits.tileColumns) &&
         axes.row.size >= std::min(rows, limits.tileRows) &&
         depth >= std::min(sizeOf(shape.k), limits.tileDepth);
}

SmallVector<int64_t> ContractionForm::inPlacePairs() const {
  return epilogue->inPlacePairs({shape.operands[0].buffer, shape.operands[1].buffer});
}

KernelWork ContractionForm::work() const {
  KernelWork work;
  work.flops = shape.flops() + epilogue->flops;
  return work;
}

} // namespace ortc::kernels
