// Code for the nodes of a loop program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/emit/ElementEmitter.h"
#include "compiler/backends/emit/StorageConversion.h"

#include "compiler/backends/emit/DefinedArithmetic.h"
#include "dialects/nn/Philox.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ortc::emit {

using namespace kernels;

/// Bits of a cache line, and lanes that one fetch serves whatever their type.
static constexpr int64_t kLineBits = 512, kFetchLanes = 16;

/// The type that holds `element` in a register: f16 and bf16 are their bits, everything else is itself.
static Type registerType(Type element) {
  return element.isF16() || element.isBF16() ? IntegerType::get(element.getContext(), 16) : element;
}

Type bufferType(Type element) {
  return element.isInteger(1) ? IntegerType::get(element.getContext(), 8) : registerType(element);
}

Value ElementEmitter::lookup(unsigned node) const {
  for (const auto &scope : llvm::reverse(scopes))
    if (Value value = scope.lookup(node))
      return value;
  return {};
}

Value ElementEmitter::spreadLanes(Value value) {
  return width == 0 || isa<VectorType>(value.getType()) ? value : b.spread(value, width);
}

Value ElementEmitter::emit(unsigned number) {
  if (Value value = lookup(number))
    return value;
  Value value;
  if (supplier)
    value = supplier(number);
  if (!value)
    value = create(number, program.nodes[number]);
  scopes.back()[number] = value;
  return value;
}

void ElementEmitter::hoist(unsigned number, uint64_t inner, llvm::BitVector &seen) {
  if (seen.test(number))
    return;
  seen.set(number);
  const LoopNode &node = program.nodes[number];
  if ((node.dims & inner) == 0) {
    if (node.kind != LoopNode::reduction)
      emit(number);
    return;
  }
  // What a range guards is only valid inside it.
  if (node.kind != LoopNode::range)
    for (unsigned operand : node.operands)
      hoist(operand, inner, seen);
  for (const IndexExpr::Dynamic &term : node.at.dynamic)
    hoist(term.node, inner, seen);
}

Value ElementEmitter::asIndex(Value value) {
  Type type = getElementTypeOrSelf(value.getType());
  if (type.isIndex())
    return value;
  Type to = b.getIndexType();
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    to = vector.clone(to);
  return arith::IndexCastOp::create(b, to, value);
}

Value ElementEmitter::emitIndex(const IndexExpr &expr) {
  Value total;
  auto addTerm = [&](Value term) { total = total ? b.add(total, term) : term; };
  for (size_t d = 0; d < expr.scales.size(); ++d)
    if (expr.scales[d] != 0)
      addTerm(b.mul(position[d], expr.scales[d]));
  for (const IndexExpr::Dynamic &term : expr.dynamic)
    if (!isLanes(term.node))
      addTerm(b.mul(asIndex(emit(term.node)), term.scale));
  int64_t constant = expr.constant + (shift ? shift * expr.scales[program.laneDim] : 0);
  return total ? b.add(total, constant) : b.index(constant);
}

Value ElementEmitter::laneOf(Value value, int64_t lane) { return vector::ExtractOp::create(b, value, lane); }

Value ElementEmitter::laneIndices(const IndexExpr &expr) {
  auto type = VectorType::get({width}, b.getI64Type());
  SmallVector<int64_t> steps;
  for (int64_t lane = 0; lane < width; ++lane)
    steps.push_back(lane * expr.scales[program.laneDim]);
  Value base = arith::IndexCastOp::create(b, b.getI64Type(), emitIndex(expr));
  Value indices = arith::ConstantOp::create(b, DenseElementsAttr::get(type, ArrayRef<int64_t>(steps)));
  indices = arith::AddIOp::create(b, b.spread(base, width), indices);
  for (const IndexExpr::Dynamic &term : expr.dynamic) {
    if (!isLanes(term.node))
      continue;
    Value value = emit(term.node);
    Type from = getElementTypeOrSelf(value.getType());
    if (from.isIndex())
      value = arith::IndexCastOp::create(b, type, value);
    else if (from.getIntOrFloatBitWidth() < 64)
      value = arith::ExtSIOp::create(b, type, value);
    if (term.scale != 1)
      value = arith::MulIOp::create(b, value,
                                    arith::ConstantOp::create(b, DenseElementsAttr::get(type, term.scale)));
    indices = arith::AddIOp::create(b, indices, value);
  }
  return indices;
}

