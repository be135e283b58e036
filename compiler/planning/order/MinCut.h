// Maximum flow and minimum cut (Dinic) with counted work.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ortc::planning {

/// A directed network. Capacities are at most kInfinite; the value of a flow must stay below 2^62.
class MinCut {
public:
  using Node = uint32_t;
  static constexpr uint64_t kInfinite = (uint64_t(1) << 63) - 1;

  /// Starts over with `nodes` nodes and no edges; keeps the memory.
  void reset(uint32_t nodes);

  /// Adds a node and returns it.
  Node addNode() { return count++; }

  void addEdge(Node from, Node to, uint64_t capacity);

  struct Flow {
    uint64_t value = 0;
    bool complete = true; ///< false: workLimit was spent; `value` is then a lower bound of the cut
  };

  /// Flow from `source` to `sink`; once per reset. Adds the edges looked at to `work`, and stops when `work`
  /// passes `workLimit`.
  Flow run(Node source, Node sink, uint64_t &work, uint64_t workLimit);

  /// After a complete run: is `node` on the source side of the smallest minimum cut?
  bool onSourceSide(Node node) const { return level[node] >= 0; }

private:
  void sortEdges();
  bool findLevels(Node source, Node sink, uint64_t &work);
  uint64_t augment(Node source, Node sink, uint64_t &work, uint64_t workLimit);

  uint32_t count = 0;
  std::vector<Node> target;       ///< per edge; edge ^ 1 is the reverse
  std::vector<uint64_t> residual; ///< per edge
  std::vector<uint32_t> first;    ///< per node: where its edges begin in `adjacent`
  std::vector<uint32_t> adjacent;
  std::vector<int32_t> level;
  std::vector<uint32_t> next;
  std::vector<Node> queue;
  std::vector<uint32_t> path;
};

} // namespace ortc::planning
