// Faults of exporters in nodes, and the way round them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace ortc::proto {
class NodeProto;
} // namespace ortc::proto

namespace ortc::frontend {

/// The known fault of an exporter in a node of that kind, whatever its operands are; empty for most.
std::string findExporterFault(const proto::NodeProto &node);

/// The same for a node with more operands or results than its operator has, to follow what is wrong; empty for most.
std::string explainArity(const proto::NodeProto &node);

} // namespace ortc::frontend
