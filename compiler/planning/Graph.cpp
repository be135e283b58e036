// Checks a problem and brings it into normal form.
//
// Views are folded into the buffer they look into (its root): a root and its views are one value with one
// lifetime. Reads depend on every step that writes some of the bytes they cover. What a problem may not
// contain is refused here, so that no later part meets it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/Graph.h"

#include "compiler/planning/Arithmetic.h"

#include <algorithm>

namespace ortc::planning {

std::string nameBuffer(const Problem &problem, BufferId buffer) {
  return "buffer " + std::to_string(buffer) + " '" + problem.buffers[buffer].name + "'";
}

std::string nameStep(const Problem &problem, StepId step) {
  return "step " + std::to_string(step) + " '" + problem.steps[step].name + "'";
}

namespace {

/// Bytes [begin, end) of a root that `step` fills (kNone: filled before the first step).
struct Write {
  uint64_t begin, end;
  StepId step;
  BufferId buffer;
};

class GraphBuilder {
public:
  GraphBuilder(const Problem &problem, const std::vector<std::shared_ptr<const Plan>> &inner, bool useInPlace)
      : problem(problem), inner(inner), useInPlace(useInPlace) {}

  Expected<Graph> build() {
    for (auto part : {&GraphBuilder::checkBuffers, &GraphBuilder::foldViews, &GraphBuilder::checkSteps,
                      &GraphBuilder::collectWrites, &GraphBuilder::addDependencies, &GraphBuilder::makeValues,
                      &GraphBuilder::addWorkspaces}) {
      ORTC_TRY((this->*part)());
    }
    if (useInPlace)
      addInPlaceEdges();
    return std::move(graph);
  }

private:
  static Status invalid(std::string message) { return Status::refusal(std::move(message)); }

  Status checkBuffers() {
    if (problem.buffers.size() >= kNone || problem.steps.size() >= kNone)
      return Status::refusal("a problem has at most 4294967294 buffers and as many steps");
    graph.granule = kDefaultAlignment;
    for (BufferId b = 0; b < problem.buffers.size(); ++b) {
      uint64_t alignment = problem.buffers[b].alignment;
      if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > kMaxAlignment)
        return invalid(nameBuffer(problem, b) + " has alignment " + std::to_string(alignment) +
                       " but it must be a power of two, at most 1048576");
      graph.granule = std::min(graph.granule, alignment);
      graph.alignment = std::max(graph.alignment, alignment);
    }
    return {};
  }

  /// Finds root and offset of every buffer; chains of views are followed once each.
  Status foldViews() {
    size_t count = problem.buffers.size();
    std::vector<uint32_t> viewIndex(count, kNone);
    for (uint32_t i = 0; i < problem.views.size(); ++i) {
      const View &view = problem.views[i];
      if (view.view >= count || view.base >= count)
        return invalid("view " + std::to_string(i) + " names buffer " +
                       std::to_string(std::max(view.view, view.base)) + " but there are " +
                       std::to_string(count));
      if (viewIndex[view.view] != kNone)
        return invalid(nameBuffer(problem, view.view) + " is a view of two buffers");
      viewIndex[view.view] = i;
    }
    rootOf.assign(count, kNone);
    graph.offsetInValue.assign(count, 0);
    std::vector<BufferId> chain;
    for (BufferId start = 0; start < count; ++start) {
      chain.clear();
      BufferId at = start;
      while (rootOf[at] == kNone && viewIndex[at] != kNone) {
        chain.push_back(at);
        if (chain.size() > count)
          return invalid(nameBuffer(problem, start) + " is a view of itself");
        at = problem.views[viewIndex[at]].base;
      }
      if (rootOf[at] == kNone)
        rootOf[at] = at;
      for (; !chain.empty(); chain.pop_back()) {
        const View &view = problem.views[viewIndex[chain.back()]];
        const Buffer &buffer = problem.buffers[view.view], &base = problem.buffers[view.base];
        if (view.offset > base.bytes || buffer.bytes > base.bytes - view.offset)
          return invalid(nameBuffer(problem, view.view) + " has " + std::to_string(buffer.bytes) +
                         " bytes at offset " + std::to_string(view.offset) + " of " +
                         nameBuffer(problem, view.base) + " which has " + std::to_string(base.bytes));
        if (view.offset % buffer.alignment != 0)
          return invalid(nameBuffer(problem, view.view) + " starts at byte " + std::to_string(view.offset) +
                         " of " + nameBuffer(problem, view.base) + ", which breaks its alignment of " +
                         std::to_string(buffer.alignment));
        rootOf[view.view] = rootOf[view.base];
        graph.offsetInValue[view.view] = graph.offsetInValue[view.base] + view.offset;
      }
    }
    return {};
  }

