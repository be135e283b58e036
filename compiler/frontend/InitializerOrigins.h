// What an exporter says about initializers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's exporter writes down which values of the exported program are parameters and which are buffers, and its
// optimizer from which values a folded initializer was computed.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace ortc::proto {
class GraphProto;
class NodeProto;
} // namespace ortc::proto

namespace ortc::frontend {

enum class Origin {
  unknown,
  parameter, ///< a parameter, or computed from one
  buffer,
  constant, ///< of the program, or computed from buffers and constants alone
};

struct InitializerOrigin {
  Origin origin = Origin::unknown;
  std::set<std::string> foldedFrom; ///< the values that it was computed from, directly or not
  std::set<std::string> parameters; ///< those of them that are parameters of the exported program
};

/// What the metadata of the graph says about its initializers; those about which it says nothing are left out.
std::map<std::string, InitializerOrigin> findOrigins(const proto::GraphProto &graph);

/// The parameters (and buffers, when asked for) of the exported program that are no initializers, and that
/// none was computed from.
std::vector<std::string> findLostParameters(const proto::GraphProto &graph, bool buffers = false);

/// A node's place in the exported program.
struct TracedOperation {
  std::string text;   ///< the same for all nodes that the operation became; empty where nothing is said
  std::string result; ///< its name in the program
  std::string target; ///< "torch.ops.aten.embedding.default"
  std::vector<std::string> positional; ///< its arguments as they are written: "%x", "None", "0.1"
  std::vector<std::string>
      arguments; ///< results, parameters and inputs of the program that it takes, in their order
  std::vector<std::string> parameters; ///< the names of the parameters and buffers among them, each once
};
/// The note on one node, without the names of parameters.
TracedOperation findOperation(const proto::NodeProto &node);
/// One for each node.
std::vector<TracedOperation> findOperations(const proto::GraphProto &graph);

/// The names that the exported program has for what goes in and out.
struct TracedSignature {
  std::map<std::string, std::string>
      parameters;                           ///< and buffers and constants: their names in the file, by name
  std::vector<std::string> inputs, outputs; ///< of the model, in their order
};
TracedSignature findSignature(const proto::GraphProto &graph);

} // namespace ortc::frontend
