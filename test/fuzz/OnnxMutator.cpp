// Mutations of models as models. Flipped bytes seldom leave a message that parses, and hardly ever one whose
// names resolve.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/onnx.pb.h"
#include "dialects/onnx/OnnxOperators.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t most);

namespace ortc::fuzz {
namespace {

using namespace proto;

class Mutator {
public:
  explicit Mutator(unsigned seed) : random(seed) {}

  void mutate(ModelProto &model) {
    root = model.mutable_graph();
    collect(*root);
    for (FunctionProto &function : *model.mutable_functions())
      collectNodes(*function.mutable_node());
    for (size_t edits = 1 + pick(3); edits > 0; --edits)
      if (nodes.empty() || pick(8) == 0)
        mutateFrame(model);
      else if (pick(4) == 0)
        mutateGraph(*graphs[pick(graphs.size())]);
      else
        mutateNode(*nodes[pick(nodes.size())]);
  }

private:
  size_t pick(size_t count) { return count ? size_t(random()) % count : 0; }

  /// Numbers near which mistakes are.
  int64_t number() {
    static const int64_t kNumbers[] = {0,
                                       1,
                                       -1,
                                       2,
                                       3,
                                       4,
                                       7,
                                       8,
                                       -2,
                                       16,
                                       255,
                                       1024,
                                       65536,
                                       INT32_MAX,
                                       INT32_MIN,
                                       INT64_MAX,
                                       INT64_MIN,
                                       int64_t(1) << 32,
                                       int64_t(1) << 62};
    return kNumbers[pick(std::size(kNumbers))];
  }
  float real() {
    static const float kReals[] = {0, 1, -1, 0.5f, 1e-6f, 1e30f, -1e30f, INFINITY, NAN};
    return kReals[pick(std::size(kReals))];
  }

  void collect(GraphProto &graph) {
    graphs.push_back(&graph);
    for (const ValueInfoProto &input : graph.input())
      names.push_back(input.name());
    for (const TensorProto &tensor : graph.initializer())
      names.push_back(tensor.name());
    collectNodes(*graph.mutable_node());
  }
  template <typename Nodes> void collectNodes(Nodes &list) {
    for (NodeProto &node : list) {
      nodes.push_back(&node);
      for (const std::string &output : node.output())
        names.push_back(output);
      for (AttributeProto &attribute : *node.mutable_attribute())
        if (attribute.has_g())
          collect(*attribute.mutable_g());
    }
  }
  /// After something was erased: what was collected may have been in it.
  void collectAnew() {
    graphs.clear();
    nodes.clear();
    collect(*root);
  }
  std::string name() { return names.empty() || pick(6) == 0 ? "" : names[pick(names.size())]; }

  template <typename Field> static void erase(Field &field, size_t at) {
    for (; int(at) + 1 < field.size(); ++at)
      field.SwapElements(int(at), int(at) + 1);
    field.RemoveLast();
  }

  /// What every model has around its graph.
  void mutateFrame(ModelProto &model) {
    if (model.opset_import_size() == 0)
      model.add_opset_import();
    if (pick(2) == 0)
      model.mutable_opset_import(int(pick(model.opset_import_size())))
          ->set_version(onnx::kOldestOpset + int64_t(pick(onnx::kNewestOpset)));
    else
      mutateGraph(*model.mutable_graph());
  }

  void mutateGraph(GraphProto &graph) {
    switch (pick(6)) {
    case 0:
      if (graph.initializer_size())
        mutateTensor(*graph.mutable_initializer(int(pick(graph.initializer_size()))));
      break;
    case 1:
      if (graph.input_size())
        mutateType(*graph.mutable_input(int(pick(graph.input_size())))->mutable_type());
      break;
    case 2: // a node again, with outputs of its own
      if (graph.node_size() && graph.node_size() < 64) {
        NodeProto copy = graph.node(int(pick(graph.node_size())));
        for (std::string &output : *copy.mutable_output())
          output += "'";
        *graph.add_node() = copy;
      }
      break;
    case 3:
      if (graph.node_size() == 0)
        break;
      erase(*graph.mutable_node(), pick(graph.node_size()));
      collectAnew();
      break;
    case 4:
      if (graph.output_size())
        graph.mutable_output(int(pick(graph.output_size())))->set_name(name());
      break;
    default:
      if (graph.initializer_size() && pick(2) == 0)
        graph.mutable_initializer(int(pick(graph.initializer_size())))->set_name(name());
      else if (graph.input_size())
        graph.mutable_input(int(pick(graph.input_size())))->set_name(name());
    }
  }

  void mutateType(TypeProto &type) {
    TypeProto::Tensor &tensor = *type.mutable_tensor_type();
    if (pick(2) == 0)
      tensor.set_elem_type(int(pick(26)));
    else if (pick(3) == 0)
      tensor.mutable_shape()->add_dim()->set_dim_value(int64_t(pick(5)));
    else if (tensor.shape().dim_size() && pick(4) == 0)
      tensor.mutable_shape()->mutable_dim()->RemoveLast();
    else if (tensor.shape().dim_size())
      tensor.mutable_shape()
          ->mutable_dim(int(pick(tensor.shape().dim_size())))
          ->set_dim_value(pick(4) == 0 ? number() : int64_t(pick(9)));
  }

