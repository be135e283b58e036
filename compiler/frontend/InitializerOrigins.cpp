// What an exporter says about initializers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/InitializerOrigins.h"

#include "compiler/frontend/Metadata.h"
#include "compiler/frontend/onnx.pb.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace ortc::frontend {

constexpr char kSignatureKey[] = "pkg.torch.export.ExportedProgram.graph_signature";

static Origin originOf(std::string_view kind) {
  return kind == "PARAMETER"         ? Origin::parameter
         : kind == "BUFFER"          ? Origin::buffer
         : kind == "CONSTANT_TENSOR" ? Origin::constant
                                     : Origin::unknown;
}

/// The strings of a list as Python writes it: ['a', "b"]. What follows an escaped character is taken as it is.
static std::set<std::string> parseList(std::string_view text) {
  std::set<std::string> items;
  for (size_t at = 0; at < text.size(); ++at) {
    char quote = text[at];
    if (quote != '\'' && quote != '"')
      continue;
    std::string item;
    for (++at; at < text.size() && text[at] != quote; ++at) {
      at += text[at] == '\\' && at + 1 < text.size();
      item += text[at];
    }
    items.insert(std::move(item));
  }
  return items;
}

/// A parameter or buffer of the exported program.
struct Target {
  std::string argument, name; ///< "p_fc_weight", "fc.weight"
  Origin origin;
};

/// Lines such as "p_fc_weight: PARAMETER target='fc.weight'" of the signature of the exported program.
static std::vector<Target> findTargets(const proto::GraphProto &graph) {
  std::vector<Target> targets;
  std::string_view text = findMetadata(graph, kSignatureKey);
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    size_t colon = line.find(": "), target = line.find(" target=");
    if (colon == line.npos || target == line.npos || target < colon + 2)
      continue;
    Origin origin = originOf(line.substr(colon + 2, target - colon - 2));
    for (const std::string &name : parseList(line.substr(target)))
      if (origin != Origin::unknown)
        targets.push_back({std::string(line.substr(0, colon)), name, origin});
  }
  return targets;
}

std::vector<std::string> findLostParameters(const proto::GraphProto &graph, bool buffers) {
  std::set<std::string> present;
  for (const auto &tensor : graph.initializer())
    present.insert(tensor.name());
  for (const auto &[name, origin] : findOrigins(graph))
    present.insert(origin.foldedFrom.begin(), origin.foldedFrom.end());
  std::vector<std::string> lost;
  for (const Target &target : findTargets(graph))
    if ((target.origin == Origin::parameter || (buffers && target.origin == Origin::buffer)) &&
        !present.count(target.name))
      lost.push_back(target.name);
  return lost;
}

/// The names behind the percent signs of a text: "mul", "p_fc_weight".
static std::vector<std::string> findReferences(std::string_view text) {
  std::vector<std::string> names;
  for (size_t at = text.find('%'); at != text.npos; at = text.find('%', at + 1)) {
    size_t end = at + 1;
    while (end < text.size() && (isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
      ++end;
    names.emplace_back(text.substr(at + 1, end - at - 1));
  }
  return names;
}

/// "(%x, [1, 2], None), kwargs = {}" has "%x", "[1, 2]" and "None".
static std::vector<std::string> splitTuple(std::string_view text) {
  std::vector<std::string> items;
  int depth = 0;
  std::string item;
  for (char c : text) {
    bool isOpen = c == '(' || c == '[' || c == '{', isClosed = c == ')' || c == ']' || c == '}';
    depth += isOpen - isClosed;
    if ((depth == 1 && c == ',') || (depth == 0 && isClosed)) {
      if (!item.empty())
        items.push_back(std::move(item));
      item.clear();
    } else if (depth > 1 || (!isOpen && (c != ' ' || !item.empty()))) {
      item += c;
    }
    if (depth <= 0)
      break;
  }
  return items;
}

/// "%add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%mul, %x), kwargs = {})".
TracedOperation findOperation(const proto::NodeProto &node) {
  constexpr std::string_view kTarget = "[target=", kArguments = "](args = ";
  std::string_view text = findMetadata(node, "pkg.torch.onnx.fx_node");
  TracedOperation operation;
  operation.text = text;
  if (std::vector<std::string> names = findReferences(text.substr(0, text.find(" : "))); !names.empty())
    operation.result = names.front();
  size_t target = text.find(kTarget), arguments = text.find(kArguments);
  if (target != text.npos && arguments != text.npos && target < arguments) {
    target += kTarget.size();
    operation.target = text.substr(target, arguments - target);
    text.remove_prefix(arguments);
    operation.positional = splitTuple(text.substr(kArguments.size()));
  }
  operation.arguments = findReferences(text);
  return operation;
}

std::vector<TracedOperation> findOperations(const proto::GraphProto &graph) {
  std::map<std::string, std::string> names; // by argument
  for (Target &target : findTargets(graph))
    names[target.argument] = target.name;
  std::vector<TracedOperation> operations;
  for (const auto &node : graph.node()) {
    TracedOperation &operation = operations.emplace_back(findOperation(node));
    std::set<std::string> seen;
    for (const std::string &argument : operation.arguments)
      if (auto found = names.find(argument); found != names.end() && seen.insert(found->second).second)
        operation.parameters.push_back(found->second);
  }
  return operations;
}

TracedSignature findSignature(const proto::GraphProto &graph) {
  TracedSignature signature;
  for (Target &target : findTargets(graph))
    signature.parameters[target.argument] = target.name;
  std::string_view text = findMetadata(graph, kSignatureKey);
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    size_t colon = line.find(": ");
    if (colon == line.npos)
      continue;
    if (std::string_view kind = line.substr(colon + 2); kind == "USER_INPUT")
      signature.inputs.emplace_back(line.substr(0, colon));
    else if (kind == "USER_OUTPUT")
      signature.outputs.emplace_back(line.substr(0, colon));
  }
  return signature;
}

std::map<std::string, InitializerOrigin> findOrigins(const proto::GraphProto &graph) {
  std::map<std::string, Origin> signature;
  for (Target &target : findTargets(graph))
    signature[target.name] = target.origin;
  std::map<std::string, InitializerOrigin> said;
  auto add = [&](const std::string &name, const auto &message) {
    InitializerOrigin origin;
    origin.origin = originOf(findMetadata(message, "pkg.torch.export.graph_signature.InputSpec.kind"));
    origin.foldedFrom = parseList(findMetadata(message, "pkg.onnxscript.optimizer.folded_from"));
    if (origin.origin == Origin::unknown && !origin.foldedFrom.empty() && !signature.empty()) {
      for (const std::string &source : origin.foldedFrom)
        if (auto found = signature.find(source);
            found != signature.end() && found->second == Origin::parameter)
          origin.parameters.insert(source);
      origin.origin = origin.parameters.empty() ? Origin::constant : Origin::parameter;
    }
    if (origin.origin != Origin::unknown || !origin.foldedFrom.empty())
      said.insert_or_assign(name, std::move(origin));
  };
  for (const auto &value : graph.value_info())
    add(value.name(), value);
  for (const auto &input : graph.input())
    add(input.name(), input);
  std::map<std::string, InitializerOrigin> result;
  for (const auto &tensor : graph.initializer()) {
    add(tensor.name(), tensor);
    if (auto found = said.find(tensor.name()); found != said.end())
      result.insert(*found);
  }
  return result;
}

} // namespace ortc::frontend
