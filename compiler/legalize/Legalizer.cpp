// One walk over the graph.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes are visited in the order of the file; those that no output needs are left out. A node that cannot be
// compiled is recorded, its results have no value, and whatever depends on them is passed over in silence:
// one report names every cause once. Operations stay in the block until the walk ends, so that a Value is
// never reused.
#include "compiler/legalize/Legalizer.h"

#include "compiler/evaluator/Evaluator.h"
#include "compiler/legalize/NormStatistics.h"
#include "compiler/legalize/OperatorList.h"
#include "dialects/nn/PackedOps.h"
#include "dialects/nn/ValueNames.h"
#include "dialects/onnx/NodeDefinition.h"
#include "dialects/onnx/OnnxOperators.h"
#include "dialects/train/ElementTypes.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "support/Random.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace ortc::legalize {

static bool isNarrow(Type element) { return element.isF16() || element.isBF16(); }

void SizeGuard::notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) {
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        tensor && reason.empty() && elementCount(tensor.getShape()) > kMostElements)
      reason = "it needs a tensor of shape " + shapeText(tensor.getShape()) + ", which has more than " +
               std::to_string(kMostElements) + " elements";
}

Legalizer::Legalizer(onnx::GraphOp graph, const LegalizeOptions &options,
                     std::vector<Initializer> &initializers, bool rolesAreFixed, LegalizeReport &report)
    : graph(graph), settings(options), initializers(initializers), rolesAreFixed(rolesAreFixed),
      report(report) {
  for (auto [i, entry] : llvm::enumerate(initializers)) {
    initializerIndex[entry.op] = i;
    initializersByName[entry.name] = i;
  }
  for (const DroppedOutput &output : report.dropped)
    droppedBefore.insert(output.name);
}

Legalizer::~Legalizer() {
  for (Operation *op : discarded)
    op->erase();
}

//===----------------------------------------------------------------------===//
// Initializers and running statistics
//===----------------------------------------------------------------------===//

Value Legalizer::addArgument(Argument argument) {
  argument.value = block->addArgument(argument.initial.getShapedType(), b->getLoc());
  arguments.push_back(argument);
  argumentNames[argument.name] |= argument.role != train::Role::constant;
  return argument.value;
}

/// The `train.dtype` of a value: its unsigned element type; null where the type of the value says it all.
static Attribute dtypeOf(const Bound &bound) {
  Type element = TensorBuilder::elementOf(bound.value);
  if (!bound.isUnsigned || !isa<IntegerType>(element))
    return {};
  return TypeAttr::get(
      IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth(), IntegerType::Unsigned));
}

/// What is trained is f32 at least: a narrow weight of the file is a cast of it.
static ElementsAttr masterOf(ElementsAttr value, StringRef name) {
  if (!isNarrow(value.getElementType()))
    return value;
  auto tensor = HostTensor::fromAttribute(value);
  if (failed(tensor))
    return value;
  Type type = Float32Type::get(value.getContext());
  return tensor->withType(RankedTensorType::get(value.getShapedType().getShape(), type)).toAttribute(name);
}

/// A constant over numbers that `owner` keeps.
template <typename Number>
static ElementsAttr viewOf(Type element, ArrayRef<int64_t> shape, const std::vector<Number> &numbers,
                           const std::string &name, std::shared_ptr<const frontend::PackedWeight> owner) {
  ArrayRef<char> bytes(reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(Number));
  AsmResourceBlob blob(bytes, sizeof(Number), [owner = std::move(owner)](void *, size_t, size_t) {}, false);
  return DenseResourceElementsAttr::get(RankedTensorType::get(shape, element), name, std::move(blob));
}

Value Legalizer::materializePacked(std::shared_ptr<const frontend::PackedWeight> packed, size_t order) {
  const frontend::PackedShape &shape = packed->shape;
  auto add = [&](const std::string &name, ElementsAttr value) {
    return addArgument(
        {name, train::Role::constant, value, "of a weight that --base quantises", order, {}, {}});
  };
  Value data = add(packed->quantized,
                   viewOf(b->getI8Type(), shape.getDataDims(), packed->data, packed->quantized, packed));
  Value scales = add(packed->scale,
                     viewOf(b->getF32Type(), shape.getScaleDims(), packed->scales, packed->scale, packed));
  static_assert(frontend::PackedFormat::kGroup == nn::kPackedGroup); // the front end knows no MLIR
  auto type = RankedTensorType::get({shape.rows, shape.getGroups() * nn::kPackedGroup}, b->getF32Type());
  Value rows = nn::UnpackOp::create(*b, type, data, scales);
  rows = b->sliceAxis(rows, 1, 0, shape.columns);
  return packed->isTransposed ? b->transpose(rows, {1, 0}) : rows;
}

