//===- PlaceBuffers.cpp - schedule entry functions and place their buffers ===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns each entry into a planning problem (compiler/planning), and the plan into plan.program operations. Only values
// of the transient region are buffers of the problem; accesses to tensors and to the host's values are ordered by edges.
#include "compiler/planning/Plan.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/train/ElementTypes.h"
#include "passes/memory/EntryGraph.h"
#include "passes/memory/Passes.h"

using namespace mlir;

namespace ortc::memory {

#define GEN_PASS_DEF_PLACEBUFFERSPASS
#include "passes/memory/Passes.h.inc"

namespace {

/// One group of entries on its way to programs.
class Placer {
public:
  Placer(EntryGraph graph, bool reorder) : graph(std::move(graph)), reorder(reorder) {}

  LogicalResult run() {
    buildProblem();
    planning::PlanOptions options;
    options.reorder = reorder;
    auto result = planning::plan(problem, options);
    if (!result.ok())
      return func::FuncOp(graph.getEntries().front()).emitError(result.status().message);
    plan = std::move(*result);
    for (auto [segment, entry] : llvm::enumerate(graph.getEntries()))
      emitProgram(entry, segment);
    for (func::FuncOp entry : llvm::reverse(graph.getEntries()))
      entry.erase();
    return success();
  }

private:
  static std::optional<unsigned> externalIndex(BlockArgument argument) {
    auto entry = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    unsigned index = 0;
    for (unsigned i = 0; i < argument.getArgNumber(); ++i)
      index += entry.getArgAttr(i, train::kInput) != nullptr;
    return entry.getArgAttr(argument.getArgNumber(), train::kInput) ? std::optional(index) : std::nullopt;
  }

  /// The transient buffer of a root, made at its first use; nothing for roots that live elsewhere.
  std::optional<planning::BufferId> bufferOf(Value root) {
    if (auto known = buffers.find(root); known != buffers.end())
      return known->second;
    const EntryGraph::Destination *destination = graph.getDestination(root);
    bool elsewhere = isa<BlockArgument>(root) ||
                     (destination && (destination->kind == EntryGraph::Destination::update ||
                                      destination->kind == EntryGraph::Destination::output));
    if (auto argument = dyn_cast<BlockArgument>(root)) {
      auto entry = cast<func::FuncOp>(argument.getOwner()->getParentOp());
      elsewhere = !entry.getArgAttr(argument.getArgNumber(), train::kGradient);
    }
    if (elsewhere)
      return std::nullopt;
    planning::Buffer buffer;
    buffer.name = nameOf(root);
    buffer.bytes = storedBytes(cast<ShapedType>(root.getType()));
    buffer.aliveAtEnd = destination != nullptr;
    buffer.aliveAtStart = isa<BlockArgument>(root); // a gradient that the host provides
    problem.buffers.push_back(buffer);
    return buffers[root] = problem.buffers.size() - 1;
  }

  std::string nameOf(Value root) {
    if (const EntryGraph::Destination *destination = graph.getDestination(root))
      return destination->name.str();
    std::string name;
    if (auto call = root.getDefiningOp<func::CallOp>())
      name = call.getCallee().str();
    return name + "." + std::to_string(buffers.size());
  }

  void buildProblem() {
    llvm::DenseMap<Operation *, planning::StepId> steps;
    for (func::CallOp call : graph.getCalls()) {
      planning::Step step;
      step.name = call.getCallee().str();
      step.segment = graph.getSegment(call);
      auto addUnique = [](std::vector<planning::BufferId> &list, planning::BufferId id) {
        if (!llvm::is_contained(list, id))
          list.push_back(id);
      };
      for (Value operand : call.getOperands())
        if (auto buffer = bufferOf(graph.rootOf(operand)))
          addUnique(step.reads, *buffer);
      for (Value result : call.getResults())
        if (auto buffer = bufferOf(result))
          addUnique(step.writes, *buffer);
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
      if (auto pairs = callee->getAttrOfType<DenseI64ArrayAttr>(plan::kInPlace)) {
        for (int64_t i = 0; i + 1 < pairs.size(); i += 2) {
          Value operand = graph.rootOf(call.getOperand(pairs[i]));
          auto read = bufferOf(operand), write = bufferOf(call.getResult(pairs[i + 1]));
          // Another operand may be the same buffer, read in another order: then it must stay.
          bool once = llvm::count_if(call.getOperands(), [&](Value other) { return graph.rootOf(other) == operand; }) == 1;
          if (read && write && once && !problem.buffers[*read].aliveAtStart)
            step.inPlace.push_back({*read, *write});
        }
      }
      for (Operation *earlier : graph.getAfter(call))
        step.after.push_back(steps.lookup(earlier));
      steps[call] = problem.steps.size();
      problem.steps.push_back(std::move(step));
    }
  }