/// Loads each lane on its own.
Value ElementEmitter::loadLanes(const IndexExpr &expr, llvm::function_ref<Value(Value)> loadAt) {
  SmallVector<Value> lanes;
  bool dynamic =
      llvm::any_of(expr.dynamic, [&](const IndexExpr::Dynamic &term) { return isLanes(term.node); });
  if (dynamic) {
    Value indices = laneIndices(expr);
    for (int64_t lane = 0; lane < width; ++lane)
      lanes.push_back(loadAt(arith::IndexCastOp::create(b, b.getIndexType(), laneOf(indices, lane))));
  } else {
    Value base = emitIndex(expr);
    for (int64_t lane = 0; lane < width; ++lane)
      lanes.push_back(loadAt(b.add(base, lane * expr.scales[program.laneDim])));
  }
  return vector::FromElementsOp::create(b, VectorType::get({width}, lanes.front().getType()), lanes);
}

Value ElementEmitter::fromStorage(Value value, Type element) {
  if (!element.isInteger(1))
    return value;
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(value.getType()));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, zero);
}

Value ElementEmitter::loadContiguous(Type element, Value buffer, Value at) {
  return fromStorage(width == 0 ? b.loadScalar(buffer, at) : b.load(buffer, at, width), element);
}

void ElementEmitter::store(Value value, Type element, Value buffer, Value at) {
  if (element.isInteger(1)) {
    Type type = b.getI8Type();
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      type = vector.clone(type);
    value = arith::ExtUIOp::create(b, type, value);
  }
  if (isa<VectorType>(value.getType()))
    b.store(value, buffer, at);
  else
    memref::StoreOp::create(b, value, buffer, ValueRange{at});
}

void ElementEmitter::store(Value value, Type element, Value buffer, const IndexExpr &at) {
  Value position = emitIndex(at);
  if (isa<VectorType>(value.getType()))
    fetchAhead(buffer, position, at, /*writes=*/true);
  store(value, element, buffer, position);
}

void ElementEmitter::fetchAhead(Value buffer, Value at, const IndexExpr &expr, bool writes) {
  if (!fetch || expr.scales[fetchDim] == 0)
    return;
  unsigned bits = cast<MemRefType>(buffer.getType()).getElementTypeBitWidth();
  for (int64_t lane = 0; lane < width; lane += std::max(kLineBits / bits, kFetchLanes))
    memref::PrefetchOp::create(b, buffer, ValueRange{b.add(at, fetch * expr.scales[fetchDim] + lane)}, writes,
                               /*localityHint=*/3, /*isDataCache=*/true);
}

Value ElementEmitter::createLoad(unsigned number, const LoopNode &node) {
  Value buffer = buffers[node.buffer];
  if (!isLanes(number))
    return fromStorage(b.loadScalar(buffer, emitIndex(node.at)), node.element);
  if (options.scaling && program.isLookup(node))
    if (Value value = createLookup(node))
      return value;
  int64_t scale = node.at.scales[program.laneDim];
  bool dynamic =
      llvm::any_of(node.at.dynamic, [&](const IndexExpr::Dynamic &term) { return isLanes(term.node); });
  if (!dynamic && scale == 1) {
    Value at = emitIndex(node.at);
    fetchAhead(buffer, at, node.at, /*writes=*/false);
    return loadContiguous(node.element, buffer, at);
  }
  if (!dynamic && scale == -1) {
    Value start = b.add(emitIndex(node.at), 1 - width);
    Value forward = b.load(buffer, start, width);
    SmallVector<int64_t> order;
    for (int64_t lane = width; lane-- > 0;)
      order.push_back(lane);
    return fromStorage(vector::ShuffleOp::create(b, forward, forward, order), node.element);
  }
  return fromStorage(loadLanes(node.at, [&](Value at) { return b.loadScalar(buffer, at); }), node.element);
}

Value ElementEmitter::createLookup(const LoopNode &node) {
  Value index = emit(node.at.dynamic.front().node);
  auto type = dyn_cast<VectorType>(index.getType());
  if (!type || !type.getElementType().isInteger(32))
    return {};
  int64_t size = cast<RankedTensorType>(program.buffers[node.buffer]).getNumElements();
  SmallVector<Value> table;
  const int64_t piece = std::min(width, kTablePiece);
  for (int64_t at = 0; at < size; at += piece)
    table.push_back(b.load(buffers[node.buffer], b.index(at), piece));
  return options.scaling->emitLookup(b, b.getLoc(), table, index);
}