  Status checkId(StepId s, BufferId b, const char *verb) const {
    if (b < problem.buffers.size())
      return {};
    return invalid(nameStep(problem, s) + " " + verb + " buffer " + std::to_string(b) + " but there are " +
                   std::to_string(problem.buffers.size()));
  }

  Status checkSteps() {
    graph.steps.resize(problem.steps.size());
    for (StepId s = 0; s < problem.steps.size(); ++s) {
      const Step &step = problem.steps[s];
      for (BufferId b : step.reads)
        ORTC_TRY(checkId(s, b, "reads"));
      for (BufferId b : step.writes)
        ORTC_TRY(checkId(s, b, "writes"));
      for (const InPlace &pair : step.inPlace) {
        if (std::find(step.reads.begin(), step.reads.end(), pair.read) == step.reads.end())
          return invalid(nameStep(problem, s) + " has an in-place read of buffer " +
                         std::to_string(pair.read) + " that it does not read");
        if (std::find(step.writes.begin(), step.writes.end(), pair.write) == step.writes.end())
          return invalid(nameStep(problem, s) + " has an in-place write of buffer " +
                         std::to_string(pair.write) + " that it does not write");
      }
      for (StepId before : step.after) {
        if (before >= s)
          return invalid(nameStep(problem, s) + " must run after step " + std::to_string(before) +
                         ", which is not earlier in the source order");
        addEdge(before, s);
      }
      if (s > 0 && step.segment < problem.steps[s - 1].segment)
        return invalid(nameStep(problem, s) + " is in segment " + std::to_string(step.segment) +
                       " but the step before it is in segment " +
                       std::to_string(problem.steps[s - 1].segment));
      graph.steps[s].segment = step.segment;
    }
    return {};
  }

  /// Sorted writes of every root; no byte is written twice.
  Status collectWrites() {
    writes.resize(problem.buffers.size());
    std::vector<StepId> writer(problem.buffers.size(), kNone);
    auto add = [&](BufferId b, StepId s) {
      uint64_t begin = graph.offsetInValue[b];
      writes[rootOf[b]].push_back({begin, begin + problem.buffers[b].bytes, s, b});
    };
    for (BufferId b = 0; b < problem.buffers.size(); ++b)
      if (problem.buffers[b].aliveAtStart && problem.buffers[b].bytes > 0)
        add(b, kNone);
    for (StepId s = 0; s < problem.steps.size(); ++s)
      for (BufferId b : problem.steps[s].writes) {
        if (problem.buffers[b].bytes == 0 && (writer[b] != kNone || problem.buffers[b].aliveAtStart))
          return writtenTwice(b, b, writer[b], s);
        writer[b] = s;
        if (problem.buffers[b].bytes > 0)
          add(b, s);
      }
    emptyWriter = std::move(writer);
    for (std::vector<Write> &list : writes) {
      std::sort(list.begin(), list.end(), [](const Write &x, const Write &y) {
        return x.begin != y.begin ? x.begin < y.begin : x.buffer < y.buffer;
      });
      // aliveAtStart may be said of a buffer and of views of it: one write covering the other.
      const Write *last = nullptr;
      for (const Write &write : list) {
        bool atStart = write.step == kNone;
        if (last && write.begin < last->end && !(atStart && last->step == kNone))
          return writtenTwice(last->buffer, write.buffer, last->step, write.step);
        if (!last || write.end >= last->end)
          last = &write;
      }
    }
    return {};
  }