Bound Legalizer::materialize(onnx::InitializerOp op) {
  // Known in the whole function from here on: not inside a loop.
  OpBuilder::InsertionGuard guard(*b);
  if (Operation *loop = block->findAncestorOpInBlock(*b->getInsertionBlock()->getParentOp()))
    b->setInsertionPoint(loop);
  auto given = dyn_cast<RankedTensorType>(op.getOutput().getType());
  ElementsAttr value = signlessAttribute(op.getValue(), settings.float64, op.getName());
  if (!value)
    return {};
  Type element = given.getElementType();
  auto known = initializerIndex.find(op);
  if (known == initializerIndex.end()) // a branch's own constant
    return boundAs(constantOf(value), element);
  const Initializer &entry = initializers[known->second];
  if (entry.trained) {
    ElementsAttr &master = initializers[known->second].master; // made once for all walks
    if (!master)
      master = masterOf(value, entry.name);
    Value argument = addArgument({entry.name, train::Role::parameter, master, "", known->second, {}, {}});
    Value stored = b->cast(argument, value.getElementType());
    parameters[stored] = known->second;
    return {stored};
  }
  if (auto packed = settings.packed.find(entry.name); packed != settings.packed.end())
    return {b->cast(materializePacked(packed->second, known->second), value.getElementType())};
  // What is computed from a constant becomes one, and the floats of quantised weights take four times their bytes; of
  // so many that their scales, repeated, are no constant (kFoldBroadcastBytes).
  constexpr int64_t kPackedBytes = evaluator::kInlineConstantBytes / sizeof(float);
  ShapedType type = value.getShapedType();
  bool isPacked = type.getElementType().isInteger(8) && type.getRank() >= 2;
  if (value.isSplat() || bytesOf(type) <= (isPacked ? kPackedBytes : evaluator::kInlineConstantBytes))
    return boundAs(constantOf(value), element);
  std::string reason = entry.isFloat ? entry.reason : "";
  Value argument = addArgument({entry.name, train::Role::constant, value, reason, known->second, {}, {}});
  Bound bound = boundAs(argument, element);
  arguments.back().dtype = dtypeOf(bound);
  argumentData[argument] = value;
  return bound;
}

bool Legalizer::isOnlyState(onnx::InitializerOp op) {
  auto [known, isNew] = onlyStates.try_emplace(op, false);
  if (isNew)
    known->second = isState(op.getOutput());
  return known->second;
}

bool Legalizer::isTaken(StringRef name, bool besidesConstants) const {
  if (auto argument = argumentNames.find(name);
      argument != argumentNames.end() && (argument->second || !besidesConstants))
    return true;
  auto initializer = initializersByName.find(name);
  return initializer != initializersByName.end() && initializers[initializer->second].trained;
}

Value Legalizer::stateOf(Value onnxValue, onnx::NodeOp user) {
  if (auto found = states.find({onnxValue, user}); found != states.end())
    return arguments[found->second].value;
  std::string name;
  onnx::InitializerOp initializer = findStatistic(onnxValue, &name);
  ElementsAttr initial =
      initializer ? signlessAttribute(initializer.getValue(), settings.float64, initializer.getName())
                  : ElementsAttr();
  if (!initial || !isa<FloatType>(initial.getElementType()))
    return {};
  initial = masterOf(initial, initializer.getName());
  auto index = initializerIndex.find(initializer);
  if (name.empty())
    name = initializer.getName().str();
  // The first layer that reads a statistic has its name; further ones, and statistics whose initial values
  // are also weights, are named after their layer.
  if (isTaken(name, isOnlyState(initializer)))
    name = (user.getNodeName().empty() ? user.getOutputName(0) : user.getNodeName()).str() + "." + name;
  size_t order = index == initializerIndex.end() ? initializers.size() : index->second;
  Value value = addArgument({name, train::Role::state, initial, "", order, {}, {}});
  states[{onnxValue, user}] = arguments.size() - 1;
  return value;
}

