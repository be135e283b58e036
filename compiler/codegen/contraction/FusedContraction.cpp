// Turns a tensor program around one nn.dot into a ContractionSpec. Movement on both sides becomes strides: each side is
// analysed as a loop program (LoopProgram.h), its dims are intervals of the row-major positions of the dot's operand or
// result, and every dim of the contraction is cut at the ends of the intervals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/contraction/FusedContraction.h"
#include "compiler/codegen/StorageConversion.h"

#include "compiler/codegen/contraction/Contraction.h"
#include "compiler/codegen/contraction/ContractionPlan.h"
#include "compiler/codegen/contraction/FusedEpilogue.h"
#include "compiler/codegen/loop/ElementEmitter.h"
#include "compiler/codegen/loop/LoopProgram.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"

#include <memory>

using namespace mlir;

namespace ortc::codegen {
namespace {

struct Analysis {
  nn::DotOp dot;
  ContractionSpec spec; ///< without name, buffers and epilogue
  std::shared_ptr<FusedEpilogue> epilogue;
};

} // namespace

/// An operand of the dot as a view of an input.
static std::optional<View> viewOfInput(ValueRange inputs, Value operand, std::string &reason) {
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
static bool buildDims(Analysis &analysis, const View &lhs, const View &rhs) {
  nn::DotOp dot = analysis.dot;
  ArrayRef<int64_t> lhsShape = cast<RankedTensorType>(dot.getLhs().getType()).getShape();
  ArrayRef<int64_t> rhsShape = cast<RankedTensorType>(dot.getRhs().getType()).getShape();
  nn::Shape lhsStrides = nn::rowMajorStrides(lhsShape), rhsStrides = nn::rowMajorStrides(rhsShape);
  nn::Shape resultStrides = nn::rowMajorStrides(cast<RankedTensorType>(dot.getType()).getShape());
  const View *views[] = {&lhs, &rhs, &analysis.epilogue->view};
  bool isValid = true;
  size_t at = 0;
  for (auto [l, r] : llvm::zip_equal(dot.getLhsBatch(), dot.getRhsBatch()))
    isValid &= appendDims(lhsShape[l], views, {lhsStrides[l], rhsStrides[r], resultStrides[at++]},
                          analysis.spec.batch);
  for (int64_t d : nn::freeDimensions(lhsShape.size(), dot.getLhsBatch(), dot.getLhsContract()))
    isValid &= appendDims(lhsShape[d], views, {lhsStrides[d], 0, resultStrides[at++]}, analysis.spec.m);
  for (int64_t d : nn::freeDimensions(rhsShape.size(), dot.getRhsBatch(), dot.getRhsContract()))
    isValid &= appendDims(rhsShape[d], views, {0, rhsStrides[d], resultStrides[at++]}, analysis.spec.n);
  for (auto [l, r] : llvm::zip_equal(dot.getLhsContract(), dot.getRhsContract()))
    isValid &= appendDims(lhsShape[l], views, {lhsStrides[l], rhsStrides[r], 0}, analysis.spec.k);
  return isValid;
}

static std::unique_ptr<Analysis> analyze(ValueRange inputs, ValueRange outputs, std::string &reason) {
  auto analysis = std::make_unique<Analysis>();
  analysis->dot = dyn_cast_or_null<nn::DotOp>(findOnly(inputs, outputs, llvm::IsaPred<nn::DotOp>));
  if (!analysis->dot) {
    reason = "there is not exactly one dot";
    return nullptr;
  }
  auto lhs = viewOfInput(inputs, analysis->dot.getLhs(), reason);
  auto rhs = lhs ? viewOfInput(inputs, analysis->dot.getRhs(), reason) : std::nullopt;
  if (rhs)
    analysis->epilogue = FusedEpilogue::analyze(inputs, outputs, analysis->dot.getResult(), reason);
  if (!analysis->epilogue)
    return nullptr;
  reason = "dims of the operands do not fit into each other";
  ContractionSpec &spec = analysis->spec;
  const View *views[] = {&*lhs, &*rhs, &analysis->epilogue->view};
  for (const View *view : views)
    spec.operands.append(view->operands);
  if (!buildDims(*analysis, *lhs, *rhs))
    return nullptr;
  Type element = getElementTypeOrSelf(analysis->dot.getType());
  bool isNarrow = element.isF16() || element.isBF16();
  spec.accumulatorType = isNarrow ? Type(Float32Type::get(element.getContext())) : element;
  if (isNarrow)
    spec.narrowA = spec.narrowB = element;
  return analysis;
}

static KernelBuffer bufferOf(Value value, bool written) {
  auto type = cast<RankedTensorType>(value.getType());
  return {bufferType(type.getElementType()), type.getNumElements(), written, true};
}

bool isFusedContraction(ValueRange inputs, ValueRange outputs, std::string &reason) {
  std::unique_ptr<Analysis> analysis = analyze(inputs, outputs, reason);
  if (!analysis)
    return false;
  ContractionSpec &spec = analysis->spec;
  for (Value input : inputs)
    spec.buffers.push_back(bufferOf(input, false));
  for (Value output : outputs)
    spec.buffers.push_back(bufferOf(output, true));
  // Tiles as on the widest target; what is good there is good on all.
  ContractionPlan plan = planContraction(spec, *findTarget("x86-64-v4"));
  reason = "vectors of the result would be scattered";
  for (unsigned i = 2; i < spec.operands.size(); ++i)
    if (int64_t stride = plan.lane.strides[i]; stride != 0 && stride != 1 && plan.lane.size > 1)
      return false;
  int64_t alongLanes = plan.lane.strides[plan.laneOperand],
          alongDepth = plan.kLoops.back().strides[plan.laneOperand];
  if (alongLanes != 1 && alongDepth != 1 && plan.lane.size > 1 && !usesDotKernel(spec))
    return false;
  // Cutting dims must not leave less of a tile than there was.
  reason = "dims would be cut too small";
  int64_t columns = sizeOf(plan.laneOperand == 1 ? spec.n : spec.m);
  int64_t rows = sizeOf(plan.laneOperand == 1 ? spec.m : spec.n);
  int64_t depth = plan.kLoops.back().size;
  return plan.lane.size >= std::min<int64_t>(columns, 16) && plan.row.size >= std::min<int64_t>(rows, 12) &&
         depth >= std::min<int64_t>(sizeOf(spec.k), 16);
}

SmallVector<int64_t> contractionInPlacePairs(ValueRange inputs, ValueRange outputs) {
  std::string reason;
  std::unique_ptr<Analysis> analysis = analyze(inputs, outputs, reason);
  if (!analysis)
    return {};
  ArrayRef<ContractionOperand> operands = analysis->spec.operands;
  return analysis->epilogue->inPlacePairs({operands[0].buffer, operands[1].buffer});
}

FailureOr<KernelInfo> generateFusedContraction(ModuleOp module, func::FuncOp function,
                                               ArrayRef<KernelBuffer> buffers, const Target &target,
                                               Numerics numerics, const KernelChoices *choices) {
  std::string reason;
  Operation *terminator = function.getBody().front().getTerminator();
  std::unique_ptr<Analysis> analysis = analyze(function.getArguments(), terminator->getOperands(), reason);
  if (!analysis)
    return function.emitError() << "no contraction kernel can be made of this program: " << reason, failure();
  ContractionSpec &spec = analysis->spec;
  spec.name = function.getSymName().str();
  spec.buffers.assign(buffers.begin(), buffers.end());
  spec.numerics = numerics;
  spec.choices = choices;
  Type element = getElementTypeOrSelf(analysis->dot.getType());
  bool isNarrow = spec.accumulatorType != element;
  if (analysis->epilogue->computes) {
    spec.epilogue = FusedEpilogue::code(analysis->epilogue, MathOptions::of(target, numerics));
    spec.rollEpilogue = analysis->epilogue->isLong();
  } else if (isNarrow) {
    spec.epilogue = [element](OpBuilder &b, Location loc, EpilogueAccess &access, Value sum) {
      access.store(b, loc, 2, truncateFromF32(b, loc, sum, element));
    };
  }
  // Partial sums may lie in an output that holds sums of this type and shares memory with nobody.
  for (auto [operand, node] : analysis->epilogue->outputs) {
    const KernelBuffer &buffer = buffers[spec.operands[operand].buffer];
    if (spec.partialOperand < 0 && buffer.distinct && buffer.elementType == spec.accumulatorType)
      spec.partialOperand = static_cast<int>(operand);
  }
  OpBuilder builder(module.getContext());
  FailureOr<KernelInfo> info = emitContraction(builder, module, spec, target);
  if (succeeded(info))
    info->flops += analysis->epilogue->flops;
  return info;
}

} // namespace ortc::codegen
