// Well-formedness of a parsed model.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One walk over the model, outermost graph first. A graph knows the names of the graphs around it through
// Scope. Depth is bounded because protobuf limits the nesting of messages it parses to 100.
#include "compiler/frontend/ModelChecker.h"

#include "compiler/frontend/ExporterFaults.h"
#include "compiler/frontend/NameChecker.h"
#include "compiler/frontend/NodeOrder.h"
#include "compiler/frontend/onnx.pb.h"
#include "dialects/onnx/OnnxOperators.h"
#include "support/Plural.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

namespace ortc::frontend {

namespace {

/// The values a graph defines, and the graph around it.
struct Scope {
  const Scope *outer = nullptr;
  std::unordered_set<std::string_view> names{};

  bool has(std::string_view name) const {
    for (const Scope *scope = this; scope; scope = scope->outer)
      if (scope->names.count(name))
        return true;
    return false;
  }
};

/// What holds for the nodes of the main graph, or of one function's body.
struct Context {
  const google::protobuf::RepeatedPtrField<proto::OperatorSetIdProto> &opsets;
  const proto::FunctionProto *function; ///< null in the main graph
};

class Checker {
public:
  Checker(const Model &model, proto::ModelProto &proto, const Limits &limits)
      : model(model), proto(proto), limits(limits) {}
  Status run();

private:
  Status checkOpsets(const Context &context, const std::string &where);
  Status checkFunctions();
  Status checkFunction(proto::FunctionProto &function);
  Status checkExpansion();
  Status checkGraph(proto::GraphProto &graph, const Scope *outer, const Context &context,
                    const std::string &where);
  Status checkSparse(const proto::SparseTensorProto &tensor);
  Status checkInitializers(const proto::GraphProto &graph, Scope &scope, const std::string &where);
  Status checkNodes(google::protobuf::RepeatedPtrField<proto::NodeProto> &nodes, Scope &scope,
                    const Context &context, const std::string &where);
  Status checkNode(proto::NodeProto &node, const Scope &scope, const Context &context,
                   const std::string &where);
  Status checkAttribute(proto::AttributeProto &attribute, const Scope &scope, const Context &context,
                        const std::string &where);
  Status checkDefinition(const proto::NodeProto &node, const Context &context, const std::string &where);
  const proto::FunctionProto *callee(const proto::NodeProto &node) const;

