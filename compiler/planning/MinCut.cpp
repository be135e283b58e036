// Maximum flow and minimum cut (Dinic) with counted work; no recursion, paths may be as long as the graph.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/MinCut.h"

#include <algorithm>

namespace ortc::planning {

uint32_t MinCut::addEdge(Node from, Node to, uint64_t capacity) {
  uint32_t edge = uint32_t(target.size());
  target.push_back(to);
  target.push_back(from);
  capacities.push_back(capacity);
  capacities.push_back(0);
  adjacent[from].push_back(edge);
  adjacent[to].push_back(edge + 1);
  return edge;
}

bool MinCut::findLevels(Node source, Node sink, uint64_t &work) {
  level.assign(adjacent.size(), -1);
  level[source] = 0;
  queue.assign(1, source);
  for (size_t at = 0; at < queue.size(); ++at) {
    Node node = queue[at];
    work += adjacent[node].size();
    for (uint32_t edge : adjacent[node])
      if (residual[edge] > 0 && level[target[edge]] < 0) {
        level[target[edge]] = level[node] + 1;
        queue.push_back(target[edge]);
      }
  }
  return level[sink] >= 0;
}

uint64_t MinCut::augment(Node source, Node sink, uint64_t &work, uint64_t workLimit) {
  next.assign(adjacent.size(), 0);
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
    for (uint32_t &i = next[node]; i < adjacent[node].size(); ++i) {
      ++work;
      uint32_t edge = adjacent[node][i];
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
  residual = capacities;
  work += residual.size() / 8;
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
