// Schedule entry functions and place their buffers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns the plan of an entry (EntryProblem, compiler/planning) into plan.program operations.
#include "compiler/passes/memory/EntryProblem.h"
#include "compiler/passes/memory/Passes.h"
#include "compiler/planning/recompute/Recompute.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/train/ElementTypes.h"
#include "support/Text.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace ortc::memory {

#define GEN_PASS_DEF_PLACEBUFFERSPASS
#include "compiler/passes/memory/Passes.h.inc"

namespace {

/// Writes one plan.program.
class ProgramEmitter {
public:
  ProgramEmitter(Block *entry, uint32_t segment, const SymbolTable &symbols)
      : entry(cast<func::FuncOp>(entry->getParentOp())), segment(segment), symbols(symbols) {}

  void run(EntryProblem &planned, const planning::Plan &plan);

private:
  /// The steps of one block while they are written.
  struct Scope {
    EntryProblem &planned;
    const planning::Plan &plan;
    uint64_t base;   ///< of the block's arena
    Scope *outer;    ///< of the loop, in whose body the block is
    nn::ScanOp loop; ///< null at the top
    llvm::DenseMap<std::pair<Value, Type>, Value> made = llvm::DenseMap<std::pair<Value, Type>, Value>();
  };
  /// Where a value lies.
  struct Place {
    plan::Region region = plan::Region::transient;
    int64_t offset = 0;
    SmallVector<int64_t> strides; ///< one per loop around
    std::string name;
    StringRef usage = "";
    Attribute dtype;       ///< of inputs and outputs, which the host sees
    Attribute layout = {}; ///< of outputs that are gradients: the parameter in whose layout they are
  };

  Place placeOf(Scope &scope, Value root, Type type);
  Place placeOfTensor(StringAttr symbol, Type type);
  Place placeInLoop(Scope &scope, Value outside, bool isSliced, Type item);
  std::string nameBuffer(Scope &scope, planning::BufferId buffer, Value root);
  Value memoryOf(Scope &scope, Value value);
  void numberGradients(const Scope &scope);
  void emitSteps(Scope &scope, OpBuilder &steps);