void Legalizer::updateState(Value onnxValue, onnx::NodeOp user, Value newValue) {
  arguments[states.find({onnxValue, user})->second].update = newValue;
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

Value Legalizer::addCounter(std::string name, train::Role role) {
  while (initializersByName.contains(name))
    name += "_";
  auto zero = DenseElementsAttr::get(RankedTensorType::get({}, b->getI64Type()), APInt(64, 0));
  return addArgument({name, role, zero, "", initializers.size(), {}, {}});
}

Value Legalizer::stepsBefore() {
  if (!stepArgument) {
    addCounter("random.step", train::Role::state);
    stepArgument = arguments.size() - 1;
  }
  return arguments[*stepArgument].value;
}

/// Seeds are far apart: steps of one are not those of another.
Value Legalizer::randomStep() {
  if (!drawnBy) {
    Value step = stepsBefore(), seed = addCounter("random.seed", train::Role::scalar);
    OpBuilder::InsertionGuard guard(*b);
    b->setInsertionPointToStart(block);
    auto distance = DenseElementsAttr::get(cast<ShapedType>(seed.getType()), APInt(64, kGoldenGamma));
    drawnBy = b->add(step, b->mul(seed, arith::ConstantOp::create(*b, b->getLoc(), distance)));
  }
  return drawnBy;
}

bool Legalizer::drawsFor(StringRef type) const {
  return llvm::any_of(
      draws, [&](const auto &entry) { return cast<onnx::NodeOp>(entry.first.first).getOpType() == type; });
}

uint32_t Legalizer::randomKey(onnx::NodeOp user, std::optional<uint64_t> seed, unsigned part) {
  uint64_t key = hashName(user.getOutputName(0));
  // A body that is taken apart draws from each node once a turn.
  unsigned turn = draws[{user, part}]++;
  key = mixBits(key + mixBits(seed.value_or(settings.seed) + kGoldenGamma) + (seed ? 1 : 0));
  return static_cast<uint32_t>(mixBits(key + (uint64_t(turn) << 8 | part)) >> 32);
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

Bound Legalizer::lookup(Value onnxValue) {
  auto found = environment.find(onnxValue);
  if (found != environment.end()) { // items are resolved once, when a node gives them
    Bound bound = found->second;
    bound.value = resolve(bound.value);
    return bound;
  }
  auto initializer = onnxValue.getDefiningOp<onnx::InitializerOp>();
  return environment[onnxValue] = initializer ? materialize(initializer) : Bound();
}

std::string Legalizer::missingOutput(Value onnxValue) const {
  auto node = onnxValue.getDefiningOp<onnx::NodeOp>();
  if (!node || !legalized.contains(node))
    return "";
  return ("output '" + node.getOutputName(cast<OpResult>(onnxValue).getResultNumber()) + "' of " +
          node.getOpType() + " is not supported")
      .str();
}

/// Its name, or that of its first output.
static std::string nodeName(onnx::NodeOp op) {
  return (op.getNodeName().empty() && op.getNumResults() ? op.getOutputName(0) : op.getNodeName()).str();
}

/// The function that the node was copied from, the innermost one of several; empty for nodes of the graph.
static std::string functionOf(Location location) {
  std::string name;
  for (auto call = dyn_cast<CallSiteLoc>(location); call; call = dyn_cast<CallSiteLoc>(call.getCallee()))
    if (auto caller = dyn_cast<FusedLoc>(call.getCaller()))
      if (auto function = dyn_cast_or_null<StringAttr>(caller.getMetadata()))
        name = function.getValue().str();
  return name;
}

void Legalizer::refuse(onnx::NodeOp op, const Twine &reason) {
  std::string name = op.getOpType().str(), node = nodeName(op);
  if (!op.getDomainName().empty())
    name = op.getDomainName().str() + "." + name;
  report.unsupported.push_back(
      {name, static_cast<int64_t>(op.getSinceVersion()), node, reason.str(), functionOf(op.getLoc())});
  refused.push_back(op);
}

/// Why an operator without an entry is not supported.
static std::string missingReason(onnx::NodeOp op, bool known) {
  if (op.getSinceVersion() == 0) {
    constexpr int64_t kLastOpset = 64; // beyond all there are
    for (int64_t opset = 1; opset <= kLastOpset; ++opset)
      if (auto *found = onnx::findOperator(op.getDomainName(), op.getOpType(), opset); found && found->since)
        return "the standard has it from opset " + std::to_string(opset) +
               " on, and the file is of an older one: export it with that opset";
    return "no such operator in the standard, and no model-local function of that name";
  }
  if (known)
    return "this version of the operator is not supported";
  StringRef name = op.getOpType();
  if (StringRef refusal = getRefusal(op.getDomainName(), name); !refusal.empty())
    return refusal.str();
  return "the operator is not supported";
}

/// Makes good what the entry promises its handler; says what is wrong, or nothing. `narrow` becomes the type
/// that floating-point results are rounded to.
static std::string prepareOperands(TensorBuilder &b, const Operator &entry, const LegalizeOptions &options,
                                   MutableArrayRef<Bound> operands, Type &narrow) {
  Type floating;
  bool isKept = entry.operands == OperandKind::moved || entry.operands == OperandKind::sequences ||
                (entry.operands == OperandKind::spread && (options.mode != Mode::train || !options.trains));
  for (auto [i, operand] : llvm::enumerate(operands)) {
    Type element = operand.value ? TensorBuilder::elementOf(operand.value) : Type();
    if (!element)
      continue;
    if (!isKept && isNarrow(element)) {
      narrow = element;
      operand.value = b.cast(operand.value, b.getF32Type());
      element = b.getF32Type();
    }
    if (entry.operands != OperandKind::floats)
      continue;
    std::string text;
    llvm::raw_string_ostream(text) << "operand " << i << " has element type " << element;
    if (!isa<FloatType>(element))
      return text + ", which is not floating-point";
    if (floating && element != floating)
      return text + ", unlike the operands before it";
    floating = element;
  }
  return "";
}

/// The number (TensorProto.DataType) of a tensor's element type; 0 when there is none.
static int32_t onnxTypeOf(const Bound &bound) {
  if (!bound.value)
    return 0;
  Type element = TensorBuilder::elementOf(bound.value);
  unsigned bits = bound.lowBits ? bound.lowBits : element.getIntOrFloatBitWidth();
  return train::onnxElementType(element, bound.isUnsigned, bits);
}

/// The definition of a node's operator; null for one that nothing is known of.
static const onnx::OperatorDefinition *definitionOf(StringRef domain, onnx::NodeOp op) {
  return onnx::findDefinition(domain, op.getOpType(), static_cast<int64_t>(op.getSinceVersion()));
}

void Legalizer::legalizeNode(onnx::NodeOp op) {
  for (Value result : op.getResults())
    environment[result] = Bound();
  legalized.erase(op);
  bool known = false;
  StringRef domain = op.getDomainName() == "ai.onnx" ? "" : op.getDomainName();
  const Operator *entry =
      findOperator(domain, op.getOpType(), static_cast<int64_t>(op.getSinceVersion()), known);
  if (!entry)
    return refuse(op, missingReason(op, known));
  const onnx::OperatorDefinition *definition = definitionOf(domain, op);
  if (!definition)
    return refuse(op, "nothing is known of its operands");
  if (std::string wrong = onnx::checkDefinition(op, *definition); !wrong.empty())
    return refuse(op, wrong);
  b->setLoc(NameLoc::get(b->getStringAttr(op.getOpType() + ":" + nodeName(op))));

  // Initializers come before the mark: they are not part of what the node builds.
  SmallVector<Bound> operands;
  for (unsigned i = 0; i < op.getInputs().size(); ++i) {
    Value input = op.getInput(i);
    operands.push_back(input ? lookup(input) : Bound());
    if (operands.back().items && entry->operands != OperandKind::sequences)
      return refuse(op, "operand " + Twine(i) + " is a sequence, not a tensor");
    if (!input || operands.back())
      continue;
    if (auto initializer = input.getDefiningOp<onnx::InitializerOp>())
      refuse(op, "initializer '" + initializer.getName() + "' has an element type that is not supported");
    else if (auto argument = dyn_cast<BlockArgument>(input);
             argument && argument.getOwner() == &graph.getBlock())
      refuse(op, "input '" + graph.getInputName(argument.getArgNumber()) +
                     "' has an element type that is not supported");
    else if (std::string reason = missingOutput(input); !reason.empty())
      refuse(op, reason);
    return;
  }
  SmallVector<int32_t> types = llvm::map_to_vector(operands, onnxTypeOf);
  if (std::string wrong = onnx::checkTypes(*definition, types); !wrong.empty())
    return refuse(op, wrong);
  Block *here = b->getInsertionBlock();
  Operation *mark = here->empty() ? nullptr : &here->back();
  Type narrow;
  if (std::string wrong = prepareOperands(*b, *entry, settings, operands, narrow); !wrong.empty())
    return refuse(op, wrong);
  Node node(op, *b, *this, std::move(operands));
  LogicalResult built = entry->handler(node);
  std::string tooLarge = sizes.take();
  if (!tooLarge.empty())
    return refuse(op, tooLarge);
  if (failed(built))
    return node.reason().empty() ? void() : refuse(op, node.reason());
  SmallVector<Bound> results = node.takeResults();
  if (narrow)
    for (Bound &result : results)
      if (result.value && TensorBuilder::elementOf(result.value).isF32())
        result.value = b->cast(result.value, narrow);
  if (Status folded = foldSince(mark); !folded.isOk())
    return refuse(op, folded.getMessage());
  for (Bound &result : results)
    if (failed(resolve(node, result)))
      return refuse(op, node.reason());
  legalized.insert(op);
  for (auto [i, value] : llvm::enumerate(op.getResults())) {
    const Bound &result = results[i];
    if (!result)
      continue;
    environment[value] = result;
    nn::nameValue(result.value, op.getOutputName(i), b->getLoc());
  }
}

/// The nodes of the graph's block that these values need.
static llvm::DenseSet<Operation *> findLive(onnx::GraphOp graph, SmallVector<Value> todo) {
  llvm::DenseSet<Operation *> live;
  while (!todo.empty()) {
    Operation *op = todo.pop_back_val().getDefiningOp();
    if (!op || op->getBlock() != &graph.getBlock() || !live.insert(op).second)
      continue;
    op->walk([&](Operation *inner) { llvm::append_range(todo, inner->getOperands()); });
  }
  return live;
}

void Legalizer::legalizeNodes(onnx::GraphOp which) {
  SmallVector<Value> outputs;
  for (auto [i, output] : llvm::enumerate(which.getBlock().getTerminator()->getOperands()))
    if (which != graph || isKept(i))
      outputs.push_back(output);
  llvm::DenseSet<Operation *> live = findLive(which, std::move(outputs));
  for (auto op : which.getBlock().getOps<onnx::NodeOp>()) {
    if (live.contains(op))
      legalizeNode(op);
  }
}

LogicalResult Legalizer::inlineGraph(Node &node, onnx::GraphOp which, ArrayRef<Bound> arguments,
                                     SmallVector<Bound> &outputs) {
  for (auto [argument, value] : llvm::zip_equal(which.getBlock().getArguments(), arguments))
    environment[argument] = value;
  // What the file holds once may be there once.
  int64_t &nodes = nodesIn[which];
  if (nodes && failed(node.expand(nodes)))
    return failure();
  if (!nodes) {
    nodes = 1; // what has no nodes costs something, too
    which.walk([&](onnx::NodeOp) { ++nodes; });
  }
  legalizeNodes(which);
  for (Value output : which.getBlock().getTerminator()->getOperands()) {
    outputs.push_back(lookup(output));
    if (!outputs.back())
      return failure();
  }
  return success();
}

void Legalizer::noteWideMask(onnx::NodeOp node) {
  if (std::string name = node.getOutputName(0).str(); !llvm::is_contained(report.wideMasks, name))
    report.wideMasks.push_back(std::move(name));
}

LogicalResult Legalizer::attempt(llvm::function_ref<LogicalResult()> build) {
  size_t before = report.unsupported.size();
  auto drawn = draws;
  LogicalResult result = build();
  // What every iteration draws must differ: the loop is taken apart.
  bool isWrong = report.unsupported.size() > before || draws != drawn;
  report.unsupported.resize(before);
  refused.resize(before);
  draws = std::move(drawn);
  return failure(failed(result) || isWrong);
}

void Legalizer::discard(Operation *op) {
  // Values are never reused before the walk ends.
  op->remove();
  op->walk([](Operation *inner) { inner->dropAllReferences(); });
  discarded.push_back(op);
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

unsigned Legalizer::findLossOutput() {
  auto outputs = graph.getBlock().getTerminator()->getOperands();
  for (auto [i, output] : llvm::enumerate(outputs)) {
    Type stated = cast<TypeAttr>(graph.getOutputTypes()[i]).getValue();
    auto shaped = dyn_cast<ShapedType>(stated);
    Value value = lookup(output).value;
    bool isFloat = value    ? isa<FloatType>(TensorBuilder::elementOf(value))
                   : shaped ? isa<FloatType>(shaped.getElementType())
                            : isa<onnx::AnyType>(stated);
    if (isFloat && isKept(i))
      return i;
  }
  return 0;
}

llvm::DenseMap<Operation *, size_t> Legalizer::findLastRefusals() const {
  Block &nodes = onnx::GraphOp(graph).getBlock();
  llvm::DenseMap<Operation *, size_t> last;
  for (auto [i, op] : llvm::enumerate(refused))
    last[nodes.findAncestorOpInBlock(*op)] = i + 1;
  for (Operation &op : nodes) { // what a node needs comes before it
    size_t found = last.lookup(&op);
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        found = std::max(found, last.lookup(operand.getDefiningOp()));
    });
    if (found)
      last[&op] = found;
  }
  return last;
}

bool Legalizer::dropOutputs() {
  auto outputs = graph.getBlock().getTerminator()->getOperands();
  if (!settings.trains || outputs.size() < 2)
    return false;
  unsigned lossOutput = settings.lossOutputs.empty() ? findLossOutput() : 0;
  llvm::DenseMap<Operation *, size_t> lastRefusals = findLastRefusals();
  std::vector<DroppedOutput> dropped;
  for (auto [i, output] : llvm::enumerate(outputs)) {
    StringRef name = graph.getOutputName(i);
    Bound bound = lookup(output);
    if (bound.value || !isKept(i))
      continue;
    if (settings.lossOutputs.empty() ? i == lossOutput : llvm::is_contained(settings.lossOutputs, name))
      return false;
    std::string reason = bound.items ? "it is a sequence" : missingOutput(output);
    if (reason.empty())
      reason = "its element type is not supported";
    if (size_t last = lastRefusals.lookup(output.getDefiningOp())) {
      const Unsupported &part = report.unsupported[last - 1];
      reason = part.op + " " + part.place() + ": " + part.reason;
    }
    dropped.push_back({name.str(), reason});
  }
  llvm::append_range(report.dropped, dropped);
  return !dropped.empty();
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

bool Legalizer::isMaterialized(const Initializer &entry) const {
  return entry.trained && llvm::any_of(settings.materialized, [&](const NamePattern &pattern) {
           return pattern.matches(entry.name);
         });
}

bool Legalizer::dropUnreachable(Block &body, ArrayRef<Value> losses) {
  llvm::DenseSet<Value> reached = reachableArguments(body, losses);
  SmallVector<Value> values(initializers.size()); // of parameters
  for (const Argument &argument : arguments)
    if (argument.role == train::Role::parameter)
      values[argument.order] = argument.value;
  bool dropped = false;
  for (auto [entry, value] : llvm::zip_equal(initializers, values)) {
    if (!entry.trained || (value && reached.contains(value)))
      continue;
    if (isMaterialized(entry)) {
      if (!value)
        materialize(entry.op);
      continue;
    }
    entry.trained = false;
    entry.reason = value ? "no gradient of the loss can reach it" : "its values play no part in the outputs";
    dropped |= static_cast<bool>(value);
  }
  return dropped;
}

Outcome Legalizer::run(func::FuncOp function, ArrayRef<SmallVector<int64_t>> inputs) {
  block = function.addEntryBlock();
  TensorBuilder builder(function.getLoc(), function.getContext());
  builder.setInsertionPointToEnd(block);
  builder.setListener(&sizes);
  b = &builder;
  std::string unsupported;
  for (auto [argument, shape] : llvm::zip_equal(graph.getBlock().getArguments(), inputs)) {
    auto type = dyn_cast<ShapedType>(argument.getType());
    Type element = type ? signlessElement(type.getElementType(), settings.float64) : Type();
    if (!element) { // the nodes that read it are refused
      unsupported = ("input '" + graph.getInputName(argument.getArgNumber()) +
                     "' has an element type that is not supported")
                        .str();
      environment[argument] = Bound();
      continue;
    }
    if (elementCount(shape) > kMostElements) {
      report.error = "input '" + graph.getInputName(argument.getArgNumber()).str() + "' of shape " +
                     shapeText(shape) + " has more than " + std::to_string(kMostElements) + " elements";
      return Outcome::failed;
    }
    Value value = block->addArgument(RankedTensorType::get(shape, element), function.getLoc());
    environment[argument] = boundAs(value, type.getElementType());
  }
  legalizeNodes(graph);
  if (again)
    return Outcome::again;
  if (report.unsupported.empty())
    report.error = unsupported;
  if (!report.unsupported.empty() || !unsupported.empty())
    return dropOutputs() ? Outcome::again : Outcome::failed;
  auto shapeOf = [&](Value onnxValue) {
    Value value = environment.lookup(onnxValue).value;
    return value ? statedShape(value) : std::nullopt;
  };
  if (!rolesAreFixed && freezeFormulaConstants(initializers, shapeOf))
    return Outcome::again;
  return finish(function);
}

Outcome Legalizer::finish(func::FuncOp function) {
  MLIRContext *context = function.getContext();
  SmallVector<Value> results, losses;
  SmallVector<Attribute> resultAttributes;
  auto dictionary = [&](StringRef name, Attribute value, Attribute dtype = {}) {
    NamedAttrList list;
    list.set(name, value);
    if (dtype)
      list.set(train::kDtype, dtype);
    return list.getDictionary(context);
  };
  b->setLoc(function.getLoc());
  for (auto [i, output] : llvm::enumerate(graph.getBlock().getTerminator()->getOperands())) {
    if (!isKept(i))
      continue;
    StringRef name = graph.getOutputName(i);
    Bound bound = lookup(output);
    Value value = bound.value;
    if (!value && dropOutputs())
      return Outcome::again;
    if (!value) {
      report.error = missingOutput(output);
      if (report.error.empty())
        report.error = ("output '" + name + "' " +
                        (bound.items ? "is a sequence; only tensors leave a program"
                                     : "has an element type that is not supported"))
                           .str();
      return Outcome::failed;
    }
    results.push_back(value);
    resultAttributes.push_back(dictionary(train::kOutput, StringAttr::get(context, name), dtypeOf(bound)));
    if (settings.lossOutputs.empty() || llvm::is_contained(settings.lossOutputs, name))
      losses.push_back(value);
  }
  if (!rolesAreFixed && dropUnreachable(*block, losses))
    return Outcome::again;
  if (stepArgument && settings.mode == Mode::train) {
    Argument &step = arguments[*stepArgument];
    step.update = b->addScalar(step.value, 1);
  }
  for (Argument &argument : arguments) {
    if (!argument.update)
      continue;
    results.push_back(resolve(argument.update));
    resultAttributes.push_back(dictionary(train::kUpdate, StringAttr::get(context, argument.name)));
  }
  func::ReturnOp::create(*b, results);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
    if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>() && !isa<nn::CheckIndexOp>(op))
      op.erase();
  // Tensors that only shapes or dead values needed.
  llvm::BitVector unused(block->getNumArguments());
  llvm::erase_if(arguments, [&](const Argument &argument) {
    if (!argument.value.use_empty() ||
        (argument.role == train::Role::parameter && isMaterialized(initializers[argument.order])))
      return false;
    unused.set(cast<BlockArgument>(argument.value).getArgNumber());
    return true;
  });
  block->eraseArguments(unused);
  SmallVector<Type> resultTypes(ValueRange(results).getTypes());
  function.setType(FunctionType::get(context, block->getArgumentTypes(), resultTypes));
  function.setAllResultAttrs(resultAttributes);
  SmallVector<DictionaryAttr> argumentAttributes(block->getNumArguments(), DictionaryAttr::get(context));
  for (unsigned i = 0; i < graph.getBlock().getNumArguments(); ++i) {
    NamedAttrList list;
    list.set(train::kInput, StringAttr::get(context, graph.getInputName(i)));
    if (Attribute dtype = dtypeOf(environment[graph.getBlock().getArgument(i)]))
      list.set(train::kDtype, dtype);
    argumentAttributes[i] = list.getDictionary(context);
  }
  function.setAllArgAttrs(argumentAttributes);
  return Outcome::done;
}

} // namespace ortc::legalize
