// Entries as planning problems.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values of the transient region are the buffers of the problem, kernels' scratch the workspaces of its
// steps; accesses to tensors and to the host's values are ordered by edges.
#include "compiler/passes/memory/EntryProblem.h"

#include "dialects/nn/ValueNames.h"
#include "dialects/plan/PlanDialect.h"

using namespace mlir;

namespace ortc::memory {

std::optional<planning::BufferId> EntryProblem::bufferOf(Value root) {
  if (auto known = buffers.find(root); known != buffers.end())
    return known->second;
  const EntryGraph::Destination *destination = graph.getDestination(root);
  auto argument = dyn_cast<BlockArgument>(root);
  if (argument ? !EntryGraph::gradientOf(argument)
               : destination && (destination->kind == EntryGraph::Destination::update ||
                                 destination->kind == EntryGraph::Destination::output))
    return std::nullopt;
  planning::Buffer buffer;
  buffer.name = nameOf(root);
  buffer.bytes = plan::storedBytes(cast<ShapedType>(root.getType()));
  bool isSaved = destination && destination->kind == EntryGraph::Destination::saved;
  buffer.aliveAtEnd = destination && !isSaved; // backward reads what is saved, and nobody after it
  buffer.aliveAtStart = argument != nullptr;   // a gradient that the host provides
  problem.buffers.push_back(buffer);
  return buffers[root] = problem.buffers.size() - 1;
}

std::string EntryProblem::nameOf(Value root) const {
  if (const EntryGraph::Destination *destination = graph.getDestination(root);
      destination && destination->kind != EntryGraph::Destination::saved)
    return destination->name.str();
  auto call = root.getDefiningOp<func::CallOp>();
  std::string name = call ? nn::findResultName(call.getLoc(), cast<OpResult>(root).getResultNumber()) : "";
  if (name.empty() && root.getDefiningOp())
    name = nn::findValueName(root.getLoc());
  if (name.empty())
    name = call ? call.getCallee().str() : "stacked";
  return call && call->hasAttr(plan::kRepeated) ? name + ", again" : name;
}

void EntryProblem::build() {
  llvm::DenseMap<Operation *, planning::StepId> steps;
  for (Operation *op : graph.getSteps()) {
    planning::Step step;
    step.segment = graph.getSegment(op);
    auto addUnique = [](std::vector<planning::BufferId> &list, planning::BufferId id) {
      if (!llvm::is_contained(list, id))
        list.push_back(id);
    };
    for (Value operand : op->getOperands())
      if (auto buffer = bufferOf(graph.rootOf(operand)))
        addUnique(step.reads, *buffer);
    for (Value result : op->getResults())
      if (graph.rootOf(result) == result) // a loop's carried values lie where they start
        if (auto buffer = bufferOf(result))
          addUnique(step.writes, *buffer);
    if (auto call = dyn_cast<func::CallOp>(op)) {
      step.name = call.getCallee().str();
      step.workspace = plan::scratchOf(graph.calleeOf(call));
      auto pairs = graph.calleeOf(call)->getAttrOfType<DenseI64ArrayAttr>(plan::kInPlace);
      for (int64_t i = 0; pairs && i + 1 < pairs.size(); i += 2) {
        Value operand = graph.rootOf(call.getOperand(pairs[i]));
        auto read = bufferOf(operand), write = bufferOf(call.getResult(pairs[i + 1]));
        // Another operand may be the same buffer, read in another order: then it must stay.
        bool once = llvm::count_if(call.getOperands(),
                                   [&](Value other) { return graph.rootOf(other) == operand; }) == 1;
        if (read && write && once && !problem.buffers[*read].aliveAtStart)
          step.inPlace.push_back({*read, *write});
      }
    } else {
      step.name = "loop";
      std::unique_ptr<EntryProblem> &body = loops[op] = std::make_unique<EntryProblem>(graph.getBody(op));
      body->build();
      step.inner = std::make_shared<planning::Problem>(body->problem);
    }
    for (Operation *earlier : graph.getAfter(op))
      step.after.push_back(steps.lookup(earlier));
    steps[op] = problem.steps.size();
    problem.steps.push_back(std::move(step));
  }
}

/// The order of entries that are planned together; 0 for the others.
static unsigned rankOf(StringRef role) {
  return llvm::StringSwitch<unsigned>(role)
      .Cases({"forward", "gradients"}, 1)
      .Case("backward", 2)
      .Case("update", 3)
      .Default(0);
}
static unsigned rankOf(func::FuncOp entry) {
  auto role = entry->getAttrOfType<StringAttr>(train::kEntry);
  return role ? rankOf(role.getValue()) : 0;
}

SmallVector<SmallVector<func::FuncOp>> groupEntries(ModuleOp module) {
  llvm::MapVector<Attribute, SmallVector<func::FuncOp>> groups;
  SmallVector<SmallVector<func::FuncOp>> all;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function->hasAttr(train::kEntry))
      continue;
    if (rankOf(function))
      groups[function->getAttr(train::kBinding)].push_back(function);
    else
      all.push_back({function});
  }
  for (auto &[key, group] : groups) {
    llvm::sort(group, [](func::FuncOp a, func::FuncOp b) { return rankOf(a) < rankOf(b); });
    all.push_back(group);
  }
  return all;
}

} // namespace ortc::memory
