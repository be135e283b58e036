// An ONNX file that is a formula.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes of a function that are floats become inputs, so that whoever uses the formula gives them in the type that
// it computes in: `Constant` nodes that hold them become `Identity` nodes of these.
#include "compiler/frontend/FunctionFile.h"

#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/onnx.pb.h"
#include "support/MappedFile.h"
#include "support/Text.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace ortc::frontend {

using proto::TensorProto;

FunctionFile::FunctionFile() : proto(std::make_unique<proto::ModelProto>()) {}
FunctionFile::~FunctionFile() = default;

Status FunctionFile::refuse(const std::string &reason) const {
  return Status::refusal("'" + path + "': " + reason);
}

std::string FunctionValue::describeType() const {
  if (!type)
    return "of no type";
  std::string text = dataTypeName(type), list;
  for (size_t i = 0; dims && i < dims->size(); ++i)
    list += (i ? "," : "") + ((*dims)[i].size >= 0      ? std::to_string((*dims)[i].size)
                              : (*dims)[i].name.empty() ? "?"
                                                        : (*dims)[i].name);
  return text + "[" + (dims ? list : "...") + "]";
}

/// Where the name of the graph's input differs from that of the attribute: values of a function may have that, too.
static std::string inputOf(const std::string &attribute) { return "attribute:" + attribute; }

/// The number that the decimal digits of a float32 mean: 0.9 and not 0.89999998.
static double widen(float value) {
  char text[32];
  double wide = value;
  auto end = std::to_chars(text, text + sizeof text, value).ptr;
  std::from_chars(text, end, wide);
  return wide;
}

static void readType(const proto::TypeProto &type, FunctionValue &value) {
  if (!type.has_tensor_type())
    return;
  value.type = type.tensor_type().elem_type();
  if (!type.tensor_type().has_shape())
    return;
  for (const auto &dim : type.tensor_type().shape().dim()) {
    DeclaredDim &declared = value.dims ? value.dims->emplace_back() : value.dims.emplace().emplace_back();
    if (dim.has_dim_value())
      declared.size = dim.dim_value();
    else
      declared.name = dim.dim_param();
  }
  if (!value.dims)
    value.dims.emplace();
}

template <typename Values>
static const FunctionValue *findValue(const Values &values, std::string_view name) {
  auto found =
      std::find_if(values.begin(), values.end(), [&](const auto &each) { return each.name == name; });
  return found == values.end() ? nullptr : &*found;
}
const FunctionValue *FunctionFile::findInput(std::string_view name) const { return findValue(inputs, name); }
const FunctionValue *FunctionFile::findOutput(std::string_view name) const {
  return findValue(outputs, name);
}

/// Calls `visit` for every node of the graph and of the bodies in it.
template <typename Visit> static void visitNodes(proto::GraphProto &graph, const Visit &visit) {
  for (auto &node : *graph.mutable_node()) {
    visit(node);
    for (auto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        visitNodes(*attribute.mutable_g(), visit);
      for (auto &body : *attribute.mutable_graphs())
        visitNodes(body, visit);
    }
  }
}

/// The function that no other calls.
static const proto::FunctionProto *findMain(const proto::ModelProto &model) {
  std::set<std::pair<std::string_view, std::string_view>> called;
  for (const auto &caller : model.functions())
    for (const auto &node : caller.node())
      called.insert({node.domain(), node.op_type()});
  const proto::FunctionProto *main = nullptr;
  for (const auto &function : model.functions())
    if (!called.count({function.domain(), function.name()})) {
      if (main)
        return nullptr;
      main = &function;
    }
  return main;
}

