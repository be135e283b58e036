// Bytes alive at every step of an order, exactly, with the in-place writes that save most.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/Liveness.h"

#include <algorithm>

namespace ortc::planning {

namespace {

/// Matching for steps with several candidates (rare, and then few).
class InPlaceMatching {
public:
  InPlaceMatching(const GraphStep &step, StepId id, const std::vector<StepId> &lastUse) {
    for (const InPlaceEdge &edge : step.inPlace)
      if (lastUse[edge.read] == id)
        edges.push_back(edge);
    tried.assign(edges.size(), 0);
  }

  uint64_t solve(std::vector<InPlaceEdge> *taken) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < edges.size(); ++i) {
      if (i > 0 && edges[i].write == edges[i - 1].write)
        continue; // edges of one write are seen together; equal sizes may interleave, which only repeats work
      if (matchedRead(edges[i].write) == kNone) {
        ++round;
        if (augment(edges[i].write))
          bytes += edges[i].bytes;
      }
    }
    if (taken)
      for (uint32_t e : chosen)
        taken->push_back(edges[e]);
    return bytes;
  }

private:
  uint32_t matchedRead(ValueId write) const {
    for (uint32_t e : chosen)
      if (edges[e].write == write)
        return edges[e].read;
    return kNone;
  }

  /// Breadth-first alternating path from `write` to a free read.
  bool augment(ValueId write) {
    struct Visit {
      uint32_t edge, from; // `from`: index in queue of the visit whose read this edge's write is matched to
    };
    std::vector<Visit> queue;
    auto expand = [&](ValueId w, uint32_t from) {
      for (uint32_t e = 0; e < edges.size(); ++e)
        if (edges[e].write == w && tried[e] != round) {
          tried[e] = round;
          queue.push_back({e, from});
        }
    };
    expand(write, kNone);
    for (uint32_t at = 0; at < queue.size(); ++at) {
      ValueId read = edges[queue[at].edge].read;
      auto holder =
          std::find_if(chosen.begin(), chosen.end(), [&](uint32_t e) { return edges[e].read == read; });
      if (holder != chosen.end()) {
        if (edges[*holder].write != edges[queue[at].edge].write)
          expand(edges[*holder].write, at);
        continue;
      }
      for (uint32_t step = at; step != kNone; step = queue[step].from) {
        uint32_t parent = queue[step].from;
        if (parent != kNone) { // the read of `parent` is given up by the write that takes a new one here
          auto old = std::find_if(chosen.begin(), chosen.end(), [&](uint32_t e) {
            return edges[e].read == edges[queue[parent].edge].read;
          });
          *old = queue[step].edge;
        } else {
          chosen.push_back(queue[step].edge);
        }
      }
      return true;
    }
    return false;
  }

  std::vector<InPlaceEdge> edges;
  std::vector<uint32_t> chosen; ///< indices into edges
  std::vector<uint32_t> tried;
  uint32_t round = 0;
};

} // namespace

uint64_t matchInPlace(const GraphStep &step, StepId id, const std::vector<StepId> &lastUse,
                      std::vector<InPlaceEdge> *taken) {
  if (step.inPlace.empty())
    return 0;
  if (step.inPlace.size() == 1) {
    const InPlaceEdge &edge = step.inPlace.front();
    if (lastUse[edge.read] != id)
      return 0;
    if (taken)
      taken->push_back(edge);
    return edge.bytes;
  }
  return InPlaceMatching(step, id, lastUse).solve(taken);
}

Liveness::Liveness(const Graph &graph, const std::vector<StepId> &order)
    : position(order.size()), firstUse(graph.values.size(), kNone), lastUse(graph.values.size(), kNone),
      usage(order.size()) {
  uint64_t live = 0;
  for (uint32_t p = 0; p < order.size(); ++p) {
    position[order[p]] = p;
    for (ValueId v : graph.steps[order[p]].values) {
      if (firstUse[v] == kNone)
        firstUse[v] = order[p];
      lastUse[v] = order[p];
    }
  }
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].atStart) {
      firstUse[v] = kNone;
      live += graph.values[v].bytes;
    }
    if (graph.values[v].atEnd)
      lastUse[v] = kNone;
  }
  peak = live;
  for (uint32_t p = 0; p < order.size(); ++p) {
    StepId s = order[p];
    const GraphStep &step = graph.steps[s];
    for (ValueId v : step.values)
      if (firstUse[v] == s)
        live += graph.values[v].bytes;
    usage[p] = live + step.workspace() - matchInPlace(step, s, lastUse);
    if (usage[p] > peak) {
      peak = usage[p];
      peakPosition = p;
    }
    for (ValueId v : step.values)
      if (lastUse[v] == s)
        live -= graph.values[v].bytes;
  }
}

uint64_t peakOf(const Graph &graph, const std::vector<StepId> &order) { return Liveness(graph, order).peak; }

} // namespace ortc::planning
