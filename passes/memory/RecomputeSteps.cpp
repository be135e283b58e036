//===- RecomputeSteps.cpp - run steps again to keep to a memory budget ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// compiler/planning decides which steps run again and in which order; this file writes that down: calls are copied, and all
// steps are put in the order found. A copy calls the same kernel as the original, so every bit is the same.
#include "compiler/planning/Recompute.h"
#include "dialects/plan/PlanDialect.h"
#include "passes/memory/EntryProblem.h"
#include "passes/memory/Passes.h"

using namespace mlir;

namespace ortc::memory {

#define GEN_PASS_DEF_RECOMPUTESTEPSPASS
#include "passes/memory/Passes.h.inc"

namespace {

func::FuncOp calleeOf(func::CallOp call) {
  return SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
}

int64_t numberOf(Operation *op, StringRef attribute) {
  auto number = op->getAttrOfType<IntegerAttr>(attribute);
  return number ? std::max<int64_t>(0, number.getInt()) : 0;
}

/// Picoseconds of one run of a step; those of a loop are those of all its iterations.
uint64_t timeOf(Operation *step) {
  if (auto call = dyn_cast<func::CallOp>(step))
    return numberOf(calleeOf(call), plan::kTime);
  uint64_t time = 0;
  for (Operation &op : cast<nn::ScanOp>(step).getBlock().without_terminator())
    if (isa<func::CallOp, nn::ScanOp>(op))
      time += timeOf(&op);
  return time * cast<nn::ScanOp>(step).getTripCount();
}

uint64_t workerBytesOf(Operation *step) {
  uint64_t bytes = 0;
  step->walk([&](func::CallOp call) {
    bytes = std::max<uint64_t>(bytes, numberOf(calleeOf(call), plan::kWorkerBytes));
  });
  return bytes;
}

/// Whether a second run of a step gives the same and does nothing else: a kernel whose results stay in the transient region
/// and are no place where a loop goes on.
bool isRepeatable(Operation *step, const EntryGraph &graph) {
  auto call = dyn_cast<func::CallOp>(step);
  if (!call || EntryGraph::isCheck(step))
    return false;
  for (Value result : call.getResults()) {
    if (graph.getDestination(result))
      return false;
    SmallVector<Value> values{result};
    while (!values.empty())
      for (Operation *user : values.pop_back_val().getUsers()) {
        auto loop = dyn_cast<nn::ScanOp>(user);
        if (loop && llvm::any_of(loop.getInits(), [&](Value init) { return graph.rootOf(init) == result; }))
          return false;
        if (auto reshape = dyn_cast<nn::ReshapeOp>(user))
          values.push_back(reshape.getResult());
      }
  }
  return true;
}

/// Writes the runs of a group of entries down.
class Rewriter {
public:
  Rewriter(EntryProblem &entry, ArrayRef<planning::StepRun> runs) : entry(entry), runs(runs) {}

  void run() {
    const EntryGraph &graph = entry.graph;
    SmallVector<nn::ReshapeOp> reshapes;
    for (Block *block : graph.getBlocks())
      llvm::append_range(reshapes, block->getOps<nn::ReshapeOp>());
    SmallVector<Operation *> ops; // per run
    llvm::DenseSet<uint32_t> seen;
    for (const planning::StepRun &run : runs) {
      Operation *original = graph.getSteps()[run.step], *exit = original->getBlock()->getTerminator();
      bool isFirst = seen.insert(run.step).second;
      Operation *op = original;
      if (!isFirst) {
        OpBuilder builder(exit);
        op = builder.clone(*original);
        op->setAttr(plan::kRepeated, builder.getUnitAttr());
      } else {
        op->moveBefore(exit);
      }
      ops.push_back(op);
    }
    // Operands last: what they refer to is there now.
    for (auto [run, op] : llvm::zip_equal(runs, ops))
      for (OpOperand &operand : op->getOpOperands())
        if (Operation *source = sourceOf(run, operand.get(), ops))
          operand.set(viewOf(operand.get(), source));
    for (nn::ReshapeOp reshape : reshapes) {
      if (Operation *definition = reshape.getInput().getDefiningOp())
        reshape->moveAfter(definition);
      else
        reshape->moveBefore(&reshape->getBlock()->front());
    }
    for (nn::ReshapeOp reshape : llvm::reverse(reshapes))
      if (reshape->use_empty())
        reshape.erase();
  }

private:
  /// The run that makes `value` for a run that reads it; null where it is as it was.
  Operation *sourceOf(const planning::StepRun &run, Value value, ArrayRef<Operation *> ops) const {
    Value root = entry.graph.rootOf(value);
    auto buffer = entry.buffers.find(root);
    if (buffer == entry.buffers.end())
      return nullptr;
    const std::vector<planning::BufferId> &reads = entry.problem.steps[run.step].reads;
    uint32_t source = run.sources[llvm::find(reads, buffer->second) - reads.begin()];
    if (source == UINT32_MAX || ops[source] == root.getDefiningOp())
      return nullptr;
    return ops[source];
  }