/// f16 and bf16 numbers as their bits.
static TypedAttr registerAttribute(Attribute value, Type element) {
  if (element.isF16() || element.isBF16())
    return IntegerAttr::get(registerType(element), cast<FloatAttr>(value).getValue().bitcastToAPInt());
  return cast<TypedAttr>(value);
}

Value ElementEmitter::createConstant(unsigned number, const LoopNode &node) {
  auto elements = cast<ElementsAttr>(cast<arith::ConstantOp>(node.op).getValue());
  if (auto splat = dyn_cast<SplatElementsAttr>(elements))
    return arith::ConstantOp::create(b, registerAttribute(splat.getSplatValue<Attribute>(), node.element));
  // A table in the code. Large constants are tensors of the program, so it is small.
  SmallVector<Attribute> values;
  for (Attribute value : elements.getValues<Attribute>())
    values.push_back(registerAttribute(value, node.element));
  auto type = VectorType::get({static_cast<int64_t>(values.size())}, registerType(node.element));
  Value table = arith::ConstantOp::create(b, DenseElementsAttr::get(type, values));
  auto loadAt = [&](Value at) -> Value { return vector::ExtractOp::create(b, table, OpFoldResult(at)); };
  return isLanes(number) ? loadLanes(node.at, loadAt) : loadAt(emitIndex(node.at));
}

Value ElementEmitter::createIota(unsigned number, const LoopNode &node) {
  Type element = node.element, type = b.getI64Type();
  Value value;
  if (isLanes(number)) {
    value = laneIndices(node.at);
    type = value.getType();
  } else {
    value = arith::IndexCastOp::create(b, type, emitIndex(node.at));
  }
  auto shaped = [&](Type scalar) -> Type {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Type(vector.clone(scalar)) : scalar;
  };
  if (element.isF16() || element.isBF16()) {
    value = arith::SIToFPOp::create(b, shaped(b.getF32Type()), value);
    return truncateFromF32(b, b.getLoc(), value, element);
  }
  if (isa<FloatType>(element)) {
    // Positions fit 32 bits, whose conversion is one instruction everywhere.
    value = arith::TruncIOp::create(b, shaped(b.getI32Type()), value);
    return arith::SIToFPOp::create(b, shaped(element), value);
  }
  return element.getIntOrFloatBitWidth() < 64 ? arith::TruncIOp::create(b, shaped(element), value).getResult()
                                              : value;
}

/// Ten rounds of Philox2x32 (dialects/nn/Philox.h). Who needs both words computes them twice;
/// LLVM makes one of it.
Value ElementEmitter::createRandom(unsigned number, const LoopNode &node) {
  bool lanes = isLanes(number);
  auto shaped = [&](Type scalar) -> Type { return lanes ? Type(VectorType::get({width}, scalar)) : scalar; };
  Type word = shaped(b.getI32Type()), wide = shaped(b.getI64Type());
  auto constant = [&](Type type, uint64_t value) -> Value {
    unsigned bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    auto scalar = b.getIntegerAttr(getElementTypeOrSelf(type), APInt(64, value).trunc(bits));
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(b, DenseElementsAttr::get(vector, scalar));
    return arith::ConstantOp::create(b, scalar);
  };
  Value step = arith::TruncIOp::create(b, b.getI32Type(), emit(node.operands[0]));
  Value at = lanes ? laneIndices(node.at)
                   : arith::IndexCastOp::create(b, b.getI64Type(), emitIndex(node.at)).getResult();
  Value first = arith::TruncIOp::create(b, word, at), second = lanes ? spreadLanes(step) : step;
  auto key = static_cast<uint32_t>(cast<nn::RandomOp>(node.op).getKey());
  Value multiplier = constant(wide, nn::kPhiloxMultiplier), half = constant(wide, 32);
  for (unsigned round = 0; round < nn::kPhiloxRounds; ++round, key += nn::kPhiloxWeyl) {
    Value product = arith::MulIOp::create(b, arith::ExtUIOp::create(b, wide, first), multiplier);
    Value high = arith::TruncIOp::create(b, word, arith::ShRUIOp::create(b, product, half));
    first = arith::XOrIOp::create(b, arith::XOrIOp::create(b, high, constant(word, key)), second);
    second = arith::TruncIOp::create(b, word, product);
  }
  return node.index == 0 ? first : second;
}

Value ElementEmitter::createDivision(unsigned number, const LoopNode &node) {
  bool quotient = node.kind == LoopNode::quotient;
  if (!isLanes(number)) {
    Value at = emitIndex(node.at);
    return quotient ? b.div(at, node.step) : b.rem(at, node.step);
  }
  Value indices = laneIndices(node.at);
  Value divisor =
      arith::ConstantOp::create(b, DenseElementsAttr::get(cast<ShapedType>(indices.getType()), node.step));
  return quotient ? arith::DivUIOp::create(b, indices, divisor).getResult()
                  : arith::RemUIOp::create(b, indices, divisor).getResult();
}

