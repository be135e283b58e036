// plan(): bodies first, then order, then in-place chains, then offsets, then the validator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/Arithmetic.h"
#include "compiler/planning/Liveness.h"
#include "compiler/planning/order/OrderSearch.h"
#include "compiler/planning/packing/Packing.h"

#include <algorithm>

namespace ortc::planning {

namespace {

constexpr unsigned kMaxNesting = 16;

/// The items of a packing problem for one order, and what they are items of.
struct Layout {
  PackingProblem packing;
  std::vector<uint32_t> storageOf;                ///< per value: item
  std::vector<uint32_t> workspaceItem, innerItem; ///< per step: item of its workspace, kNone if it has none
  std::vector<std::vector<InPlaceEdge>> taken;    ///< per step
};

/// Joins values that are written in place of each other into one item each, in the order of time.
Layout layOut(const Graph &graph, const Order &order) {
  Liveness live(graph, order);
  uint32_t end = std::max<uint32_t>(1, uint32_t(order.size()));
  Layout layout;
  layout.packing.sections = end;
  layout.taken.resize(order.size());
  layout.workspaceItem.assign(order.size(), kNone);
  layout.innerItem.assign(order.size(), kNone);
  layout.storageOf.assign(graph.values.size(), kNone);
  std::vector<ValueId> inPlaceOf(graph.values.size(), kNone);
  for (StepId s : order) {
    matchInPlace(graph.steps[s], s, live.lastUse, &layout.taken[s]);
    for (const InPlaceEdge &edge : layout.taken[s])
      inPlaceOf[edge.write] = edge.read;
  }
  std::vector<Item> &items = layout.packing.items;
  auto lifetime = [&](ValueId v) {
    StepId first = live.firstUse[v], last = live.lastUse[v];
    return Piece{first == kNone ? 0 : live.position[first], last == kNone ? end : live.position[last] + 1,
                 graph.values[v].bytes};
  };
  auto addValue = [&](ValueId v) {
    Piece piece = lifetime(v);
    if (inPlaceOf[v] == kNone) {
      layout.storageOf[v] = uint32_t(items.size());
      items.push_back({{piece}, graph.values[v].alignment});
      return;
    }
    uint32_t storage = layout.storageOf[v] = layout.storageOf[inPlaceOf[v]];
    Item &item = items[storage];
    item.alignment = std::max(item.alignment, graph.values[v].alignment);
    piece.begin = item.pieces.back().end; // at the step itself the larger read covers the write
    if (piece.begin >= piece.end)
      return;
    if (item.pieces.back().size == piece.size)
      item.pieces.back().end = piece.end;
    else
      item.pieces.push_back(piece);
  };
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (live.firstUse[v] == kNone)
      addValue(v);
  for (uint32_t p = 0; p < order.size(); ++p) {
    StepId s = order[p];
    const GraphStep &step = graph.steps[s];
    for (ValueId v : step.values)
      if (live.firstUse[v] == s)
        addValue(v);
    if (step.workspaceBytes > 0) {
      layout.workspaceItem[s] = uint32_t(items.size());
      items.push_back({{{p, p + 1, step.workspaceBytes}}, kDefaultAlignment});
    }
    if (step.innerBytes > 0) {
      layout.innerItem[s] = uint32_t(items.size());
      items.push_back({{{p, p + 1, step.innerBytes}}, step.innerAlignment});
    }
  }
  return layout;
}

/// Writes the places of everything into `plan`.
void fillPlan(const Problem &problem, const Graph &graph, const Layout &layout, const Packing &packing,
              Plan &plan) {
  plan.storageOf.assign(problem.buffers.size(), kNoStorage);
  plan.offsetOf.assign(problem.buffers.size(), 0);
  for (BufferId b = 0; b < problem.buffers.size(); ++b)
    if (ValueId v = graph.valueOf[b]; v != kNone && problem.buffers[b].bytes > 0) {
      plan.storageOf[b] = layout.storageOf[v];
      plan.offsetOf[b] = packing.offsets[layout.storageOf[v]] + graph.offsetInValue[b];
    }
  size_t steps = problem.steps.size();
  plan.workspaceOf.assign(steps, kNoOffset);
  plan.innerArenaOf.assign(steps, kNoOffset);
  plan.inPlace.assign(steps, {});
  for (StepId s = 0; s < steps; ++s) {
    if (layout.workspaceItem[s] != kNone)
      plan.workspaceOf[s] = packing.offsets[layout.workspaceItem[s]];
    if (layout.innerItem[s] != kNone)
      plan.innerArenaOf[s] = packing.offsets[layout.innerItem[s]];
    else if (plan.inner[s])
      plan.innerArenaOf[s] = 0;
    for (const InPlaceEdge &edge : layout.taken[s]) {
      plan.inPlace[s].push_back(problem.steps[s].inPlace[edge.candidate]);
      ++plan.statistics.inPlaceWrites;
      plan.statistics.inPlaceBytes += edge.bytes;
    }
  }
  plan.arenaAlignment = graph.alignment;
  plan.arenaBytes = alignUp(packing.height, kDefaultAlignment);
  plan.statistics.storages = layout.packing.items.size();
  plan.statistics.offsetSource = packing.source;
}

Status tooDeep(const Problem &problem, StepId s) {
  return Status::refusal("the body of " + nameStep(problem, s) + " is nested more than " +
                         std::to_string(kMaxNesting) + " deep");
}

Status inBody(const Problem &problem, StepId s, const Status &status) {
  return Status::refusal("in the body of " + nameStep(problem, s) + ": " + status.getMessage());
}

Status checkNested(const Problem &problem, unsigned depth) {
  for (StepId s = 0; s < problem.steps.size(); ++s) {
    if (!problem.steps[s].inner)
      continue;
    if (depth == kMaxNesting)
      return tooDeep(problem, s);
    if (Status status = checkNested(*problem.steps[s].inner, depth + 1); !status.isOk())
      return inBody(problem, s, status);
  }
  return buildGraph(problem, std::vector<std::shared_ptr<const Plan>>(problem.steps.size()), true)
      .getStatus();
}

Expected<Plan> planNested(const Problem &problem, const PlanOptions &options, unsigned depth) {
  Plan plan;
  plan.inner.resize(problem.steps.size());
  PlanOptions bodyOptions = options;
  bodyOptions.arenaTarget = 0;
  for (StepId s = 0; s < problem.steps.size(); ++s) {
    if (!problem.steps[s].inner)
      continue;
    if (depth == kMaxNesting)
      return tooDeep(problem, s);
    Expected<Plan> body = planNested(*problem.steps[s].inner, bodyOptions, depth + 1);
    if (!body)
      return inBody(problem, s, body.getStatus());
    plan.inner[s] = std::make_shared<const Plan>(std::move(*body));
  }
  Expected<Graph> graph = buildGraph(problem, plan.inner, options.inPlace);
  if (!graph)
    return graph.getStatus();

  OrderChoice choice = chooseOrder(*graph, options);
  PackingOptions packingOptions;
  packingOptions.work = options.offsetWork;
  packingOptions.exactWork = options.exactWork;
  packingOptions.target = options.arenaTarget;
  Layout layout = layOut(*graph, choice.order);
  Packing packing = pack(layout.packing, packingOptions);
  uint64_t offsetWork = packing.work;
  if (options.reorder && packing.height > std::max(choice.sourcePeak, options.arenaTarget) &&
      choice.order != choice.released) {
    // A better order that packs worse than the source order is no gain.
    Layout other = layOut(*graph, choice.released);
    packingOptions.target = std::max(choice.sourcePeak, options.arenaTarget);
    Packing second = pack(other.packing, packingOptions);
    offsetWork += second.work;
    if (second.height < packing.height) {
      layout = std::move(other);
      packing = std::move(second);
      choice.order = choice.released;
      choice.source = "source+release";
    }
  }
  Liveness live(*graph, choice.order);
  plan.order = choice.order;
  plan.maxLive = live.peak;
  plan.sourcePeak = choice.sourcePeak;
  plan.orderBound = choice.bound;
  plan.statistics.orderSource = choice.source;
  plan.statistics.plainSourcePeak = choice.plainSourcePeak;
  plan.statistics.orderWork = choice.searchWork;
  plan.statistics.boundWork = choice.boundWork;
  plan.statistics.boundComplete = choice.boundComplete;
  plan.statistics.offsetWork = offsetWork;
  fillPlan(problem, *graph, layout, packing, plan);
  return plan;
}

} // namespace

Status check(const Problem &problem) { return checkNested(problem, 0); }

Expected<Plan> plan(const Problem &problem, const PlanOptions &options) {
  Expected<Plan> result = planNested(problem, options, 0);
  if (!result)
    return result;
  ORTC_TRY(validate(problem, *result));
  return result;
}

} // namespace ortc::planning