  void emitProgram(func::FuncOp entry, uint32_t segment) {
    OpBuilder builder(entry);
    auto role = entry->getAttrOfType<StringAttr>(train::kEntry);
    auto binding = entry->getAttrOfType<IntegerAttr>(train::kBinding);
    auto i64 = [&](uint64_t value) { return builder.getI64IntegerAttr(static_cast<int64_t>(value)); };
    auto program = plan::ProgramOp::create(builder, entry.getLoc(), StringAttr::get(entry.getContext(), entry.getSymName() + "_program"), role,
                                           binding ? binding : i64(0), i64((plan.arenaBytes + 63) / 64 * 64), i64(0),
                                           i64(plan.maxLive), i64(plan.sourcePeak));
    Block *body = &program.getBody().emplaceBlock();
    OpBuilder inner = OpBuilder::atBlockEnd(body);
    llvm::DenseMap<std::pair<Value, Type>, Value> made;
    auto memoryOf = [&](Value value) {
      Value root = graph.rootOf(value);
      Value &buffer = made[{root, value.getType()}];
      if (!buffer)
        buffer = emitBuffer(inner, root, cast<RankedTensorType>(value.getType()));
      return buffer;
    };
    // Every value of the host has its place, used or not.
    for (BlockArgument argument : entry.getArguments())
      if (entry.getArgAttr(argument.getArgNumber(), train::kInput) || entry.getArgAttr(argument.getArgNumber(), train::kGradient))
        memoryOf(argument);
    // What the host looks at comes first, in the shape it sees; steps may write it in another.
    auto returned = cast<func::ReturnOp>(entry.getBody().front().getTerminator());
    for (OpOperand &operand : returned->getOpOperands())
      if (!entry.getResultAttr(operand.getOperandNumber(), train::kUpdate))
        memoryOf(operand.get());
    Value loss;
    bool guarded = false;
    auto guard = [&] {
      if (loss && !guarded)
        plan::GuardOp::create(inner, entry.getLoc(), loss);
      guarded = true;
    };
    for (planning::StepId id : plan.order) {
      func::CallOp call = graph.getCalls()[id];
      if (graph.getSegment(call) != segment)
        continue;
      if (graph.isUpdate(call))
        guard();
      SmallVector<Value> inputs, outputs;
      for (Value operand : call.getOperands())
        inputs.push_back(memoryOf(operand));
      for (Value result : call.getResults()) {
        outputs.push_back(memoryOf(result));
        if (const auto *destination = graph.getDestination(result); destination && destination->kind == EntryGraph::Destination::loss)
          loss = outputs.back();
      }
      plan::StepOp::create(inner, call.getLoc(), call.getCalleeAttr(), inputs, outputs);
    }
    guard();
  }

  Value emitBuffer(OpBuilder &builder, Value root, RankedTensorType type) {
    auto region = plan::Region::transient;
    int64_t offset = 0;
    std::string name = nameOf(root);
    StringRef usage;
    Attribute dtype; // of inputs and outputs, which the host sees
    Location loc = root.getLoc();
    const EntryGraph::Destination *destination = graph.getDestination(root);
    auto atTensor = [&](StringAttr symbol) {
      Operation *module = graph.getEntries().front()->getParentOp();
      auto tensor = cast<train::TensorOp>(SymbolTable::lookupSymbolIn(module, symbol));
      region = tensor->getAttrOfType<plan::RegionAttr>(kRegion).getValue();
      offset = tensor->getAttrOfType<IntegerAttr>(kOffset).getInt();
      name = symbol.str();
    };
    if (auto buffer = bufferOf(root)) {
      offset = plan.offsetOf[*buffer];
      if (destination && destination->type == type)
        usage = destination->kind == EntryGraph::Destination::loss ? "loss" : "gradient";
      if (auto argument = dyn_cast<BlockArgument>(root)) {
        auto entry = cast<func::FuncOp>(argument.getOwner()->getParentOp());
        name = entry.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), train::kGradient).getValue().str();
        usage = "gradient";
      }
    } else if (destination && destination->kind == EntryGraph::Destination::update) {
      atTensor(destination->name);
    } else if (destination) {
      region = plan::Region::external;
      offset = destination->index;
      if (destination->type == type)
        usage = "output";
      dtype = destination->dtype;
    } else {
      auto argument = cast<BlockArgument>(root);
      auto entry = cast<func::FuncOp>(argument.getOwner()->getParentOp());
      if (auto symbol = entry.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), train::kTensor)) {
        atTensor(symbol.getAttr());
      } else {
        region = plan::Region::external;
        offset = *externalIndex(argument);
        name = entry.getArgAttrOfType<StringAttr>(argument.getArgNumber(), train::kInput).str();
        usage = "input";
        dtype = entry.getArgAttr(argument.getArgNumber(), train::kDtype);
      }
    }
    auto memref = MemRefType::get(type.getShape(), type.getElementType());
    auto buffer = plan::BufferOp::create(builder, loc, memref, region, offset, builder.getStringAttr(name),
                                         usage.empty() ? StringAttr() : builder.getStringAttr(usage));
    if (dtype)
      buffer->setAttr(train::kDtype, dtype);
    return buffer;
  }

  EntryGraph graph;
  bool reorder;
  planning::Problem problem;
  planning::Plan plan;
  llvm::DenseMap<Value, planning::BufferId> buffers;
};

struct PlaceBuffersPass : impl::PlaceBuffersPassBase<PlaceBuffersPass> {
  using Base::Base;

  void runOnOperation() override {
    // A gradients entry and the update entry of its binding form one group.
    llvm::MapVector<Attribute, SmallVector<func::FuncOp>> groups;
    SmallVector<SmallVector<func::FuncOp>> all;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      auto role = function->getAttrOfType<StringAttr>(train::kEntry);
      if (!role)
        continue;
      if (role.getValue() == "gradients" || role.getValue() == "update")
        groups[function->getAttr(train::kBinding)].push_back(function);
      else
        all.push_back({function});
    }
    for (auto &[key, group] : groups) {
      llvm::sort(group, [](func::FuncOp a, func::FuncOp b) {
        return a->getAttrOfType<StringAttr>(train::kEntry).getValue() < b->getAttrOfType<StringAttr>(train::kEntry).getValue();
      });
      all.push_back(group);
    }
    for (ArrayRef<func::FuncOp> group : all) {
      auto graph = EntryGraph::build(group);
      if (failed(graph) || failed(Placer(std::move(*graph), reorder).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace ortc::memory