/// Makes a graph of the only function that is not called.
Status FunctionFile::takeFunction() {
  const proto::FunctionProto *main = findMain(*proto);
  if (!main)
    return refuse(proto->functions_size()
                      ? "it has several functions that no other calls; write one to a file"
                      : "its functions call each other");
  const proto::FunctionProto function = *main;
  proto::GraphProto &graph = *proto->mutable_graph();
  graph.Clear();
  graph.set_name(function.name());
  *graph.mutable_node() = function.node();
  *proto->mutable_opset_import() = function.opset_import();
  auto declare = [&](const std::string &name, FunctionValue &value) {
    value.name = name;
    for (const auto &info : function.value_info())
      if (info.name() == name)
        readType(info.type(), value);
  };
  for (const std::string &name : function.input())
    declare(name, inputs.emplace_back());
  for (const std::string &name : function.output()) {
    declare(name, outputs.emplace_back());
    graph.add_output()->set_name(name);
  }

  std::map<std::string, proto::AttributeProto> attributes;
  for (const auto &attribute : function.attribute_proto())
    attributes[attribute.name()] = attribute;
  for (const std::string &name : function.attribute())
    attributes[name];
  std::string unread;
  visitNodes(graph, [&](proto::NodeProto &node) {
    for (auto &attribute : *node.mutable_attribute()) {
      auto known = attributes.find(attribute.ref_attr_name());
      if (known == attributes.end())
        continue;
      if (!known->second.type()) // it has no default
        known->second.set_type(attribute.type());
      if (known->second.type() != proto::AttributeProto::FLOAT)
        continue;
      if (node.op_type() != "Constant" || node.attribute_size() != 1)
        unread = "attribute '" + known->first + "' is a float that " + describe(node) +
                 " takes as its attribute; floats are values that nodes read";
      node.clear_attribute();
      node.set_op_type("Identity");
      node.add_input(inputOf(known->first));
      break;
    }
  });
  if (!unread.empty())
    return refuse(unread);
  for (const auto &[name, attribute] : attributes)
    if (attribute.type() == proto::AttributeProto::INT) {
      integers.push_back({name, attribute.has_i() ? std::optional(attribute.i()) : std::nullopt});
    } else if (attribute.type() == proto::AttributeProto::FLOAT) {
      inputs.push_back({name, TensorProto::FLOAT, std::vector<DeclaredDim>(),
                        attribute.has_f() ? std::optional(widen(attribute.f())) : std::nullopt, true});
    } else {
      return refuse("attribute '" + name + "' is no number; attributes of a formula are floats and integers");
    }
  auto &functions = *proto->mutable_functions();
  removeIf(functions, [&](const proto::FunctionProto &each, int) {
    return each.name() == function.name() && each.domain() == function.domain() &&
           each.overload() == function.overload();
  });
  return Status();
}

/// The value of a scalar initializer; nothing for other tensors.
static std::optional<double> readScalar(const Model &model, const TensorProto &tensor) {
  TensorData data;
  if (tensor.dims_size() != 0 || !model.tensor(tensor, data).isOk())
    return std::nullopt;
  auto load = [&](auto value) {
    std::memcpy(&value, data.bytes.data(), sizeof value);
    return value;
  };
  switch (data.type) {
  case TensorProto::FLOAT:
    return widen(load(float()));
  case TensorProto::DOUBLE:
    return load(double());
  case TensorProto::INT32:
    return load(int32_t());
  case TensorProto::INT64:
    return static_cast<double>(load(int64_t()));
  default:
    return std::nullopt;
  }
}

/// Scalar initializers of inputs are defaults; other initializers are constants, whether they are called inputs or not.
Status FunctionFile::takeGraph(const Model &model) {
  proto::GraphProto &graph = *proto->mutable_graph();
  std::map<std::string, std::optional<double>> initial;
  for (const auto &tensor : graph.initializer())
    initial[tensor.name()] = readScalar(model, tensor);
  for (const auto &input : graph.input()) {
    auto known = initial.find(input.name());
    if (known != initial.end() && !known->second)
      continue;
    FunctionValue &value = inputs.emplace_back();
    value.name = input.name();
    readType(input.type(), value);
    if (known != initial.end())
      value.initial = known->second;
  }
  for (const auto &output : graph.output()) {
    FunctionValue &value = outputs.emplace_back();
    value.name = output.name();
    readType(output.type(), value);
  }
  removeIf(*graph.mutable_initializer(),
           [&](const TensorProto &tensor, int) { return findInput(tensor.name()) != nullptr; });
  return Status();
}