  func::FuncOp entry;
  uint32_t segment;
  const SymbolTable &symbols;
  llvm::DenseMap<Value, unsigned> externals; ///< positions of arguments among the values that the host passes
  llvm::DenseMap<Value, int64_t> gradients;  ///< the same of results that are gradients
  OpBuilder *declare = nullptr;              ///< where buffers are declared: in front of the outermost loop
  Value loss;
  bool guarded = false;
  std::map<std::pair<const EntryProblem *, planning::BufferId>, std::string> names; ///< of transient values
  llvm::StringMap<unsigned> named;                                                  ///< values of a name
};

ProgramEmitter::Place ProgramEmitter::placeOfTensor(StringAttr symbol, Type type) {
  auto tensor = symbols.lookup<train::TensorOp>(symbol);
  Place place;
  place.region = tensor->getAttrOfType<plan::RegionAttr>(kRegion).getValue();
  place.name = symbol.str();
  if (!tensor->hasAttr(train::kBound)) {
    place.offset = tensor->getAttrOfType<IntegerAttr>(kOffset).getInt();
    return place;
  }
  for (auto [argument, index] : externals)
    if (EntryGraph::tensorOf(cast<BlockArgument>(argument)) == symbol) {
      place.offset = index;
      place.usage = argument.getType() == type ? "bound" : "";
    }
  return place;
}

/// Where a value of the block around lies, seen from inside the loop: as it is, or moving on by one `item` an
/// iteration.
ProgramEmitter::Place ProgramEmitter::placeInLoop(Scope &scope, Value outside, bool isSliced, Type item) {
  Value root = scope.outer->planned.graph.rootOf(outside);
  Place place = placeOf(*scope.outer, root, outside.getType());
  place.strides.push_back(isSliced ? plan::storedBytes(cast<ShapedType>(item)) : 0);
  place.usage = "";
  place.dtype = {};
  return place;
}

/// What a transient value is called: a gradient as its tensor is; two others of a program never have the same
/// name, whatever types they are seen with.
std::string ProgramEmitter::nameBuffer(Scope &scope, planning::BufferId buffer, Value root) {
  const EntryGraph::Destination *destination = scope.planned.graph.getDestination(root);
  if (destination && destination->kind == EntryGraph::Destination::gradient)
    return destination->name.str();
  std::string &name = names[{&scope.planned, buffer}];
  if (name.empty()) {
    name = scope.planned.nameOf(root);
    if (unsigned number = ++named[name]; number > 1)
      name += " #" + std::to_string(number);
  }
  return name;
}

/// `type` is the one that the value at hand, a reshape of `root`, has.
ProgramEmitter::Place ProgramEmitter::placeOf(Scope &scope, Value root, Type type) {
  const EntryGraph::Destination *destination = scope.planned.graph.getDestination(root);
  auto argument = dyn_cast<BlockArgument>(root);
  Place place;
  if (auto buffer = scope.planned.bufferOf(root)) {
    place.offset = scope.base + scope.plan.offsetOf[*buffer];
    place.name = argument ? EntryGraph::gradientOf(argument).str() : nameBuffer(scope, *buffer, root);
    if (argument)
      place.usage = "gradient";
    else if (destination && destination->type == type && destination->kind != EntryGraph::Destination::saved)
      place.usage = destination->kind == EntryGraph::Destination::loss ? "loss" : "gradient";
    for (Scope *each = &scope; each->outer; each = each->outer)
      place.strides.push_back(0);
    return place;
  }
  if (scope.loop) {
    unsigned carried = scope.loop.getNumCarried(), sequences = scope.loop.getSequences().size();
    if (!argument && destination->kind == EntryGraph::Destination::output)
      return placeInLoop(scope, scope.loop.getStacked()[destination->index], true, root.getType());
    if (!argument) // the new value of a carried one
      return placeInLoop(scope, scope.loop.getInits()[destination->index], false, {});
    unsigned number = argument.getArgNumber();
    return placeInLoop(scope, scope.loop->getOperand(number),
                       number >= carried && number < carried + sequences, argument.getType());
  }
  if (destination && destination->kind == EntryGraph::Destination::update)
    return placeOfTensor(destination->name, type);
  if (argument)
    if (StringAttr symbol = EntryGraph::tensorOf(argument))
      return placeOfTensor(symbol, type);
  place.region = plan::Region::external;
  if (destination) {
    place.offset = destination->layout ? gradients.at(root) : destination->index;
    place.name = destination->name.str();
    place.usage = destination->type == type ? "output" : "";
    place.dtype = destination->dtype;
    place.layout = destination->layout;
  } else {
    place.offset = externals.at(argument);
    auto input = entry.getArgAttrOfType<StringAttr>(argument.getArgNumber(), train::kInput);
    auto output = entry.getArgAttrOfType<StringAttr>(argument.getArgNumber(), train::kOutput);
    place.name = (input ? input : output).str();
    place.usage = input ? "input" : "output"; // an output that an earlier entry has written
    place.dtype = entry.getArgAttr(argument.getArgNumber(), train::kDtype);
    place.layout = entry.getArgAttr(argument.getArgNumber(), train::kLayout);
  }
  return place;
}

Value ProgramEmitter::memoryOf(Scope &scope, Value value) {
  Value root = scope.planned.graph.rootOf(value);
  Value &buffer = scope.made[{root, value.getType()}];
  if (buffer)
    return buffer;
  Place place = placeOf(scope, root, value.getType());
  auto type = cast<RankedTensorType>(value.getType());
  auto memref = MemRefType::get(type.getShape(), type.getElementType());
  bool moves = llvm::any_of(place.strides, [](int64_t stride) { return stride != 0; });
  auto op = plan::BufferOp::create(
      *declare, root.getLoc(), memref, place.region, place.offset, declare->getStringAttr(place.name),
      place.usage.empty() ? StringAttr() : declare->getStringAttr(place.usage),
      moves ? declare->getDenseI64ArrayAttr(place.strides) : DenseI64ArrayAttr());
  if (place.dtype)
    op->setAttr(train::kDtype, place.dtype);
  if (place.layout)
    op->setAttr(train::kLayout, place.layout);
  return buffer = op;
}

/// Gradients in memory of the host are numbered in the order in which they are final.
void ProgramEmitter::numberGradients(const Scope &scope) {
  SmallVector<Value> order;
  SmallVector<int64_t> numbers;
  for (planning::StepId id : scope.plan.order)
    for (Value result : scope.planned.graph.getSteps()[id]->getResults())
      if (const EntryGraph::Destination *destination = scope.planned.graph.getDestination(result);
          destination && destination->layout &&
          scope.planned.graph.getSegment(result.getDefiningOp()) == segment) {
        order.push_back(result);
        numbers.push_back(destination->index);
      }
  llvm::sort(numbers);
  for (auto [result, number] : llvm::zip_equal(order, numbers))
    gradients[result] = number;
}

void ProgramEmitter::emitSteps(Scope &scope, OpBuilder &steps) {
  const EntryGraph &graph = scope.planned.graph;
  for (planning::StepId id : scope.plan.order) {
    Operation *op = graph.getSteps()[id];
    if (!scope.outer && graph.getSegment(op) != segment)
      continue;
    if (!scope.outer && graph.isUpdate(op) && loss && !guarded) {
      plan::GuardOp::create(steps, entry.getLoc(), loss);
      guarded = true;
    }
    if (auto call = dyn_cast<func::CallOp>(op)) {
      SmallVector<Value> inputs, outputs;
      for (Value operand : call.getOperands())
        inputs.push_back(memoryOf(scope, operand));
      for (Value result : call.getResults()) {
        outputs.push_back(memoryOf(scope, result));
        const EntryGraph::Destination *destination = graph.getDestination(result);
        if (destination && destination->kind == EntryGraph::Destination::loss)
          loss = outputs.back();
      }
      uint64_t scratch = scope.plan.workspaceOf[id];
      auto step = plan::StepOp::create(
          steps, call.getLoc(), call.getCalleeAttr(), inputs, outputs,
          scratch == planning::kNoOffset ? IntegerAttr() : steps.getI64IntegerAttr(scope.base + scratch));
      if (Attribute repeated = call->getAttr(plan::kRepeated))
        step->setAttr(plan::kRepeated, repeated);
      SmallVector<int64_t> ready;
      for (Value result : call.getResults())
        if (auto number = gradients.find(result); number != gradients.end())
          ready.push_back(number->second);
      if (!ready.empty())
        step->setAttr(plan::kReady, steps.getDenseI64ArrayAttr(ready));
      continue;
    }
    auto scan = cast<nn::ScanOp>(op);
    auto loop = plan::LoopOp::create(steps, scan.getLoc(), scan.getTripCountAttr(), scan.getReverseAttr(),
                                     scan.getLimit() ? memoryOf(scope, scan.getLimit()) : Value());
    OpBuilder inside = OpBuilder::atBlockEnd(&loop.getBody().emplaceBlock()), before(loop);
    OpBuilder *outer = declare;
    if (!scope.outer)
      declare = &before;
    uint64_t arena = scope.plan.innerArenaOf[id];
    Scope body{*scope.planned.loops.at(op), *scope.plan.inner[id],
               scope.base + (arena == planning::kNoOffset ? 0 : arena), &scope, scan};
    emitSteps(body, inside);
    declare = outer;
  }
}

void ProgramEmitter::run(EntryProblem &planned, const planning::Plan &plan) {
  OpBuilder builder(entry);
  auto role = entry->getAttrOfType<StringAttr>(train::kEntry);
  auto binding = entry->getAttrOfType<IntegerAttr>(train::kBinding);
  auto i64 = [&](uint64_t value) { return builder.getI64IntegerAttr(static_cast<int64_t>(value)); };
  auto program = plan::ProgramOp::create(builder, entry.getLoc(),
                                         StringAttr::get(entry.getContext(), entry.getSymName() + "_program"),
                                         role, binding ? binding : i64(0), i64(plan.arenaBytes),
                                         i64(plan.maxLive), i64(plan.sourcePeak), i64(plan.orderBound));
  for (StringRef name : {plan::kRecompute, plan::kCurve})
    if (Attribute figures = entry->getAttr(name))
      program->setAttr(name, figures);
  OpBuilder inner = OpBuilder::atBlockEnd(&program.getBody().emplaceBlock());
  declare = &inner;
  Scope scope{planned, plan, 0, nullptr, nullptr};
  numberGradients(scope);
  // Every value of the host has its place, used or not.
  for (BlockArgument argument : entry.getArguments()) {
    bool isExternal = EntryGraph::isExternal(argument);
    if (isExternal)
      externals.try_emplace(argument, externals.size());
    if (isExternal || entry.getArgAttr(argument.getArgNumber(), train::kGradient))
      memoryOf(scope, argument);
  }
  // What the host looks at comes first, in the shape it sees; steps may write it in another.
  auto returned = cast<func::ReturnOp>(entry.getBody().front().getTerminator());
  for (OpOperand &operand : returned->getOpOperands())
    if (!entry.getResultAttr(operand.getOperandNumber(), train::kUpdate) &&
        !entry.getResultAttr(operand.getOperandNumber(), train::kSaved))
      memoryOf(scope, operand.get());
  emitSteps(scope, inner);
  if (loss && !guarded)
    plan::GuardOp::create(inner, entry.getLoc(), loss);
}

/// The plan of an entry, or of one with a budget: the best there is, and where its offsets need more than
/// that, the one that recomputation has found.
ortc::Expected<planning::Plan> planEntry(const EntryProblem &entry, bool reorder, IntegerAttr budget) {
  planning::PlanOptions options;
  options.reorder = reorder;
  auto plan = planning::plan(entry.problem, options);
  if (!plan || !budget || plan->arenaBytes <= uint64_t(budget.getInt()))
    return plan;
  auto other = planning::plan(entry.problem, planning::planWithin(budget.getInt()));
  return other && other->arenaBytes < plan->arenaBytes ? other : plan;
}

/// In the unit that it was given in.
LogicalResult refuseBudget(func::FuncOp entry, uint64_t budget, uint64_t bytes) {
  auto unit = entry->getAttrOfType<StringAttr>(kBudgetUnit);
  auto show = [&](uint64_t size) { return formatBytesIn(size, unit ? unit.getValue() : StringRef()); };
  return entry.emitError() << "--memory-budget " << show(budget) << ": the steps that were found take "
                           << show(bytes) << (unit ? "" : " bytes") << " when they are placed; give that";
}

LogicalResult placeGroup(ArrayRef<func::FuncOp> group, bool reorder) {
  auto graph = EntryGraph::build(group);
  if (failed(graph))
    return failure();
  EntryProblem planned(*graph);
  planned.build();
  func::FuncOp first = group.front();
  auto budget = first->getAttrOfType<IntegerAttr>(plan::kBudget);
  auto plan = planEntry(planned, reorder, budget);
  if (!plan)
    return first.emitError(plan.getStatus().getMessage());
  if (budget && plan->arenaBytes > uint64_t(budget.getInt()))
    return refuseBudget(first, uint64_t(budget.getInt()), plan->arenaBytes);
  SymbolTable symbols(first->getParentOfType<ModuleOp>());
  for (auto [segment, block] : llvm::enumerate(graph->getBlocks()))
    ProgramEmitter(block, segment, symbols).run(planned, *plan);
  for (func::FuncOp entry : llvm::reverse(group))
    entry.erase();
  return success();
}

struct PlaceBuffersPass : impl::PlaceBuffersPassBase<PlaceBuffersPass> {
  using Base::Base;

  void runOnOperation() override {
    for (ArrayRef<func::FuncOp> group : groupEntries(getOperation()))
      if (failed(placeGroup(group, reorder)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace ortc::memory