  Status writtenTwice(BufferId first, BufferId second, StepId firstStep, StepId secondStep) const {
    auto who = [&](StepId s) { return s == kNone ? std::string("the start") : nameStep(problem, s); };
    return invalid(nameBuffer(problem, second) + " is written by " + who(secondStep) +
                   " but its bytes are written by " + who(firstStep) + " already (" +
                   nameBuffer(problem, first) + ")");
  }

  /// Calls `visit` with the writes that overlap the bytes of `b`.
  template <typename Visit> void overlapping(BufferId b, Visit visit) const {
    const std::vector<Write> &list = writes[rootOf[b]];
    uint64_t begin = graph.offsetInValue[b], end = begin + problem.buffers[b].bytes;
    // Writes are disjoint unless they are of the start, so ends rise too: at most a few are visited idly.
    auto at = std::partition_point(list.begin(), list.end(), [&](const Write &w) { return w.begin < end; });
    while (at != list.begin()) {
      --at;
      if (at->end > begin)
        visit(*at);
      else if (at->step != kNone)
        break;
    }
  }

  Status addDependencies() {
    for (StepId s = 0; s < problem.steps.size(); ++s)
      for (BufferId b : problem.steps[s].reads) {
        bool found = false;
        StepId late = kNone;
        auto visit = [&](const Write &write) {
          found = true;
          if (write.step == kNone)
            return;
          if (write.step >= s)
            late = write.step;
          else
            addEdge(write.step, s);
        };
        if (problem.buffers[b].bytes == 0) {
          found = true; // no bytes to wait for, but the step that "writes" them still comes first
          if (emptyWriter[b] != kNone)
            visit({0, 0, emptyWriter[b], b});
        } else {
          overlapping(b, visit);
        }
        if (late != kNone)
          return invalid(nameStep(problem, s) + " reads " + nameBuffer(problem, b) + " which " +
                         nameStep(problem, late) + " has not written yet");
        if (!found)
          return invalid(nameStep(problem, s) + " reads " + nameBuffer(problem, b) + " which nothing writes");
      }
    for (GraphStep &step : graph.steps)
      for (std::vector<StepId> *list : {&step.predecessors, &step.successors}) {
        std::sort(list->begin(), list->end());
        list->erase(std::unique(list->begin(), list->end()), list->end());
      }
    return {};
  }

  Status makeValues() {
    size_t count = problem.buffers.size();
    std::vector<ValueId> ofRoot(count, kNone);
    graph.valueOf.assign(count, kNone);
    std::vector<bool> used(count, false);
    for (const Step &step : problem.steps)
      for (const auto *list : {&step.reads, &step.writes})
        for (BufferId b : *list)
          used[rootOf[b]] = true;
    for (BufferId b = 0; b < count; ++b) {
      const Buffer &buffer = problem.buffers[b];
      if (buffer.aliveAtEnd && buffer.bytes > 0) {
        bool written = false;
        overlapping(b, [&](const Write &) { written = true; });
        if (!written)
          return invalid(nameBuffer(problem, b) + " is alive at the end but nothing writes it");
      }
      if (buffer.aliveAtStart || buffer.aliveAtEnd)
        used[rootOf[b]] = true;
    }
    for (BufferId b = 0; b < count; ++b) {
      BufferId root = rootOf[b];
      const Buffer &buffer = problem.buffers[b];
      if (!used[root] || problem.buffers[root].bytes == 0)
        continue;
      if (ofRoot[root] == kNone) {
        uint64_t bytes = problem.buffers[root].bytes;
        if (bytes > kMaxTotalBytes || !addBytes(graph.totalBytes, alignUp(bytes, graph.granule)))
          return Status::refusal(nameBuffer(problem, root) + " of " + std::to_string(bytes) +
                                 " bytes takes the sum of all sizes above 4611686018427387904");
        ofRoot[root] = ValueId(graph.values.size());
        graph.values.push_back({root, alignUp(bytes, graph.granule), 1, false, false, 0, {}});
      }
      Value &value = graph.values[ofRoot[root]];
      graph.valueOf[b] = ofRoot[root];
      value.alignment = std::max(value.alignment, buffer.alignment);
      value.atStart |= buffer.aliveAtStart;
      value.atEnd |= buffer.aliveAtEnd;
    }
    for (StepId s = 0; s < problem.steps.size(); ++s) {
      const Step &step = problem.steps[s];
      std::vector<ValueId> &touched = graph.steps[s].values;
      for (const auto *list : {&step.writes, &step.reads}) {
        for (BufferId b : *list)
          if (problem.buffers[b].bytes > 0)
            touched.push_back(graph.valueOf[b]);
        std::sort(touched.begin(), touched.end());
        touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
        if (list == &step.writes)
          for (ValueId v : touched)
            ++graph.values[v].writers;
      }
      for (ValueId v : touched)
        graph.values[v].users.push_back(s);
    }
    for (Value &value : graph.values)
      if (value.users.empty())
        value.atEnd = true; // alive at the start and never read: see Buffer::aliveAtStart
    return {};
  }

