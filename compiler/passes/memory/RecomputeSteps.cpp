// Run steps again to keep to a memory budget.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// compiler/planning decides which steps run again and in which order; this file writes that down: calls are
// copied, and all steps are put in the order found. A copy calls the same kernel as the original, so every
// bit is the same.
#include "compiler/passes/memory/EntryProblem.h"
#include "compiler/passes/memory/Passes.h"
#include "compiler/planning/recompute/Recompute.h"
#include "dialects/plan/PlanDialect.h"
#include "support/Text.h"

using namespace mlir;

namespace ortc::memory {

#define GEN_PASS_DEF_RECOMPUTESTEPSPASS
#include "compiler/passes/memory/Passes.h.inc"

namespace {

int64_t numberOf(Operation *op, StringRef attribute) {
  auto number = op->getAttrOfType<IntegerAttr>(attribute);
  return number ? std::max<int64_t>(0, number.getInt()) : 0;
}

/// Picoseconds of one run of a step; those of a loop are those of all its iterations.
uint64_t timeOf(Operation *step, const EntryGraph &graph) {
  if (auto call = dyn_cast<func::CallOp>(step))
    return numberOf(graph.calleeOf(call), plan::kTime);
  uint64_t time = 0;
  for (Operation &op : cast<nn::ScanOp>(step).getBlock().without_terminator())
    if (isa<func::CallOp, nn::ScanOp>(op))
      time += timeOf(&op, graph);
  return time * cast<nn::ScanOp>(step).getTripCount();
}

/// Whether a second run of a step gives the same and does nothing else: a kernel whose results stay in the
/// transient region and are no place where a loop goes on.
bool isRepeatable(Operation *step, const EntryGraph &graph) {
  auto call = dyn_cast<func::CallOp>(step);
  if (!call || graph.isCheck(step))
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

/// What the steps of a group of entries take.
struct Costs {
  explicit Costs(const EntryGraph &graph) {
    uint64_t total = 0;
    for (Operation *step : graph.getSteps()) {
      steps.push_back({timeOf(step, graph), isRepeatable(step, graph)});
      total += steps.back().time;
    }
    while (total >> shift > kMostTime)
      ++shift;
    for (planning::StepCost &cost : steps)
      cost.time = std::max<uint64_t>(1, cost.time >> shift);
  }

  static constexpr uint64_t kMostTime = uint64_t(1) << 43; ///< planning::StepCost has a limit
  std::vector<planning::StepCost> steps;
  unsigned shift = 0; ///< of times, to picoseconds
};

/// Work of each search and bound of the curve, for every step: a small part of what a budget gets.
constexpr uint64_t kCurveWorkForStep = 40'000;
constexpr size_t kMostCurveSteps = 2'000;

struct RecomputeStepsPass : impl::RecomputeStepsPassBase<RecomputeStepsPass> {
  using Base::Base;

  /// The entry that needs the largest of the smallest budgets.
  struct Refusal {
    func::FuncOp entry;
    uint64_t bytes = 0, least = 0;
    bool hasScratch = false;
  };

  void runOnOperation() override {
    Refusal refusal;
    for (ArrayRef<func::FuncOp> group : groupEntries(getOperation()))
      if (failed(fit(group, refusal)))
        return signalPassFailure();
    if (!refusal.entry)
      return;
    auto role = refusal.entry->getAttrOfType<StringAttr>(train::kEntry).getValue();
    emitError(UnknownLoc::get(&getContext()))
        << "--memory-budget " << show(budget) << ": the smallest budget found to be enough is "
        << show(refusal.bytes) << (unit.empty() ? " bytes" : "") << " (entry '" << role
        << "'; no plan takes less than " << show(refusal.least) << "); give that, or a smaller batch"
        << (refusal.hasScratch ? ", or a smaller --max-workers, for the scratch of each" : "")
        << (role == "predict" || role == "eval" ? "" : ", or train less (--freeze)")
        << (hasUpdates(refusal.entry) ? StringRef(ofUpdates) : "");
    signalPassFailure();
  }

  std::string show(uint64_t bytes) const { return formatBytesIn(bytes, StringRef(unit)); }

  static bool hasUpdates(func::FuncOp entry) {
    return llvm::any_of(llvm::seq(entry.getNumResults()),
                        [&](unsigned i) { return entry.getResultAttr(i, train::kUpdate) != nullptr; });
  }

  LogicalResult fit(ArrayRef<func::FuncOp> group, Refusal &refusal) {
    auto graph = EntryGraph::build(group);
    if (failed(graph))
      return failure();
    EntryProblem entry(*graph);
    entry.build();
    Costs costs(*graph);
    func::FuncOp first = group.front();
    auto whole = planning::plan(entry.problem);
    if (!whole)
      return first.emitError(whole.getStatus().getMessage());
    if (Attribute points = curve ? describeCurve(entry, costs, *whole) : Attribute())
      for (func::FuncOp each : group)
        each->setAttr(plan::kCurve, points);
    if (budget == UINT64_MAX)
      return success();
    planning::RecomputeOptions options;
    options.budget = budget;
    auto found = planning::recompute(entry.problem, costs.steps, options, &*whole);
    if (!found)
      return first.emitError(found.getStatus().getMessage());
    if (!found->fits) {
      if (!refusal.entry || found->plan.arenaBytes > refusal.bytes)
        refusal = {
            first, found->plan.arenaBytes, found->leastBudget,
            llvm::any_of(entry.problem.steps, [](const planning::Step &step) { return step.workspace > 0; })};
      return success();
    }
    Builder builder(&getContext());
    for (func::FuncOp each : group) {
      each->setAttr(plan::kRecompute, describe(*found, costs));
      each->setAttr(plan::kBudget,
                    builder.getI64IntegerAttr(int64_t(std::min<uint64_t>(options.budget, INT64_MAX))));
      if (!unit.empty())
        each->setAttr(kBudgetUnit, builder.getStringAttr(StringRef(unit)));
    }
    if (whole->arenaBytes > options.budget)
      Rewriter(entry, found->runs).run();
    return success();
  }

  DictionaryAttr describe(const planning::Recomputation &found, const Costs &costs) {
    Builder builder(&getContext());
    auto number = [&](StringRef name, uint64_t value) {
      return builder.getNamedAttr(name, builder.getI64IntegerAttr(static_cast<int64_t>(value)));
    };
    return builder.getDictionaryAttr(
        {number("time", found.time << costs.shift), number("plain_time", found.plainTime << costs.shift),
         number("least_time", found.leastTime << costs.shift), number("least_bytes", found.leastBudget),
         number("repeated", found.runs.size() - costs.steps.size())});
  }

  /// What budgets from nine to three tenths of the whole would take, with a shorter search than a budget that
  /// is asked for gets. Nothing for entries that repeat nothing.
  Attribute describeCurve(EntryProblem &entry, const Costs &costs, const planning::Plan &whole) {
    bool isAny = llvm::any_of(costs.steps, [](const planning::StepCost &cost) { return cost.repeatable; });
    if (!isAny || costs.steps.size() > kMostCurveSteps)
      return {};
    Builder builder(&getContext());
    SmallVector<Attribute> points;
    for (uint64_t tenths : {9, 8, 7, 6, 5, 4, 3}) {
      planning::RecomputeOptions options;
      options.budget = whole.arenaBytes / 10 * tenths;
      options.searchWork = options.boundWork = kCurveWorkForStep * costs.steps.size();
      options.findSmallest = false;
      auto found = planning::recompute(entry.problem, costs.steps, options, &whole);
      if (!found)
        return {};
      points.push_back(builder.getDenseI64ArrayAttr(
          {int64_t(options.budget), int64_t(found->plan.arenaBytes), int64_t(found->time << costs.shift),
           int64_t(found->leastTime << costs.shift), int64_t(found->plainTime << costs.shift), found->fits}));
      if (!found->fits) // nor does a smaller one
        break;
    }
    return builder.getArrayAttr(points);
  }
};

} // namespace
} // namespace ortc::memory
