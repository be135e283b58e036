// What edits of a graph share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/onnx.pb.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ortc::frontend {

/// The names that a graph gives: of initializers, inputs and results. Those of branches and loop bodies are
/// not among them.
std::set<std::string> listNames(const proto::GraphProto &graph);

/// Calls `visit` for the graphs in the attributes of the nodes, not for those inside of these.
template <typename Visit> void visitBodies(const proto::GraphProto &graph, Visit visit) {
  for (const auto &node : graph.node())
    for (const auto &attribute : node.attribute()) {
      if (attribute.has_g())
        visit(attribute.g());
      for (const auto &body : attribute.graphs())
        visit(body);
    }
}

/// The attribute of that name, or null.
const proto::AttributeProto *findAttribute(const proto::NodeProto &node, std::string_view name);
int64_t intOf(const proto::NodeProto &node, std::string_view name, int64_t otherwise);

/// Gives names that nothing in the graph has, nor in branches and loop bodies.
class NewNames {
public:
  explicit NewNames(const proto::GraphProto &graph);

  /// `name`, or what it becomes with an ending; it is taken from now on.
  std::string make(const std::string &name);
  /// Whether a branch or a loop body has a value of its own of that name, and so cannot read one around it.
  bool isNameInside(const std::string &name) const { return inside.count(name) != 0; }

private:
  void addInside(const proto::GraphProto &graph);

  std::set<std::string> taken, inside;
  std::map<std::string, size_t> endings; ///< given so far, by name
};

/// Puts nodes in front of others: those under `n` before node n, or at the end.
void insertNodes(proto::GraphProto &graph, const std::map<int, std::vector<proto::NodeProto>> &nodes);

/// Lets the nodes of a graph read other values, in branches and loop bodies, too, where they see them. `isInside`: the
/// graph is one of these, whose outputs are reads.
void renameReads(proto::GraphProto &graph, const std::map<std::string, std::string> &renames,
                 bool isInside = false);

/// Removes what `isGone(element, index)` holds for, in one pass.
template <typename List, typename Predicate> void removeIf(List &list, Predicate isGone) {
  int kept = 0;
  for (int i = 0; i < list.size(); ++i)
    if (!isGone(list.Get(i), i))
      list.SwapElements(kept++, i);
  list.DeleteSubrange(kept, list.size() - kept);
}

/// Removes the data of a tensor, wherever the file has them.
void dropData(proto::TensorProto &tensor);

} // namespace ortc::frontend
