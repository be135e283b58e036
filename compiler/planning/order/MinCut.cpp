// Maximum flow and minimum cut (Dinic) with counted work; no recursion, paths may be as long as the graph.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/order/MinCut.h"

#include <algorithm>

namespace ortc::planning {

void MinCut::reset(uint32_t nodes) {
  count = nodes;
  target.clear();
  residual.clear();
}

void MinCut::addEdge(Node from, Node to, uint64_t capacity) {
  target.push_back(to);
  target.push_back(from);
  residual.push_back(capacity);
  residual.push_back(0);
}

/// Lists the edges of every node, in the order they were added.
void MinCut::sortEdges() {
  first.assign(count + 1, 0);
  for (uint32_t edge = 0; edge < target.size(); ++edge)
    ++first[target[edge ^ 1] + 1];
  for (Node node = 0; node < count; ++node)
    first[node + 1] += first[node];
  adjacent.resize(target.size());
  next.assign(first.begin(), first.end() - 1);
  for (uint32_t edge = 0; edge < target.size(); ++edge)
    adjacent[next[target[edge ^ 1]]++] = edge;
}

bool MinCut::findLevels(Node source, Node sink, uint64_t &work) {
  level.assign(count, -1);
  level[source] = 0;
  queue.assign(1, source);
  work += count / 8;
  for (size_t at = 0; at < queue.size(); ++at) {
    Node node = queue[at];
    work += 1 + first[node + 1] - first[node];
    for (uint32_t i = first[node]; i < first[node + 1]; ++i) {
      uint32_t edge = adjacent[i];
      if (residual[edge] > 0 && level[target[edge]] < 0) {
        level[target[edge]] = level[node] + 1;
        queue.push_back(target[edge]);
      }
    }
  }
  return level[sink] >= 0;
}

uint64_t MinCut::augment(Node source, Node sink, uint64_t &work, uint64_t workLimit) {
  next.assign(first.begin(), first.end() - 1);
  uint64_t total = 0;
  path.clear();
  Node node = source;
  while (work <= workLimit) {
    if (node == sink) {
      uint64_t bottleneck = kInfinite;
      for (uint32_t edge : path)
        bottleneck = std::min(bottleneck, residual[edge]);
      size_t keep = path.size();
      for (size_t i = path.size(); i-- > 0;) {
        residual[path[i]] -= bottleneck;
        residual[path[i] ^ 1] += bottleneck;
        if (residual[path[i]] == 0)
          keep = i;
      }
      work += path.size();
      total += bottleneck;
      node = target[path[keep] ^ 1];
      path.resize(keep);
      continue;
    }
    bool advanced = false;
    for (uint32_t &i = next[node]; i < first[node + 1]; ++i) {
      ++work;
      uint32_t edge = adjacent[i];
      if (residual[edge] > 0 && level[target[edge]] == level[node] + 1) {
        path.push_back(edge);
        node = target[edge];
        advanced = true;
        break;
      }
    }
    if (advanced)
      continue;
    if (node == source)
      break;
    node = target[path.back() ^ 1];
    path.pop_back();
    ++next[node];
  }
  return total;
}

MinCut::Flow MinCut::run(Node source, Node sink, uint64_t &work, uint64_t workLimit) {
  Flow flow;
  sortEdges();
  work += 2 * target.size();
  while (findLevels(source, sink, work)) {
    flow.value += augment(source, sink, work, workLimit);
    if (work > workLimit) {
      flow.complete = false;
      return flow;
    }
  }
  return flow;
}

} // namespace ortc::planning