  Status addWorkspaces() {
    for (StepId s = 0; s < problem.steps.size(); ++s) {
      GraphStep &step = graph.steps[s];
      uint64_t workspace = problem.steps[s].workspace, body = inner[s] ? inner[s]->arenaBytes : 0;
      bool fits = workspace <= kMaxTotalBytes && body <= kMaxTotalBytes;
      if (fits) {
        step.workspaceBytes = alignUp(workspace, graph.granule);
        step.innerBytes = alignUp(body, graph.granule);
        fits = addBytes(graph.totalBytes, step.workspaceBytes) && addBytes(graph.totalBytes, step.innerBytes);
      }
      if (!fits)
        return Status::refusal("the workspace of " + nameStep(problem, s) +
                               " takes the sum of all sizes above 4611686018427387904");
      if (inner[s])
        step.innerAlignment = inner[s]->arenaAlignment;
      graph.alignment = std::max(graph.alignment, step.innerAlignment);
    }
    return {};
  }

  /// Keeps the candidates that can be legal at all: both start their value, the write fits, and no other
  /// operand of the step lies in the bytes that would be overwritten.
  void addInPlaceEdges() {
    for (StepId s = 0; s < problem.steps.size(); ++s) {
      const Step &step = problem.steps[s];
      std::vector<InPlaceEdge> &edges = graph.steps[s].inPlace;
      for (uint32_t c = 0; c < step.inPlace.size(); ++c) {
        auto [read, write] = step.inPlace[c];
        ValueId from = graph.valueOf[read], to = graph.valueOf[write];
        uint64_t bytes = problem.buffers[write].bytes;
        if (bytes == 0 || bytes > problem.buffers[read].bytes || from == to || rootOf[write] != write ||
            graph.offsetInValue[read] != 0)
          continue;
        bool shared = false;
        for (const auto *list : {&step.reads, &step.writes})
          for (BufferId other : *list)
            shared |= other != read && rootOf[other] == rootOf[read] && problem.buffers[other].bytes > 0 &&
                      graph.offsetInValue[other] < bytes;
        if (!shared)
          edges.push_back({from, to, graph.values[to].bytes, c});
      }
      std::sort(edges.begin(), edges.end(), [&](const InPlaceEdge &x, const InPlaceEdge &y) {
        if (x.bytes != y.bytes)
          return x.bytes > y.bytes;
        uint64_t left = graph.values[x.read].bytes, right = graph.values[y.read].bytes;
        return left != right ? left < right : x.candidate < y.candidate;
      });
    }
  }

  void addEdge(StepId from, StepId to) {
    graph.steps[from].successors.push_back(to);
    graph.steps[to].predecessors.push_back(from);
  }

  const Problem &problem;
  const std::vector<std::shared_ptr<const Plan>> &inner;
  bool useInPlace;
  Graph graph;
  std::vector<BufferId> rootOf;
  std::vector<StepId> emptyWriter; ///< per buffer: the step that writes it
  std::vector<std::vector<Write>> writes;
};

} // namespace

Expected<Graph> buildGraph(const Problem &problem, const std::vector<std::shared_ptr<const Plan>> &inner,
                           bool useInPlace) {
  return GraphBuilder(problem, inner, useInPlace).build();
}

} // namespace ortc::planning