Status FunctionFile::read() {
  // The first field of a function is its name, that of a model the version of the format.
  constexpr char kName = (1 << 3) | 2;
  google::protobuf::LogSilencer silence; // the reason is in our message
  if (!bytes.empty() && bytes[0] == kName) {
    if (!proto->add_functions()->ParseFromString(bytes) || proto->functions(0).node_size() == 0)
      return refuse("it is neither a function of ONNX nor a model");
    proto->set_ir_version(10); // the first in which functions have types
    ORTC_TRY(takeFunction());
  } else if (proto->ParseFromString(bytes) && proto->graph().node_size() == 0 &&
             proto->functions_size() > 0) {
    ORTC_TRY(takeFunction());
  } else {
    std::shared_ptr<const Model> model;
    ORTC_TRY(Model::parse(bytes, path, folder, model));
    *proto = model->getProto();
    ORTC_TRY(takeGraph(*model));
  }
  std::set<std::string> names;
  for (const FunctionValue &input : inputs) {
    names.insert(input.name);
    if (input.initial && !std::isfinite(*input.initial))
      return refuse("the default of '" + input.name + "' is " + formatNumber(*input.initial) +
                    "; it must be a finite number");
  }
  for (const FunctionInteger &each : integers)
    names.insert(each.name);
  if (names.size() < inputs.size() + integers.size())
    return refuse("two of its inputs and attributes have one name");
  // Whether it is sound, whatever it is used for.
  std::vector<OperandType> types;
  std::map<std::string, int64_t> values;
  for (const FunctionValue &input : inputs)
    types.push_back({input.type ? input.type : TensorProto::FLOAT, {}});
  for (const FunctionInteger &each : integers)
    values[each.name] = 0;
  std::shared_ptr<const Model> model;
  return instantiate(types, values, model);
}

Status FunctionFile::load(const std::string &path, std::shared_ptr<const FunctionFile> &file) {
  std::shared_ptr<FunctionFile> loaded(new FunctionFile);
  std::shared_ptr<const MappedFile> mapped;
  if (Status status = MappedFile::open(path, mapped); !status.isOk())
    return Status::refusal(status.getMessage());
  loaded->path = path;
  size_t slash = path.rfind('/');
  loaded->folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  if (mapped->getBytes() > Limits().modelBytes)
    return loaded->refuse("it has more bytes than a model may have");
  loaded->bytes.resize(mapped->getBytes());
  ORTC_TRY(mapped->read([&] { std::memcpy(loaded->bytes.data(), mapped->getData(), mapped->getBytes()); }));
  ORTC_TRY(loaded->read());
  file = std::move(loaded);
  return Status();
}

Status FunctionFile::instantiate(const std::vector<OperandType> &types,
                                 const std::map<std::string, int64_t> &values,
                                 std::shared_ptr<const Model> &model) const {
  proto::ModelProto copy = *proto;
  proto::GraphProto &graph = *copy.mutable_graph();
  graph.clear_input();
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto &input = *graph.add_input();
    input.set_name(inputs[i].isAttribute ? inputOf(inputs[i].name) : inputs[i].name);
    auto &tensor = *input.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(types[i].type);
    tensor.mutable_shape();
    for (int64_t size : types[i].dims)
      tensor.mutable_shape()->add_dim()->set_dim_value(size);
  }
  // What the file says of shapes holds for its own inputs.
  graph.clear_value_info();
  for (auto &output : *graph.mutable_output())
    output.clear_type();
  visitNodes(graph, [&](proto::NodeProto &node) {
    for (auto &attribute : *node.mutable_attribute())
      if (auto value = values.find(attribute.ref_attr_name()); value != values.end()) {
        attribute.clear_ref_attr_name();
        attribute.set_type(proto::AttributeProto::INT);
        attribute.set_i(value->second);
      }
  });
  return Model::parse(copy.SerializeAsString(), path, folder, model);
}

} // namespace ortc::frontend