  void mutateTensor(TensorProto &tensor) {
    switch (pick(4)) {
    case 0:
      tensor.set_data_type(int(pick(26)));
      break;
    case 1:
      if (tensor.dims_size())
        tensor.set_dims(int(pick(tensor.dims_size())), pick(4) == 0 ? number() : int64_t(pick(9)));
      break;
    case 2:
      if (tensor.dims_size() && pick(2) == 0)
        tensor.mutable_dims()->RemoveLast();
      else
        tensor.add_dims(int64_t(pick(3)));
      break;
    default:
      if (tensor.int64_data_size())
        tensor.set_int64_data(int(pick(tensor.int64_data_size())), number());
      else if (std::string *raw = tensor.mutable_raw_data(); raw->size() >= 8) {
        int64_t value = number();
        raw->replace(pick(raw->size() / 8) * 8, 8, reinterpret_cast<const char *>(&value), 8);
      }
    }
  }

  void mutateNode(NodeProto &node) {
    switch (pick(9)) {
    case 0: { // another operator, with the operands as they are
      auto definitions = onnx::listDefinitions();
      const auto &definition = definitions[pick(definitions.size())];
      node.set_op_type(std::string(definition.name));
      node.set_domain(std::string(definition.domain));
      break;
    }
    case 1:
      if (node.input_size())
        node.set_input(int(pick(node.input_size())), name());
      break;
    case 2:
      node.add_input(name());
      break;
    case 3:
      if (node.input_size())
        erase(*node.mutable_input(), pick(node.input_size()));
      break;
    case 4:
      if (node.output_size() > 1 && pick(2) == 0)
        node.mutable_output()->RemoveLast();
      else
        node.add_output(pick(2) ? "" : node.name() + "+" + std::to_string(pick(1000)));
      break;
    case 5:
      addAttribute(node);
      break;
    default:
      if (node.attribute_size() == 0)
        addAttribute(node);
      else if (pick(5) == 0) {
        erase(*node.mutable_attribute(), pick(node.attribute_size()));
        collectAnew();
      } else
        mutateAttribute(*node.mutable_attribute(int(pick(node.attribute_size()))));
    }
  }

  /// One that the operator has.
  void addAttribute(NodeProto &node) {
    const auto *definition = onnx::findOperator(node.domain(), node.op_type(), onnx::kNewestOpset);
    if (!definition || definition->attributes.empty())
      return;
    std::vector<std::string_view> known;
    for (size_t at = 0; at < definition->attributes.size();) {
      size_t end = std::min(definition->attributes.find(' ', at), definition->attributes.size());
      known.push_back(definition->attributes.substr(at, end - at));
      at = end + 1;
    }
    std::string_view chosen = known[pick(known.size())];
    size_t colon = chosen.find(':');
    AttributeProto &attribute = *node.add_attribute();
    attribute.set_name(std::string(chosen.substr(0, colon)));
    switch (chosen[colon + 1]) {
    case 'f':
      attribute.set_type(AttributeProto::FLOAT);
      break;
    case 'i':
      attribute.set_type(AttributeProto::INT);
      break;
    case 's':
      attribute.set_type(AttributeProto::STRING);
      break;
    case 'F':
      attribute.set_type(AttributeProto::FLOATS);
      break;
    case 'I':
      attribute.set_type(AttributeProto::INTS);
      break;
    default:
      node.mutable_attribute()->RemoveLast();
      return;
    }
    mutateAttribute(attribute);
  }

  void mutateAttribute(AttributeProto &attribute) {
    static const char *const kTexts[] = {"",        "SAME_UPPER", "VALID",     "constant", "linear",
                                         "nearest", "sum",        "ij,jk->ik", "\xff"};
    switch (attribute.type()) {
    case AttributeProto::FLOAT:
      attribute.set_f(real());
      break;
    case AttributeProto::INT:
      attribute.set_i(number());
      break;
    case AttributeProto::STRING:
      attribute.set_s(kTexts[pick(std::size(kTexts))]);
      break;
    case AttributeProto::FLOATS:
      attribute.add_floats(real());
      break;
    case AttributeProto::INTS:
      if (attribute.ints_size() == 0 || pick(4) == 0)
        attribute.add_ints(number());
      else if (pick(4) == 0)
        attribute.mutable_ints()->RemoveLast();
      else
        attribute.set_ints(int(pick(attribute.ints_size())), number());
      break;
    case AttributeProto::TENSOR:
      mutateTensor(*attribute.mutable_t());
      break;
    default:
      break;
    }
  }

  std::minstd_rand random;
  GraphProto *root = nullptr;
  std::vector<GraphProto *> graphs;
  std::vector<NodeProto *> nodes;
  std::vector<std::string> names; ///< of values
};

} // namespace
} // namespace ortc::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
  ortc::proto::ModelProto model;
  if (seed % 4 == 0 || !model.ParseFromArray(data, int(bytes)))
    return LLVMFuzzerMutate(data, bytes, most);
  ortc::fuzz::Mutator(seed / 4).mutate(model);
  size_t wanted = model.ByteSizeLong();
  if (wanted > most)
    return LLVMFuzzerMutate(data, bytes, most);
  model.SerializeToArray(data, int(wanted));
  return wanted;
}
