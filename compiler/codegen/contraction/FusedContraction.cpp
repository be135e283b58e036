// Turns a tensor program around one nn.dot into a ContractionSpec. Movement on both sides becomes strides: each side is
// analysed as a loop program (LoopProgram.h), its dims are intervals of the row-major positions of the dot's operand or
// result, and every dim of the contraction is cut at the ends of the intervals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/contraction/FusedContraction.h"

#include "compiler/codegen/contraction/Contraction.h"
#include "compiler/codegen/contraction/ContractionPlan.h"
#include "compiler/codegen/loop/ElementEmitter.h"
#include "compiler/codegen/loop/LoopProgram.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"

#include <memory>
#include <set>

using namespace mlir;

namespace ortc::codegen {
namespace {

/// The elements at positions [low, high) of a row-major tensor, in steps of `low`: a digit of the position. Per step,
/// operand i moves by strides[i].
struct Digit {
  int64_t low, high;
  SmallVector<int64_t, 4> strides;
};

/// How operands follow the positions of a tensor.
struct View {
  SmallVector<Digit> digits; ///< from the innermost, without gaps
  SmallVector<ContractionOperand> operands;
};

struct Analysis {
  nn::DotOp dot;
  ContractionSpec spec; ///< without name, buffers and epilogue
  LoopProgram program;  ///< of the epilogue; all values are lanes
  /// Loads of the dot's result, operand of every other load, operand and node of every output.
  llvm::DenseSet<unsigned> resultNodes;
  llvm::DenseMap<unsigned, unsigned> loadOperand;
  SmallVector<std::pair<unsigned, unsigned>> outputs;
  bool hasEpilogue = false;
};

} // namespace

static SmallVector<int64_t> rowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

/// Digits of the positions that `position` makes of the program's dims; fails unless every position occurs once.
static bool readDigits(const LoopProgram &program, const IndexExpr &position, int64_t total,
                       SmallVectorImpl<Digit> &digits) {
  if (position.constant != 0 || !position.dynamic.empty())
    return false;
  SmallVector<std::pair<int64_t, unsigned>> byScale;
  for (unsigned d = 0; d < program.dims.size(); ++d)
    byScale.push_back({position.scales[d], d});
  llvm::sort(byScale);
  int64_t expected = 1;
  for (auto [scale, d] : byScale) {
    if (scale != expected)
      return false;
    expected = scale * program.dims[d].size;
    digits.push_back({scale, expected, {}});
  }
  return expected == total;
}

/// Appends an operand that moves along the program's dims as `at` says; `position` is what the digits were read from.
static void addOperand(View &view, const LoopProgram &program, const IndexExpr &position, const IndexExpr &at,
                       unsigned buffer) {
  view.operands.push_back({buffer, at.constant});
  for (Digit &digit : view.digits)
    for (unsigned d = 0; d < program.dims.size(); ++d)
      if (position.scales[d] == digit.low && program.dims[d].size * digit.low == digit.high)
        digit.strides.push_back(at.scales[d]);
}

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
  if (node.kind != LoopNode::load || !node.at.dynamic.empty() || !readDigits(*program, output.at, total, view.digits))
    return std::nullopt;
  addOperand(view, *program, output.at, node.at, node.buffer);
  return view;
}

