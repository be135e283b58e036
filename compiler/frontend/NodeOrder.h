// Topological order of the nodes of a graph.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/onnx.pb.h"
#include "support/Status.h"

#include <string_view>
#include <unordered_set>

namespace ortc::frontend {

/// Sorts nodes so that every value stands before its uses, those in graph attributes included. An order that
/// is already valid is kept; otherwise the earliest node of the file that is ready comes next. Names nothing
/// in `nodes` produces are no dependencies. Output names are distinct. Fails on a cycle and names its nodes.
/// O(names + nodes log nodes); graph attributes are read once for each graph around them.
Status sortNodes(google::protobuf::RepeatedPtrField<proto::NodeProto> &nodes);

/// The names that branches and loop bodies in attributes of the nodes take from the graph, or from around it.
std::unordered_set<std::string_view> findNamesReadInside(const proto::GraphProto &graph);

} // namespace ortc::frontend
