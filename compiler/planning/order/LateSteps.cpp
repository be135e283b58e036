// Steps that lose nothing by waiting for the first step that needs them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Let s write values that are alive behind it, together at least as large as all that it reads and could be the last
// to read. A value of which others write a part, too, counts as read. Move s from where it stands to right before t,
// the first successor of its segment. Before s, and from t on, nothing changes: who reads what s alone writes is a
// successor.
//
// A step x between the two is no successor of s. At and behind it, what s writes is not alive yet, and of what s
// reads some may be alive that was not. At x itself a read that died there may now wait for s, so that a write in
// place of it, which is no larger, saves nothing. Each value that s reads appears in one of these at most: it either
// died at s, or it was still alive at x. So no more bytes are in use than before.
//
// At s, all is alive that was alive before t, what s frees, what it writes and nobody reads, and its workspace. At t
// the first of these was in use, too, and what t writes and its workspace on top, less what t saves in place. Where
// the latter is no smaller, s has no use above that of t. Only moves past a step that is not late are made: each puts
// one more of those in front of s, so they end. Then only late steps stand between s and t. Behind a late step no less
// is alive than before it, so in each legal order of these none has a use above that of its own first successor.
//
// A step that frees as much as it leaves runs at once, with its late ones (ExactOrder.h): those of them that another
// order has run already have not lowered what is alive.
#include "compiler/planning/order/LateSteps.h"

#include <algorithm>

namespace ortc::planning {

namespace {

/// Bytes that a step makes and takes, in any order.
struct Bytes {
  uint64_t written = 0; ///< values that it alone writes
  uint64_t kept = 0;    ///< of these, those that somebody reads
  uint64_t read = 0;    ///< of all others, those that could die at the step
  uint64_t inPlace = 0; ///< that in-place writes could save
};

Bytes bytesOf(const Graph &graph, StepId id) {
  Bytes bytes;
  const GraphStep &step = graph.steps[id];
  for (ValueId v : step.values) {
    const Value &value = graph.values[v];
    // Who writes a value alone comes before all who read it.
    bool isWriter = !value.atStart && value.writers == 1 && value.users.front() == id;
    bytes.written += isWriter ? value.bytes : 0;
    bytes.kept += isWriter && (value.users.size() > 1 || value.atEnd) ? value.bytes : 0;
    bytes.read += isWriter || value.atEnd ? 0 : value.bytes;
  }
  for (size_t i = 0; i < step.inPlace.size(); ++i) {
    ValueId write = step.inPlace[i].write;
    bool isCounted = std::any_of(step.inPlace.begin(), step.inPlace.begin() + std::ptrdiff_t(i),
                                 [&](const InPlaceEdge &edge) { return edge.write == write; });
    bytes.inPlace += isCounted ? 0 : step.inPlace[i].bytes;
  }
  return bytes;
}

} // namespace

LateSteps::LateSteps(const Graph &graph) : isLate(graph.steps.size(), false), before(graph.steps.size()) {
  std::vector<Bytes> bytes;
  for (StepId s = 0; s < graph.steps.size(); ++s)
    bytes.push_back(bytesOf(graph, s));
  for (StepId s = 0; s < graph.steps.size(); ++s) {
    const GraphStep &step = graph.steps[s];
    const Bytes &own = bytes[s];
    uint64_t extra = own.written - own.kept + own.read + step.workspace();
    bool hasSuccessor = false, isBelow = true;
    for (StepId t : step.successors) {
      if (graph.steps[t].segment != step.segment)
        continue;
      hasSuccessor = true;
      isBelow &= extra + bytes[t].inPlace <= bytes[t].written + graph.steps[t].workspace();
    }
    isLate[s] = own.kept >= own.read && hasSuccessor && isBelow;
  }
  constexpr size_t kMostListed = 64; // for each step, on average
  size_t listed = 0;
  std::vector<StepId> stack, seenBy(graph.steps.size(), kNone);
  for (StepId t = 0; t < graph.steps.size(); ++t) {
    if (isLate[t])
      continue;
    stack.assign(1, t);
    while (!stack.empty()) {
      const GraphStep &step = graph.steps[stack.back()];
      stack.pop_back();
      for (StepId s : step.predecessors)
        if (isLate[s] && graph.steps[s].segment == graph.steps[t].segment && seenBy[s] != t) {
          seenBy[s] = t;
          before[t].push_back(s);
          stack.push_back(s);
        }
    }
    listed += before[t].size();
    if (listed > kMostListed * graph.steps.size()) {
      isLate.assign(graph.steps.size(), false);
      before.assign(graph.steps.size(), {});
      return;
    }
    std::sort(before[t].begin(), before[t].end()); // the source order is legal
  }
}

} // namespace ortc::planning