/// Everything behind the dot: fills the epilogue's part of `analysis` and gives the view of its operands.
static std::optional<View> viewOfResult(ValueRange inputs, ValueRange outputs, Analysis &analysis,
                                        std::string &reason) {
  Value result = analysis.dot.getResult();
  int64_t total = cast<RankedTensorType>(result.getType()).getNumElements();
  unsigned resultBuffer = inputs.size();
  View view;
  if (outputs.size() == 1 && outputs[0] == result) {
    view.operands.push_back({resultBuffer, 0});
    if (total > 1)
      view.digits.push_back({1, total, {1}});
    analysis.outputs.push_back({2, 0});
    return view;
  }
  analysis.hasEpilogue = true;
  SmallVector<Value> all(inputs);
  all.push_back(result);
  auto program = analyzeLoops(all, outputs, reason);
  if (!program)
    return std::nullopt;
  analysis.program = *program;
  LoopProgram &p = analysis.program;
  reason = "what follows the dot is not elementwise on its result";
  if (!p.reductions.empty() || p.passes != 1 || p.dims.empty())
    return std::nullopt;

  const IndexExpr *position = nullptr;
  for (auto [number, node] : llvm::enumerate(p.nodes)) {
    bool isSplat = node.kind == LoopNode::constant &&
                   isa<SplatElementsAttr>(cast<arith::ConstantOp>(node.op).getValue());
    bool isAffineLoad = node.kind == LoopNode::load && node.at.dynamic.empty();
    if (!isSplat && !isAffineLoad && node.kind != LoopNode::operation)
      return std::nullopt;
    if (node.kind != LoopNode::load || node.buffer != resultBuffer)
      continue;
    if (position && !(*position == node.at))
      return std::nullopt;
    position = &node.at;
    analysis.resultNodes.insert(number);
  }
  if (!position || !readDigits(p, *position, total, view.digits))
    return std::nullopt;
  // Outputs first: operand 2 decides about the direction of vectors.
  for (const LoopOutput &output : p.outputs) {
    if (output.perRow || !output.at.dynamic.empty() ||
        cast<RankedTensorType>(p.buffers[output.buffer]).getNumElements() != total)
      return std::nullopt;
    analysis.outputs.push_back({2 + view.operands.size(), output.node});
    // The dot's result stands between inputs and outputs and is no buffer of the kernel.
    addOperand(view, p, *position, output.at, output.buffer - 1);
  }
  for (auto [number, node] : llvm::enumerate(p.nodes)) {
    if (node.kind != LoopNode::load || analysis.resultNodes.contains(number))
      continue;
    analysis.loadOperand[number] = 2 + view.operands.size();
    addOperand(view, p, *position, node.at, node.buffer);
  }
  // Everything is computed on lanes, whichever dim they lie along.
  p.laneDim = 0;
  for (LoopNode &node : p.nodes)
    node.dims = node.kind == LoopNode::constant ? 0 : 1;
  for (LoopNode &node : p.nodes)
    if (node.kind == LoopNode::operation)
      node.dims = llvm::any_of(node.operands, [&](unsigned operand) { return p.nodes[operand].dims != 0; });
  return view;
}

/// Where the tensor dim with this size and stride is cut, in steps of the dim.
static void collectCuts(const View &view, int64_t size, int64_t stride, std::set<int64_t> &cuts) {
  for (const Digit &digit : view.digits)
    for (int64_t end : {digit.low, digit.high})
      if (end > stride && end < stride * size)
        cuts.insert(end % stride == 0 ? end / stride : -1);
}

/// Strides of the view's operands per step of the digit that starts at `low` steps of a tensor dim.
static bool appendStrides(const View &view, int64_t low, int64_t stride, SmallVectorImpl<int64_t> &strides) {
  int64_t position = low * stride;
  for (const Digit &digit : view.digits) {
    if (digit.low <= position && position < digit.high) {
      for (int64_t step : digit.strides)
        strides.push_back(step * (position / digit.low));
      return position % digit.low == 0;
    }
  }
  strides.append(view.operands.size(), 0); // a tensor of one element
  return true;
}

/// One dim of the dot as dims of the contraction. A stride of zero elements means that the tensor lacks the dim.
static bool appendDims(int64_t size, ArrayRef<const View *> views, ArrayRef<int64_t> strides,
                       SmallVectorImpl<ContractionDim> &dims) {
  std::set<int64_t> cuts{1, size};
  for (auto [view, stride] : llvm::zip_equal(views, strides))
    if (stride)
      collectCuts(*view, size, stride, cuts);
  if (*cuts.begin() < 1)
    return false;
  SmallVector<int64_t> ends(cuts.begin(), cuts.end());
  SmallVector<ContractionDim> pieces;
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    if (ends[i + 1] % ends[i] != 0)
      return false;
    ContractionDim dim{ends[i + 1] / ends[i], {}};
    for (auto [view, stride] : llvm::zip_equal(views, strides)) {
      if (stride && !appendStrides(*view, ends[i], stride, dim.strides))
        return false;
      if (!stride)
        dim.strides.append(view->operands.size(), 0);
    }
    pieces.push_back(std::move(dim));
  }
  dims.append(pieces.rbegin(), pieces.rend());
  return true;
}

