// The text of a model.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One walk over the messages that hold text. Depth is bounded because protobuf limits the nesting of messages
// it parses.
#include "compiler/frontend/NameChecker.h"

#include "compiler/frontend/onnx.pb.h"

#include <algorithm>
#include <cstdint>

namespace ortc::frontend {

/// Bytes of the character that `bytes` begin with; 0 when it is none.
static size_t characterSize(std::string_view bytes) {
  auto at = [&](size_t i) -> uint32_t { return static_cast<unsigned char>(bytes[i]); };
  uint32_t first = at(0);
  if (first < 0x80)
    return first ? 1 : 0;
  size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes.size() < size)
    return 0;
  uint32_t code = first & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xc0) != 0x80)
      return 0;
    code = code << 6 | (at(i) & 0x3f);
  }
  bool isShort = size == 3 ? code >= 0x800 : size == 4 ? code >= 0x10000 : true;
  return isShort && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? size : 0;
}

bool isText(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t size = characterSize(bytes);
    if (!size)
      return false;
    bytes.remove_prefix(size);
  }
  return true;
}

std::string printable(std::string_view bytes) {
  static const char *kDigits = "0123456789abcdef";
  std::string text;
  while (!bytes.empty()) {
    size_t size = characterSize(bytes);
    auto byte = static_cast<unsigned char>(bytes[0]);
    if (size && byte >= 0x20 && byte != 0x7f)
      text += bytes.substr(0, size);
    else
      text += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    bytes.remove_prefix(size ? size : 1);
  }
  return text;
}

/// The first characters of a text, and whether there are more, as a message may show them.
static std::string beginning(std::string_view text, size_t characters) {
  size_t end = 0;
  for (; characters > 0 && end < text.size(); --characters)
    end += std::max<size_t>(characterSize(text.substr(end)), 1);
  return printable(text.substr(0, end)) + (end < text.size() ? "..." : "");
}

namespace {

/// Finds the first text that is none, or the first name that is too long.
class NameChecker {
public:
  Status model(const proto::ModelProto &model) {
    name("the producer's name", model.producer_name());
    name("the producer's version", model.producer_version());
    name("the domain of the model", model.domain());
    opsets(model.opset_import());
    metadata(model.metadata_props());
    for (const proto::FunctionProto &function : model.functions())
      this->function(function);
    graph(model.graph());
    return std::move(status);
  }

private:
  void name(const char *what, const std::string &bytes) {
    if (status.isOk() && bytes.size() > kMostNameBytes)
      status = Status::refusal(std::string(what) + " '" + beginning(bytes, 40) + "': names have at most " +
                               std::to_string(kMostNameBytes) + " bytes, this one has " +
                               std::to_string(bytes.size()) + "; rename it, or export the model again");
    text(what, bytes);
  }

  void text(const char *what, const std::string &bytes) {
    if (status.isOk() && !isText(bytes))
      status = Status::refusal(std::string(what) + " '" + beginning(bytes, 200) +
                               "' is not text in UTF-8; rename it, or export the model again");
  }

  template <typename Names> void names(const char *what, const Names &names) {
    for (const std::string &each : names)
      name(what, each);
  }

  template <typename Imports> void opsets(const Imports &imports) {
    for (const proto::OperatorSetIdProto &import : imports)
      name("the domain of an opset", import.domain());
  }

  template <typename Entries> void metadata(const Entries &entries) {
    for (const proto::StringStringEntryProto &entry : entries) {
      name("the key of metadata", entry.key());
      text("the value of metadata", entry.value());
      if (entry.key().rfind("ortc.", 0) == 0)
        lines(entry.key(), entry.value());
    }
  }

  /// Lines of what is ours hold a name, or two around "=".
  void lines(const std::string &key, std::string_view value) {
    constexpr size_t kMost = 2 * kMostNameBytes + 1;
    for (std::string_view rest = value; status.isOk() && !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      if (line.size() > kMost)
        status =
            Status::refusal(printable(key) + " of the model has a line of " + std::to_string(line.size()) +
                            " bytes, '" + beginning(line, 40) + "', but two names have at most " +
                            std::to_string(kMost) + "; a line has one name, or two around '='");
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
  }

  void shape(const proto::TensorShapeProto &shape) {
    for (const proto::TensorShapeProto::Dimension &dim : shape.dim()) {
      name("the dimension", dim.dim_param());
      name("the denotation", dim.denotation());
    }
  }

  void type(const proto::TypeProto &type) {
    name("the denotation", type.denotation());
    if (type.has_tensor_type())
      shape(type.tensor_type().shape());
    if (type.has_sparse_tensor_type())
      shape(type.sparse_tensor_type().shape());
    if (type.has_sequence_type())
      this->type(type.sequence_type().elem_type());
    if (type.has_optional_type())
      this->type(type.optional_type().elem_type());
    if (type.has_map_type())
      this->type(type.map_type().value_type());
    if (type.has_opaque_type()) {
      name("the domain of a type", type.opaque_type().domain());
      name("the name of a type", type.opaque_type().name());
    }
  }

  template <typename Values> void values(const char *what, const Values &values) {
    for (const proto::ValueInfoProto &value : values) {
      name(what, value.name());
      type(value.type());
    }
  }

  void attribute(const proto::AttributeProto &attribute) {
    name("the attribute", attribute.name());
    name("the attribute", attribute.ref_attr_name());
    text("the string of an attribute", attribute.s());
    for (const std::string &each : attribute.strings())
      text("the string of an attribute", each);
    name("the tensor", attribute.t().name());
    for (const proto::TensorProto &tensor : attribute.tensors())
      name("the tensor", tensor.name());
    if (attribute.has_tp())
      type(attribute.tp());
    for (const proto::TypeProto &each : attribute.type_protos())
      type(each);
    if (attribute.has_g())
      graph(attribute.g());
    for (const proto::GraphProto &each : attribute.graphs())
      graph(each);
  }

  template <typename Nodes> void nodes(const Nodes &nodes) {
    for (const proto::NodeProto &node : nodes) {
      name("the node name", node.name());
      name("the operator", node.op_type());
      name("the domain", node.domain());
      name("the overload", node.overload());
      names("the input", node.input());
      names("the output", node.output());
      metadata(node.metadata_props());
      for (const proto::AttributeProto &each : node.attribute())
        attribute(each);
    }
  }

  void function(const proto::FunctionProto &function) {
    name("the function", function.name());
    name("the domain", function.domain());
    name("the overload", function.overload());
    names("the input", function.input());
    names("the output", function.output());
    names("the attribute", function.attribute());
    for (const proto::AttributeProto &each : function.attribute_proto())
      attribute(each);
    opsets(function.opset_import());
    values("the value", function.value_info());
    metadata(function.metadata_props());
    nodes(function.node());
  }

  void graph(const proto::GraphProto &graph) {
    name("the graph", graph.name());
    values("the input", graph.input());
    values("the output", graph.output());
    values("the value", graph.value_info());
    for (const proto::TensorProto &tensor : graph.initializer())
      name("the initializer", tensor.name());
    for (const proto::SparseTensorProto &tensor : graph.sparse_initializer())
      name("the initializer", tensor.values().name());
    metadata(graph.metadata_props());
    nodes(graph.node());
  }

  Status status;
};

} // namespace

Status checkNames(const proto::ModelProto &model) { return NameChecker().model(model); }

} // namespace ortc::frontend
