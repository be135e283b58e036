// An order of groups without cycles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <vector>

namespace ortc::fusion {

/// A topological order of the nodes of a graph without cycles, kept while nodes are joined (after Pearce and
/// Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2006): paths between two nodes
/// are looked for between their places only. The edges are the caller's. They may change in any way that
/// keeps the order.
class GroupOrder {
public:
  /// Calls its argument for every node that an edge leads to from `node`, as often as it likes.
  using Successors = llvm::function_ref<void(unsigned node, llvm::function_ref<void(unsigned)>)>;

  /// Nodes 0 to `count` - 1, which are in order.
  explicit GroupOrder(unsigned count);

  /// Whether a path leads from one node to another over a third one.
  bool hasIndirectPath(unsigned from, unsigned to, Successors successors);
  /// Node `b` becomes part of `a`. There must be no indirect path between them; `successors` still knows both.
  void join(unsigned a, unsigned b, Successors successors);
  /// There is an edge from `a` to `b` now, and no path the other way.
  void putBefore(unsigned a, unsigned b, Successors successors);

private:
  /// Marks everything that paths from `from` reach before place `end`, but for paths over `to`. True when a
  /// path of more than one edge reaches `to`.
  bool mark(unsigned from, unsigned to, unsigned end, Successors successors);
  bool isMarked(unsigned node) const { return marks[node] == round; }

  std::vector<unsigned> nodes;  ///< by place; kNone: the node there was joined to another
  std::vector<unsigned> places; ///< by node
  std::vector<unsigned> marks;  ///< by node: the last search that reached it
  unsigned round = 0;
  llvm::SmallVector<unsigned> stack;
};

} // namespace ortc::fusion