/// Dims of all kinds, cut where any view asks for it.
static bool buildDims(Analysis &analysis, const View &lhs, const View &rhs, const View &result) {
  nn::DotOp dot = analysis.dot;
  ArrayRef<int64_t> lhsShape = cast<RankedTensorType>(dot.getLhs().getType()).getShape();
  ArrayRef<int64_t> rhsShape = cast<RankedTensorType>(dot.getRhs().getType()).getShape();
  SmallVector<int64_t> lhsStrides = rowMajorStrides(lhsShape), rhsStrides = rowMajorStrides(rhsShape);
  SmallVector<int64_t> resultStrides = rowMajorStrides(cast<RankedTensorType>(dot.getType()).getShape());
  const View *views[] = {&lhs, &rhs, &result};
  bool isValid = true;
  size_t at = 0;
  for (auto [l, r] : llvm::zip_equal(dot.getLhsBatch(), dot.getRhsBatch()))
    isValid &= appendDims(lhsShape[l], views, {lhsStrides[l], rhsStrides[r], resultStrides[at++]}, analysis.spec.batch);
  for (int64_t d : nn::freeDimensions(lhsShape.size(), dot.getLhsBatch(), dot.getLhsContract()))
    isValid &= appendDims(lhsShape[d], views, {lhsStrides[d], 0, resultStrides[at++]}, analysis.spec.m);
  for (int64_t d : nn::freeDimensions(rhsShape.size(), dot.getRhsBatch(), dot.getRhsContract()))
    isValid &= appendDims(rhsShape[d], views, {0, rhsStrides[d], resultStrides[at++]}, analysis.spec.n);
  for (auto [l, r] : llvm::zip_equal(dot.getLhsContract(), dot.getRhsContract()))
    isValid &= appendDims(lhsShape[l], views, {lhsStrides[l], rhsStrides[r], 0}, analysis.spec.k);
  return isValid;
}

/// The only nn.dot that `outputs` are computed with.
static nn::DotOp findDot(ValueRange inputs, ValueRange outputs) {
  llvm::DenseSet<Value> seen(inputs.begin(), inputs.end());
  SmallVector<Value> stack(outputs);
  nn::DotOp found;
  while (!stack.empty()) {
    Value value = stack.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(value).second)
      continue;
    if (auto dot = dyn_cast<nn::DotOp>(op)) {
      if (found)
        return nullptr;
      found = dot;
    }
    stack.append(op->operand_begin(), op->operand_end());
  }
  return found;
}

static std::unique_ptr<Analysis> analyze(ValueRange inputs, ValueRange outputs, std::string &reason) {
  auto analysis = std::make_unique<Analysis>();
  analysis->dot = findDot(inputs, outputs);
  if (!analysis->dot) {
    reason = "there is not exactly one dot";
    return nullptr;
  }
  auto lhs = viewOfInput(inputs, analysis->dot.getLhs(), reason);
  auto rhs = lhs ? viewOfInput(inputs, analysis->dot.getRhs(), reason) : std::nullopt;
  auto result = rhs ? viewOfResult(inputs, outputs, *analysis, reason) : std::nullopt;
  if (!result)
    return nullptr;
  reason = "dims of the operands do not fit into each other";
  ContractionSpec &spec = analysis->spec;
  for (const View *view : {&*lhs, &*rhs, &*result})
    spec.operands.append(view->operands);
  if (!buildDims(*analysis, *lhs, *rhs, *result))
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
  int64_t alongLanes = plan.lane.strides[plan.laneOperand], alongDepth = plan.kLoops.back().strides[plan.laneOperand];
  if (alongLanes != 1 && alongDepth != 1 && plan.lane.size > 1 && !usesDotKernel(spec))
    return false;
  // Cutting dims must not leave less of a tile than there was.
  auto largest = [](ArrayRef<ContractionDim> dims) {
    int64_t size = 1;
    for (const ContractionDim &dim : dims)
      size *= dim.size;
    return size;
  };
  reason = "dims would be cut too small";
  int64_t columns = largest(plan.laneOperand == 1 ? spec.n : spec.m);
  int64_t rows = largest(plan.laneOperand == 1 ? spec.m : spec.n);
  int64_t depth = plan.kLoops.back().size;
  return plan.lane.size >= std::min<int64_t>(columns, 16) && plan.row.size >= std::min<int64_t>(rows, 12) &&
         depth >= std::min<int64_t>(largest(spec.k), 16);
}

