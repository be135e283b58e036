//===- InitializerOrigins.cpp - what an exporter says about initializers --===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/InitializerOrigins.h"

#include "compiler/frontend/onnx.pb.h"

#include <string_view>

namespace ortc::frontend {

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

/// Lines such as "p_fc_weight: PARAMETER target='fc.weight'" of the signature of the exported program.
static std::map<std::string, Origin> parseSignature(std::string_view text) {
  std::map<std::string, Origin> targets;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    size_t colon = line.find(": "), target = line.find(" target=");
    if (colon == line.npos || target == line.npos || target < colon + 2)
      continue;
    Origin origin = originOf(line.substr(colon + 2, target - colon - 2));
    for (const std::string &name : parseList(line.substr(target)))
      if (origin != Origin::unknown)
        targets[name] = origin;
  }
  return targets;
}

template <typename Message> static std::string_view findMetadata(const Message &message, std::string_view key) {
  for (const auto &entry : message.metadata_props())
    if (entry.key() == key)
      return entry.value();
  return {};
}

static std::map<std::string, Origin> findSignature(const proto::GraphProto &graph) {
  return parseSignature(findMetadata(graph, "pkg.torch.export.ExportedProgram.graph_signature"));
}

std::vector<std::string> findLostParameters(const proto::GraphProto &graph) {
  std::set<std::string> present;
  for (const auto &tensor : graph.initializer())
    present.insert(tensor.name());
  for (const auto &[name, origin] : findOrigins(graph))
    present.insert(origin.foldedFrom.begin(), origin.foldedFrom.end());
  std::vector<std::string> lost;
  for (const auto &[name, origin] : findSignature(graph))
    if (origin == Origin::parameter && !present.count(name))
      lost.push_back(name);
  return lost;
}

std::map<std::string, InitializerOrigin> findOrigins(const proto::GraphProto &graph) {
  std::map<std::string, Origin> signature = findSignature(graph);
  std::map<std::string, InitializerOrigin> said;
  auto add = [&](const std::string &name, const auto &message) {
    InitializerOrigin origin;
    origin.origin = originOf(findMetadata(message, "pkg.torch.export.graph_signature.InputSpec.kind"));
    origin.foldedFrom = parseList(findMetadata(message, "pkg.onnxscript.optimizer.folded_from"));
    if (origin.origin == Origin::unknown && !origin.foldedFrom.empty() && !signature.empty()) {
      for (const std::string &source : origin.foldedFrom)
        if (auto found = signature.find(source); found != signature.end() && found->second == Origin::parameter)
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