  /// `value`, a result of a step or a reshape of one, as `source` makes it.
  Value viewOf(Value value, Operation *source) {
    auto root = cast<OpResult>(entry.graph.rootOf(value));
    Value made = source->getResult(root.getResultNumber());
    if (made.getType() == value.getType())
      return made;
    Value &view = views[{made, value.getType()}];
    if (!view) {
      OpBuilder builder(source->getContext());
      builder.setInsertionPointAfter(source);
      view = nn::ReshapeOp::create(builder, value.getLoc(), value.getType(), made);
    }
    return view;
  }

  EntryProblem &entry;
  ArrayRef<planning::StepRun> runs;
  llvm::DenseMap<std::pair<Value, Type>, Value> views;
};

struct RecomputeStepsPass : impl::RecomputeStepsPassBase<RecomputeStepsPass> {
  using Base::Base;

  void runOnOperation() override {
    for (ArrayRef<func::FuncOp> group : groupEntries(getOperation()))
      if (failed(fit(group)))
        return signalPassFailure();
  }

  LogicalResult fit(ArrayRef<func::FuncOp> group) {
    auto graph = EntryGraph::build(group);
    if (failed(graph))
      return failure();
    EntryProblem entry(*graph);
    entry.build();
    std::vector<planning::StepCost> costs;
    uint64_t total = 0, workers = 0;
    for (Operation *step : graph->getSteps()) {
      costs.push_back({timeOf(step), isRepeatable(step, *graph)});
      total += costs.back().time;
      workers = std::max(workers, workerBytesOf(step));
    }
    unsigned shift = 0;
    while (total >> shift > uint64_t(1) << 43)
      ++shift;
    for (planning::StepCost &cost : costs)
      cost.time = std::max<uint64_t>(1, cost.time >> shift);
    workers = (workers + 63) / 64 * 64 * maxWorkers;

    planning::RecomputeOptions options;
    options.budget = budget > workers ? budget - workers : 0;
    auto found = planning::recompute(entry.problem, costs, options);
    func::FuncOp first = group.front();
    if (!found.ok())
      return first.emitError(found.status().message);
    auto role = first->getAttrOfType<StringAttr>(train::kEntry).getValue();
    if (!found->fits)
      return first.emitError() << "--memory-budget " << uint64_t(budget)
                               << ": the smallest possible budget is " << found->plan.arenaBytes + workers
                               << " bytes (entry '" << role << "': " << found->plan.arenaBytes
                               << " bytes of values and " << workers << " bytes of scratch for "
                               << uint64_t(maxWorkers)
                               << " workers); give that, a smaller batch, or train less (--freeze)";
    if (found->runs.size() > costs.size())
      Rewriter(entry, found->runs).run();
    Builder builder(&getContext());
    auto number = [&](StringRef name, uint64_t value) {
      return builder.getNamedAttr(name, builder.getI64IntegerAttr(static_cast<int64_t>(value)));
    };
    for (func::FuncOp each : group)
      each->setAttr(plan::kRecompute,
                    builder.getDictionaryAttr({number("time", found->time << shift),
                                               number("plain_time", found->plainTime << shift),
                                               number("least_time", found->leastTime << shift),
                                               number("least_bytes", found->leastBudget + workers),
                                               number("repeated", found->runs.size() - costs.size())}));
    return success();
  }
};

} // namespace
} // namespace ortc::memory