/// The epilogue as code on vectors.
static Epilogue makeEpilogue(std::shared_ptr<Analysis> analysis, MathOptions options) {
  Type element = getElementTypeOrSelf(analysis->dot.getType());
  return [analysis, options, element](OpBuilder &builder, Location loc, EpilogueAccess &access, Value sum) {
    LoopBuilder b(loc, builder);
    ElementEmitter emitter(b, analysis->program, {}, options);
    emitter.setWidth(access.lanes());
    emitter.setSupplier([&](unsigned number) -> Value {
      const LoopNode &node = analysis->program.nodes[number];
      if (node.kind != LoopNode::load)
        return {};
      if (analysis->resultNodes.contains(number))
        return element.isF16() || element.isBF16() ? truncateFromF32(b, loc, sum, element) : sum;
      Value value = access.load(b, loc, analysis->loadOperand.lookup(number));
      if (!node.element.isInteger(1))
        return value;
      Value zero = arith::ConstantOp::create(b, b.getZeroAttr(value.getType()));
      return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, zero);
    });
    for (auto [output, operand] : llvm::zip_equal(analysis->program.outputs, analysis->outputs)) {
      Value value = emitter.emitVector(output.node);
      if (output.element.isInteger(1))
        value = arith::ExtUIOp::create(b, VectorType::get({access.lanes()}, b.getI8Type()), value);
      access.store(b, loc, operand.first, value);
    }
  };
}

FailureOr<KernelInfo> generateFusedContraction(ModuleOp module, func::FuncOp function, ArrayRef<KernelBuffer> buffers,
                                               const Target &target, Numerics numerics) {
  std::string reason;
  Operation *terminator = function.getBody().front().getTerminator();
  std::shared_ptr<Analysis> analysis = analyze(function.getArguments(), terminator->getOperands(), reason);
  if (!analysis)
    return function.emitError() << "no contraction kernel can be made of this program: " << reason, failure();
  ContractionSpec &spec = analysis->spec;
  spec.name = function.getSymName().str();
  spec.buffers.assign(buffers.begin(), buffers.end());
  spec.numerics = numerics;
  Type element = getElementTypeOrSelf(analysis->dot.getType());
  bool isNarrow = spec.accumulatorType != element;
  if (analysis->hasEpilogue) {
    spec.epilogue = makeEpilogue(analysis, MathOptions::of(target, numerics));
    int64_t cost = 0;
    for (const LoopNode &node : analysis->program.nodes)
      cost += node.kind == LoopNode::operation ? node.cost : 0;
    spec.rollEpilogue = cost > 12;
  } else if (isNarrow) {
    spec.epilogue = [element](OpBuilder &b, Location loc, EpilogueAccess &access, Value sum) {
      access.store(b, loc, 2, truncateFromF32(b, loc, sum, element));
    };
  }
  // Partial sums may lie in an output that holds sums of this type and shares memory with nobody.
  for (auto [operand, node] : analysis->outputs) {
    const KernelBuffer &buffer = buffers[spec.operands[operand].buffer];
    if (spec.partialOperand < 0 && buffer.distinct && buffer.elementType == spec.accumulatorType)
      spec.partialOperand = static_cast<int>(operand);
  }
  OpBuilder builder(module.getContext());
  return emitContraction(builder, module, spec, target);
}

} // namespace ortc::codegen