  const Model &model;
  proto::ModelProto &proto;
  const Limits &limits;
  std::unordered_map<std::string, proto::FunctionProto *> functions;
  size_t sparseBytes = 0; ///< of sparse tensors made dense so far
};

} // namespace

static std::string quote(const std::string &name) { return "'" + name + "'"; }

static Status at(const std::string &where, const std::string &message) {
  return Status::refusal(where + ": " + message);
}

/// One key for a function and its calls; no name holds the separator in a model anyone wants to run.
static std::string functionKey(const std::string &domain, const std::string &name,
                               const std::string &overload) {
  return std::string(canonicalDomain(domain)) + '\n' + name + '\n' + overload;
}

const proto::FunctionProto *Checker::callee(const proto::NodeProto &node) const {
  auto found = functions.find(functionKey(node.domain(), node.op_type(), node.overload()));
  return found == functions.end() ? nullptr : found->second;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Checks a declared type. Shapes may use -1 for an unknown dimension, as some exporters write it.
static Status checkType(const proto::TypeProto &type, const std::string &where) {
  auto tensor = [&](int32_t element, bool hasShape, const proto::TensorShapeProto &shape) -> Status {
    if (dataTypeBytes(element) < 0 && element != 0)
      return at(where, "unknown data type " + std::to_string(element));
    if (hasShape)
      for (int i = 0; i < shape.dim_size(); ++i)
        if (shape.dim(i).dim_value() < -1)
          return at(where,
                    "dimension " + std::to_string(i) + " is " + std::to_string(shape.dim(i).dim_value()));
    return {};
  };
  switch (type.value_case()) {
  case proto::TypeProto::kTensorType:
    return tensor(type.tensor_type().elem_type(), type.tensor_type().has_shape(), type.tensor_type().shape());
  case proto::TypeProto::kSparseTensorType:
    return tensor(type.sparse_tensor_type().elem_type(), type.sparse_tensor_type().has_shape(),
                  type.sparse_tensor_type().shape());
  case proto::TypeProto::kSequenceType:
    return checkType(type.sequence_type().elem_type(), where);
  case proto::TypeProto::kOptionalType:
    return checkType(type.optional_type().elem_type(), where);
  case proto::TypeProto::kMapType:
    if (dataTypeBytes(type.map_type().key_type()) < 0)
      return at(where, "unknown key type " + std::to_string(type.map_type().key_type()) + " of a map");
    return checkType(type.map_type().value_type(), where);
  default:
    return {};
  }
}

/// A graph input of the model needs a type that says what to feed.
static bool saysElementType(const proto::TypeProto &type) {
  return type.value_case() != proto::TypeProto::VALUE_NOT_SET &&
         !(type.has_tensor_type() && type.tensor_type().elem_type() == 0);
}

//===----------------------------------------------------------------------===//
// Model, functions
//===----------------------------------------------------------------------===//

Status Checker::checkOpsets(const Context &context, const std::string &where) {
  std::unordered_map<std::string_view, int64_t> domains;
  for (const proto::OperatorSetIdProto &opset : context.opsets) {
    std::string_view domain = canonicalDomain(opset.domain());
    std::string shown = domain.empty() ? "the default domain" : "domain " + quote(opset.domain());
    auto [known, isNew] = domains.try_emplace(domain, opset.version());
    if (known->second != opset.version()) // some exporters repeat themselves
      return Status::refusal(where + "imports " + shown + " in versions " + std::to_string(known->second) +
                             " and " + std::to_string(opset.version()));
    if (!isNew)
      continue;
    if (!domain.empty())
      continue;
    if (opset.version() < onnx::kOldestOpset)
      return Status::refusal(where + "imports opset " + std::to_string(opset.version()) +
                             "; the oldest supported is " + std::to_string(onnx::kOldestOpset) +
                             "; export again, or convert with onnx.version_converter");
    if (opset.version() > onnx::kNewestOpset)
      return Status::refusal(where + "imports opset " + std::to_string(opset.version()) +
                             "; the newest supported is " + std::to_string(onnx::kNewestOpset) +
                             "; export with an older opset");
  }
  return {};
}

Status Checker::run() {
  if (!proto.has_graph())
    return Status::refusal("there is no graph in the file; it is no ONNX model, or was cut short");
  if (proto.ir_version() <= 0)
    return Status::refusal("the IR version is " + std::to_string(proto.ir_version()) +
                           "; it is no ONNX model, or is damaged");
  ORTC_TRY(checkNames(proto));
  Context context{proto.opset_import(), nullptr};
  // Before IR version 3 there were no opset imports, and only opset 1.
  if (proto.opset_import().empty())
    return Status::refusal("the model imports no opset (opset 1 is meant); the oldest supported is " +
                           std::to_string(onnx::kOldestOpset) +
                           "; export again, or convert with onnx.version_converter");
  ORTC_TRY(checkOpsets(context, "the model "));
  ORTC_TRY(checkFunctions());
  ORTC_TRY(checkGraph(*proto.mutable_graph(), nullptr, context, ""));
  return checkExpansion();
}

Status Checker::checkFunctions() {
  for (proto::FunctionProto &function : *proto.mutable_functions()) {
    if (function.name().empty())
      return Status::refusal("a function of domain " + quote(function.domain()) + " has no name");
    std::string key = functionKey(function.domain(), function.name(), function.overload());
    if (!functions.emplace(key, &function).second)
      return Status::refusal("there are two functions " + quote(function.name()) + " of domain " +
                             quote(function.domain()));
  }
  for (proto::FunctionProto &function : *proto.mutable_functions())
    ORTC_TRY(checkFunction(function));
  return {};
}

Status Checker::checkFunction(proto::FunctionProto &function) {
  std::string where = "function " + quote(function.name());
  Context context{function.opset_import(), &function};
  ORTC_TRY(checkOpsets(context, where + " "));
  Scope scope;
  for (const std::string &input : function.input())
    if (input.empty() || !scope.names.insert(input).second)
      return at(where, input.empty() ? "an input has no name" : "two inputs are named " + quote(input));
  std::unordered_set<std::string_view> attributes;
  for (const std::string &name : function.attribute())
    if (!attributes.insert(name).second)
      return at(where, "two attributes are named " + quote(name));
  for (proto::AttributeProto &attribute : *function.mutable_attribute_proto()) {
    if (!attributes.insert(attribute.name()).second)
      return at(where, "two attributes are named " + quote(attribute.name()));
    if (!attribute.ref_attr_name().empty())
      return at(where,
                "the default of attribute " + quote(attribute.name()) + " refers to another attribute");
    ORTC_TRY(checkAttribute(attribute, Scope(), context,
                            where + ": default of attribute " + quote(attribute.name())));
  }
  ORTC_TRY(checkNodes(*function.mutable_node(), scope, context, where));
  for (const std::string &output : function.output())
    if (!scope.names.count(output))
      return at(where, "nothing produces the output " + quote(output));
  return {};
}

namespace {
/// Counts the nodes a graph or function has after all calls are expanded.
class ExpansionCounter {
public:
  using Callee = std::function<const proto::FunctionProto *(const proto::NodeProto &)>;
  ExpansionCounter(Callee callee, int64_t limit) : callee(std::move(callee)), limit(limit) {}

  template <typename Nodes> Status count(const Nodes &nodes, int64_t &total) {
    for (const proto::NodeProto &node : nodes) {
      int64_t size = 1;
      if (const proto::FunctionProto *function = callee(node))
        ORTC_TRY(countFunction(*function, size));
      total = std::min(limit + 1, total + size);
      for (const proto::AttributeProto &attribute : node.attribute()) {
        if (attribute.has_g())
          ORTC_TRY(count(attribute.g().node(), total));
        for (const proto::GraphProto &graph : attribute.graphs())
          ORTC_TRY(count(graph.node(), total));
      }
    }
    return {};
  }

private:
  Status countFunction(const proto::FunctionProto &function, int64_t &size) {
    constexpr size_t kDeepest = 200; // calls in calls; the walk recurses
    auto [entry, added] = sizes.emplace(&function, -1);
    if (!added && entry->second < 0)
      return Status::refusal("function " + quote(function.name()) +
                             " calls itself, directly or through others");
    if (!added) {
      size = entry->second;
      return {};
    }
    if (++depth > kDeepest)
      return Status::refusal("calls of functions are nested more than " + std::to_string(kDeepest) +
                             " deep in function " + quote(function.name()));
    size = 0;
    ORTC_TRY(count(function.node(), size));
    --depth;
    sizes[&function] = size;
    return {};
  }

  Callee callee;
  int64_t limit;
  size_t depth = 0;
  std::unordered_map<const proto::FunctionProto *, int64_t> sizes; ///< -1 while being counted
};
} // namespace

/// Refuses recursion, and models that grow beyond the limit when functions are inlined.
Status Checker::checkExpansion() {
  ExpansionCounter counter([this](const proto::NodeProto &node) { return callee(node); },
                           limits.inlinedNodes);
  int64_t total = 0;
  for (const proto::FunctionProto &function : proto.functions())
    ORTC_TRY(counter.count(function.node(), total));
  total = 0;
  ORTC_TRY(counter.count(proto.graph().node(), total));
  if (total > limits.inlinedNodes)
    return Status::refusal("the model has more than " + std::to_string(limits.inlinedNodes) +
                           " nodes once its functions are inlined");
  return {};
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

/// A few bytes of a file are a sparse tensor of any size; together they take no more than the limit.
Status Checker::checkSparse(const proto::SparseTensorProto &tensor) {
  TensorData data;
  ORTC_TRY(model.sparseTensor(tensor, data));
  size_t stored = Model::sparseAllowance(tensor);
  sparseBytes += data.bytes.size() > stored ? data.bytes.size() - stored : 0;
  if (sparseBytes > limits.sparseBytes)
    return Status::refusal("with it, sparse tensors need more than " + std::to_string(limits.sparseBytes) +
                           " bytes when made dense; store the larger ones dense");
  return {};
}

Status Checker::checkInitializers(const proto::GraphProto &graph, Scope &scope, const std::string &where) {
  std::unordered_map<std::string_view, const proto::ValueInfoProto *> inputs;
  for (const proto::ValueInfoProto &input : graph.input())
    inputs.emplace(input.name(), &input);
  std::unordered_set<std::string_view> seen;
  auto define = [&](const std::string &name, int32_t type) -> Status {
    if (name.empty())
      return Status::refusal(where + "an initializer has no name");
    if (!seen.insert(name).second)
      return Status::refusal(where + "two initializers are named " + quote(name));
    auto input = inputs.find(name);
    if (input != inputs.end()) {
      int32_t declared = input->second->type().tensor_type().elem_type();
      if (declared && declared != type)
        return Status::refusal(where + "initializer " + quote(name) + " is " + dataTypeName(type) +
                               " but the input of that name is " + dataTypeName(declared));
    }
    scope.names.insert(name);
    return {};
  };
  TensorData data;
  for (const proto::TensorProto &tensor : graph.initializer()) {
    ORTC_TRY(define(tensor.name(), tensor.data_type()));
    if (Status status = model.tensor(tensor, data); !status.isOk())
      return at(where + "initializer " + quote(tensor.name()), status.getMessage());
  }
  for (const proto::SparseTensorProto &tensor : graph.sparse_initializer()) {
    ORTC_TRY(define(tensor.values().name(), tensor.values().data_type()));
    if (Status status = checkSparse(tensor); !status.isOk())
      return at(where + "initializer " + quote(tensor.values().name()), status.getMessage());
  }
  return {};
}

Status Checker::checkGraph(proto::GraphProto &graph, const Scope *outer, const Context &context,
                           const std::string &where) {
  std::string prefix = where.empty() ? "" : where + ": ";
  Scope scope{outer};
  for (const proto::ValueInfoProto &input : graph.input()) {
    if (input.name().empty())
      return Status::refusal(prefix + "an input has no name");
    if (!scope.names.insert(input.name()).second)
      return Status::refusal(prefix + "two inputs are named " + quote(input.name()));
    ORTC_TRY(checkType(input.type(), prefix + "input " + quote(input.name())));
    if (!outer && !saysElementType(input.type()))
      return at(prefix + "input " + quote(input.name()), "it has no type");
  }
  ORTC_TRY(checkInitializers(graph, scope, prefix));
  ORTC_TRY(checkNodes(*graph.mutable_node(), scope, context, where));
  if (!outer && graph.output().empty())
    return Status::refusal("the graph has no outputs");
  std::unordered_set<std::string_view> outputs;
  for (const proto::ValueInfoProto &output : graph.output()) {
    if (output.name().empty())
      return Status::refusal(prefix + "an output has no name");
    if (!outputs.insert(output.name()).second)
      return Status::refusal(prefix + "two outputs are named " + quote(output.name()));
    if (!scope.has(output.name()))
      return Status::refusal(prefix + "nothing produces the output " + quote(output.name()));
    ORTC_TRY(checkType(output.type(), prefix + "output " + quote(output.name())));
  }
  for (const proto::ValueInfoProto &value : graph.value_info())
    ORTC_TRY(checkType(value.type(), prefix + "value " + quote(value.name())));
  return {};
}

Status Checker::checkNodes(google::protobuf::RepeatedPtrField<proto::NodeProto> &nodes, Scope &scope,
                           const Context &context, const std::string &where) {
  std::string prefix = where.empty() ? "" : where + ": ";
  for (const proto::NodeProto &node : nodes) {
    if (node.op_type().empty())
      return Status::refusal(prefix + describe(node) + ": it names no operator");
    for (const std::string &output : node.output())
      if (!output.empty() && !scope.names.insert(output).second)
        return Status::refusal(prefix + describe(node) + ": the output " + quote(output) +
                               " is already the name of another value");
  }
  for (const proto::NodeProto &node : nodes)
    for (const std::string &input : node.input())
      if (!input.empty() && !scope.has(input))
        return Status::refusal(prefix + describe(node) + ": nothing produces the input " + quote(input));
  if (Status status = sortNodes(nodes); !status.isOk())
    return Status::refusal(prefix + status.getMessage());
  for (proto::NodeProto &node : nodes)
    ORTC_TRY(checkNode(node, scope, context, prefix + describe(node)));
  return {};
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

static bool hasAttribute(const proto::FunctionProto &function, const std::string &name) {
  const auto &names = function.attribute();
  const auto &defaults = function.attribute_proto();
  return std::find(names.begin(), names.end(), name) != names.end() ||
         std::any_of(defaults.begin(), defaults.end(), [&](const auto &d) { return d.name() == name; });
}

Status Checker::checkNode(proto::NodeProto &node, const Scope &scope, const Context &context,
                          const std::string &where) {
  std::unordered_set<std::string_view> names;
  for (proto::AttributeProto &attribute : *node.mutable_attribute()) {
    std::string place = where + ": attribute " + quote(attribute.name());
    if (attribute.name().empty())
      return at(where, "an attribute has no name");
    if (!names.insert(attribute.name()).second)
      return at(where, "two attributes are named " + quote(attribute.name()));
    ORTC_TRY(checkAttribute(attribute, scope, context, place));
  }
  if (const proto::FunctionProto *function = callee(node)) {
    if (node.input_size() > function->input_size() || node.output_size() > function->output_size())
      return at(where, "function " + quote(function->name()) + " has " +
                           formatCount(function->input_size(), "input") + " and " +
                           formatCount(function->output_size(), "output") + ", not " +
                           std::to_string(node.input_size()) + " and " + std::to_string(node.output_size()));
    for (const proto::AttributeProto &attribute : node.attribute())
      if (!hasAttribute(*function, attribute.name()))
        return at(where,
                  "function " + quote(function->name()) + " has no attribute " + quote(attribute.name()));
    return {};
  }
  return checkDefinition(node, context, where);
}

/// Whether the message holds a value that its type does not use.
static std::string strayValue(const proto::AttributeProto &a, char kind) {
  std::pair<char, bool> held[] = {{'f', a.has_f()},
                                  {'i', a.has_i()},
                                  {'s', a.has_s()},
                                  {'t', a.has_t()},
                                  {'g', a.has_g()},
                                  {'p', a.has_sparse_tensor()},
                                  {'y', a.has_tp()},
                                  {'F', a.floats_size()},
                                  {'I', a.ints_size()},
                                  {'S', a.strings_size()},
                                  {'T', a.tensors_size()},
                                  {'G', a.graphs_size()},
                                  {'P', a.sparse_tensors_size()},
                                  {'Y', a.type_protos_size()}};
  for (auto [letter, present] : held)
    if (present && letter != kind)
      return std::string(onnx::attributeKindName(letter));
  return "";
}

Status Checker::checkAttribute(proto::AttributeProto &attribute, const Scope &scope, const Context &context,
                               const std::string &where) {
  char kind = attributeKind(attribute);
  if (!kind)
    return at(where, "it has no type, or one this version does not know");
  if (!attribute.ref_attr_name().empty()) {
    const std::string &target = attribute.ref_attr_name();
    if (!context.function)
      return at(where,
                "it refers to attribute " + quote(target) + " of a function, but stands in no function");
    if (!hasAttribute(*context.function, target))
      return at(where, "the function has no attribute " + quote(target) + ", which it refers to");
    return {};
  }
  // Other fields than the one of the type are legal nowhere; exporters that write zeros there are tolerated
  // for numbers.
  std::string stray = strayValue(attribute, kind);
  bool harmless = (stray == "float" && attribute.f() == 0) || (stray == "int" && attribute.i() == 0) ||
                  (stray == "string" && attribute.s().empty());
  if (!stray.empty() && !harmless)
    return at(where, "its type is " + std::string(onnx::attributeKindName(kind)) +
                         " but it holds a value of type " + stray);
  if ((kind == 't' && !attribute.has_t()) || (kind == 'g' && !attribute.has_g()) ||
      (kind == 'p' && !attribute.has_sparse_tensor()) || (kind == 'y' && !attribute.has_tp()))
    return at(where, "its type is " + std::string(onnx::attributeKindName(kind)) + " but it holds no value");
  TensorData data;
  auto tensor = [&](const proto::TensorProto &t) {
    Status status = model.tensor(t, data);
    return status.isOk() ? status : at(where, status.getMessage());
  };
  auto sparse = [&](const proto::SparseTensorProto &t) {
    Status status = checkSparse(t);
    return status.isOk() ? status : at(where, status.getMessage());
  };
  if (attribute.has_t())
    ORTC_TRY(tensor(attribute.t()));
  for (const proto::TensorProto &t : attribute.tensors())
    ORTC_TRY(tensor(t));
  if (attribute.has_sparse_tensor())
    ORTC_TRY(sparse(attribute.sparse_tensor()));
  for (const proto::SparseTensorProto &t : attribute.sparse_tensors())
    ORTC_TRY(sparse(t));
  if (attribute.has_tp())
    ORTC_TRY(checkType(attribute.tp(), where));
  for (const proto::TypeProto &type : attribute.type_protos())
    ORTC_TRY(checkType(type, where));
  if (attribute.has_g())
    ORTC_TRY(checkGraph(*attribute.mutable_g(), &scope, context, where));
  for (proto::GraphProto &graph : *attribute.mutable_graphs())
    ORTC_TRY(checkGraph(graph, &scope, context, where));
  return {};
}

/// Checks a node of a known operator; other names are left to the legaliser's report.
Status Checker::checkDefinition(const proto::NodeProto &node, const Context &context,
                                const std::string &where) {
  std::string_view domain = canonicalDomain(node.domain());
  int64_t opset = std::max<int64_t>(opsetOf(context.opsets, domain), 0);
  if (!opset && onnx::isStandardDomain(domain))
    return at(where, domain.empty() ? "no opset is imported for the default domain"
                                    : "no opset is imported for domain " + quote(node.domain()));
  const onnx::OperatorDefinition *definition = onnx::findOperator(domain, node.op_type(), opset);
  if (!definition)
    return {};
  std::vector<bool> present;
  for (const std::string &input : node.input())
    present.push_back(!input.empty());
  while (!present.empty() && !present.back())
    present.pop_back();
  int outputs = node.output_size();
  while (outputs > 0 && node.output(outputs - 1).empty())
    --outputs;
  std::string wrong = onnx::checkArity(*definition, present, static_cast<size_t>(outputs));
  if (!wrong.empty())
    wrong += explainArity(node);
  if (wrong.empty()) {
    std::vector<std::pair<std::string_view, char>> attributes;
    for (const proto::AttributeProto &attribute : node.attribute())
      attributes.push_back({attribute.name(), attributeKind(attribute)});
    wrong = onnx::checkAttributes(*definition, attributes);
  }
  if (wrong.empty())
    wrong = findExporterFault(node);
  return wrong.empty() ? Status() : at(where, wrong);
}

Status checkModel(const Model &model, proto::ModelProto &proto, const Limits &limits) {
  return Checker(model, proto, limits).run();
}

} // namespace ortc::frontend
