// Operators that choose gradients, as the standard has them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/export/export_gradients.h"

#include <map>
#include <string>

#include "compiler/frontend/GradientMarks.h"
#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/OwnOperators.h"

namespace ortc::engine {

namespace {

/// Lines of the metadata, by key.
using Marks = std::map<std::string, std::string>;

} // namespace

static void addLine(Marks &marks, const char *key, const std::string &line) {
  std::string &text = marks[key];
  text += (text.empty() ? "" : "\n") + line;
}

template <typename Nodes> static void replaceNodes(Nodes &nodes, Marks &marks, bool &keepsDomain) {
  for (proto::NodeProto &node : nodes) {
    for (auto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        replaceNodes(*attribute.mutable_g()->mutable_node(), marks, keepsDomain);
      for (auto &body : *attribute.mutable_graphs())
        replaceNodes(*body.mutable_node(), marks, keepsDomain);
    }
    if (node.domain() != frontend::kOwnDomain || node.output_size() == 0 || node.input_size() == 0)
      continue;
    const std::string &output = node.output(0);
    if (frontend::isOwn(node, frontend::kDetach)) {
      addLine(marks, frontend::kDetachedKey, output);
      node.set_op_type("Identity");
    } else if (frontend::isOwn(node, frontend::kStraightThrough)) {
      addLine(marks, frontend::kStraightThroughKey, output + "=" + node.input(node.input_size() - 1));
      node.mutable_input()->DeleteSubrange(1, node.input_size() - 1);
      node.set_op_type("Identity");
    } else if (frontend::isOwn(node, frontend::kEmbedding)) {
      addLine(marks, frontend::kPaddingKey,
              output + "=" + std::to_string(frontend::intOf(node, frontend::kPaddingRow, 0)));
      node.clear_attribute();
      node.set_op_type("Gather");
    } else {
      keepsDomain = true;
      continue;
    }
    node.clear_domain();
  }
}

void writeChosenGradients(proto::ModelProto &model) {
  Marks marks;
  bool keepsDomain = false;
  replaceNodes(*model.mutable_graph()->mutable_node(), marks, keepsDomain);
  for (auto &function : *model.mutable_functions()) {
    bool keepsInside = false;
    replaceNodes(*function.mutable_node(), marks, keepsInside);
    if (!keepsInside)
      frontend::dropOwnDomain(function);
    keepsDomain |= keepsInside;
  }
  if (!keepsDomain)
    frontend::dropOwnDomain(model);
  for (const auto &[key, lines] : marks) {
    proto::StringStringEntryProto *entry = nullptr;
    for (auto &each : *model.mutable_metadata_props())
      if (each.key() == key)
        entry = &each;
    if (!entry) {
      entry = model.add_metadata_props();
      entry->set_key(key);
    }
    std::string text = entry->value();
    entry->set_value(text + (text.empty() || text.back() == '\n' ? "" : "\n") + lines);
  }
}

} // namespace ortc::engine