Value ElementEmitter::inRange(Value index, const LoopNode &node) {
  Value condition =
      arith::AndIOp::create(b, arith::CmpIOp::create(b, arith::CmpIPredicate::sge, index, b.index(node.low)),
                            arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, b.index(node.high)));
  if (node.step > 1) {
    // Below `low` the remainder means nothing, and the condition is false anyway.
    Value rest = arith::RemUIOp::create(b, b.sub(index, b.index(node.low)), b.index(node.step));
    condition = arith::AndIOp::create(b, condition,
                                      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rest, b.index(0)));
  }
  return condition;
}

// The guarded node may only be evaluated where the test holds. Along lanes: at once where it holds for all of them,
// lane by lane otherwise.
Value ElementEmitter::createRange(unsigned number, const LoopNode &node) {
  Type element = registerType(node.element);
  auto choose = [&](Value condition, Type type, llvm::function_ref<Value()> inside,
                    llvm::function_ref<Value()> outside) {
    auto op = scf::IfOp::create(b, TypeRange{type}, condition, /*addThenBlock=*/true, /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(b);
    for (bool first : {true, false}) {
      b.setInsertionPointToStart(first ? op.thenBlock() : op.elseBlock());
      openScope();
      Value value = first ? inside() : outside();
      scf::YieldOp::create(b, value);
      closeScope();
    }
    return op.getResult(0);
  };
  bool lanesTest = width > 0 && (program.laneDim >= 0 && node.at.scales[program.laneDim] != 0);
  for (const IndexExpr::Dynamic &term : node.at.dynamic)
    lanesTest |= isLanes(term.node);
  bool lanes = isLanes(number);
  Type type = lanes ? Type(VectorType::get({width}, element)) : element;
  auto valueOf = [&](unsigned operand) {
    Value value = emit(operand);
    return lanes ? spreadLanes(value) : value;
  };
  if (!lanesTest) {
    Value condition = inRange(emitIndex(node.at), node);
    return choose(
        condition, type, [&] { return valueOf(node.operands[0]); },
        [&] { return valueOf(node.operands[1]); });
  }

  auto laneByLane = [&]() -> Value {
    int64_t lanesCount = width;
    Value start = position[program.laneDim];
    Value result = arith::ConstantOp::create(b, b.getZeroAttr(type));
    auto loop = scf::ForOp::create(b, b.index(0), b.index(lanesCount), b.index(1), ValueRange{result});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    // Values along the lanes mean something else here: start from nothing but what does not change along them.
    SmallVector<llvm::DenseMap<unsigned, Value>, 4> saved = scopes;
    for (auto &scope : scopes)
      for (auto it = scope.begin(); it != scope.end(); ++it)
        if (isa<VectorType>(it->second.getType()))
          scope.erase(it);
    openScope();
    SmallVector<std::pair<unsigned, Value>> bound;
    width = 0;
    position[program.laneDim] = b.add(start, loop.getInductionVar());
    // Reductions along the lanes cannot be evaluated again: take their lane.
    for (const auto &scope : saved)
      for (auto [n, value] : scope)
        if (program.nodes[n].kind == LoopNode::reduction && isa<VectorType>(value.getType()))
          bound.push_back({n, value});
    llvm::sort(bound, [](const auto &x, const auto &y) { return x.first < y.first; });
    for (auto [n, value] : bound)
      bind(n, vector::ExtractOp::create(b, value, OpFoldResult(loop.getInductionVar())));
    Value condition = inRange(emitIndex(node.at), node);
    Value one = choose(
        condition, element, [&] { return emit(node.operands[0]); }, [&] { return emit(node.operands[1]); });
    Value next =
        vector::InsertOp::create(b, one, loop.getRegionIterArgs()[0], OpFoldResult(loop.getInductionVar()));
    scf::YieldOp::create(b, next);
    width = lanesCount;
    position[program.laneDim] = start;
    scopes = saved;
    return loop.getResult(0);
  };
  bool affine =
      llvm::none_of(node.at.dynamic, [&](const IndexExpr::Dynamic &term) { return isLanes(term.node); });
  if (!affine || node.step != 1)
    return laneByLane();
  int64_t scale = node.at.scales[program.laneDim];
  Value first = emitIndex(node.at), last = b.add(first, scale * (width - 1));
  if (scale < 0)
    std::swap(first, last);
  auto compare = [&](arith::CmpIPredicate predicate, Value x, int64_t y) -> Value {
    return arith::CmpIOp::create(b, predicate, x, b.index(y));
  };
  Value allInside = arith::AndIOp::create(b, compare(arith::CmpIPredicate::sge, first, node.low),
                                          compare(arith::CmpIPredicate::slt, last, node.high));
  Value allOutside = arith::OrIOp::create(b, compare(arith::CmpIPredicate::slt, last, node.low),
                                          compare(arith::CmpIPredicate::sge, first, node.high));
  return choose(
      allInside, type, [&] { return valueOf(node.operands[0]); },
      [&] { return choose(allOutside, type, [&] { return valueOf(node.operands[1]); }, laneByLane); });
}

Value ElementEmitter::createOperation(unsigned number, const LoopNode &node) {
  SmallVector<Value> operands;
  for (unsigned operand : node.operands)
    operands.push_back(emit(operand));
  bool lanes = isLanes(number);
  if (lanes)
    for (Value &operand : operands)
      operand = spreadLanes(operand);
  return applyOperation(node.op, operands, lanes);
}

Value ElementEmitter::applyOperation(Operation *op, ArrayRef<Value> operands, bool lanes) {
  Location loc = b.getLoc();
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  auto isNarrow = [](Type type) { return type.isF16() || type.isBF16(); };
  auto shaped = [&](Type scalar) -> Type { return lanes ? Type(VectorType::get({width}, scalar)) : scalar; };
  if (isa<arith::ExtFOp>(op)) {
    Type from = getElementTypeOrSelf(op->getOperand(0).getType());
    if (isNarrow(from)) {
      Value wide = extendToF32(b, loc, operands[0], from);
      return element.isF64() ? arith::ExtFOp::create(b, shaped(element), wide).getResult() : wide;
    }
  }
  if (isa<arith::TruncFOp>(op) && isNarrow(element)) {
    Value value = operands[0];
    if (getElementTypeOrSelf(value.getType()).isF64())
      value = arith::TruncFOp::create(b, shaped(b.getF32Type()), value);
    return truncateFromF32(b, loc, value, element);
  }
  if (isa<arith::BitcastOp>(op)) {
    Type to = shaped(registerType(element)); // f16 and bf16 are bits already
    return operands[0].getType() == to ? operands[0]
                                       : arith::BitcastOp::create(b, to, operands[0]).getResult();
  }
  // Arithmetic on narrow types goes through f32 and is rounded at once.
  bool narrow = !isa<arith::SelectOp>(op) && llvm::any_of(op->getOperandTypes(), [&](Type type) {
    return isNarrow(getElementTypeOrSelf(type));
  });
  bool narrowResult = isNarrow(element) && !isa<arith::SelectOp>(op);
  SmallVector<Value> inputs(operands);
  if (narrow)
    for (auto [input, type] : llvm::zip_equal(inputs, op->getOperandTypes()))
      if (isNarrow(getElementTypeOrSelf(type)))
        input = extendToF32(b, loc, input, getElementTypeOrSelf(type));
  Type resultElement = narrowResult ? Type(b.getF32Type()) : registerType(element);

  Value result;
  if (auto function = mathFunctionOf(op)) {
    result = expandMath(b, loc, *function, inputs, options);
  } else if (!(result = emitDefined(b, op, inputs, shaped(resultElement)))) {
    OperationState state(loc, op->getName());
    state.addOperands(inputs);
    state.addTypes(shaped(resultElement));
    state.addAttributes(op->getAttrs());
    result = b.create(state)->getResult(0);
  }
  return narrowResult ? truncateFromF32(b, loc, result, element) : result;
}

Value ElementEmitter::create(unsigned number, const LoopNode &node) {
  switch (node.kind) {
  case LoopNode::load:
    return createLoad(number, node);
  case LoopNode::constant:
    return createConstant(number, node);
  case LoopNode::iota:
    return createIota(number, node);
  case LoopNode::random:
    return createRandom(number, node);
  case LoopNode::operation:
    return createOperation(number, node);
  case LoopNode::range:
    return createRange(number, node);
  case LoopNode::quotient:
  case LoopNode::remainder:
    return createDivision(number, node);
  case LoopNode::reduction:
    llvm_unreachable("a reduction's value is bound before it is used");
  }
  llvm_unreachable("all kinds are handled");
}

} // namespace ortc::emit
