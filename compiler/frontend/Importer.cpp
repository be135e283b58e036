// An ONNX file as IR of the onnx dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The model has passed every check (Model.h), so names resolve and nodes stand in order: one walk builds the
// IR.
#include "compiler/frontend/Importer.h"

#include "compiler/frontend/ImportTypes.h"
#include "compiler/frontend/InitializerOrigins.h"
#include "compiler/frontend/TracedFormulas.h"
#include "compiler/frontend/TracedNorms.h"
#include "compiler/frontend/TracedTies.h"
#include "compiler/frontend/onnx.pb.h"
#include "dialects/onnx/InitializerOrigin.h"
#include "dialects/onnx/OnnxDialect.h"
#include "dialects/onnx/OnnxOperators.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace ortc::frontend {

namespace {

using Opsets = google::protobuf::RepeatedPtrField<proto::OperatorSetIdProto>;

/// The values of a graph by name, and the graph around it.
struct Values {
  const Values *outer = nullptr;
  llvm::StringMap<Value> byName{};
  Value none{}; ///< the graph's onnx.none, made when first needed

  Value find(StringRef name) const {
    for (const Values *values = this; values; values = values->outer)
      if (auto found = values->byName.find(name); found != values->byName.end())
        return found->second;
    return {};
  }
};

/// The types the file states, by value name.
using StatedTypes = llvm::StringMap<const proto::TypeProto *>;

class Importer {
public:
  Importer(const Model &model, MLIRContext &context, Status &status)
      : model(model), context(&context), builder(&context), status(status) {}
  FailureOr<OwningOpRef<ModuleOp>> run();

private:
  LogicalResult importGraph(const proto::GraphProto &graph, const Values *outer, const Opsets &opsets);
  LogicalResult importInitializers(const proto::GraphProto &graph, Values &values);
  LogicalResult importFunction(const proto::FunctionProto &function);
  LogicalResult importNode(const proto::NodeProto &node, Values &values, const StatedTypes &types,
                           const Opsets &opsets);
  FailureOr<DictionaryAttr> importAttributes(const proto::NodeProto &node);
  DictionaryAttr importOpsets(const Opsets &opsets);
  int64_t sinceVersion(const proto::NodeProto &node, const Opsets &opsets) const;

  Location nameLoc(StringRef name) { return NameLoc::get(builder.getStringAttr(name)); }
  ArrayAttr names(ArrayRef<StringRef> strings) { return builder.getStrArrayAttr(strings); }
  StringAttr optionalString(StringRef text) {
    return text.empty() ? StringAttr() : builder.getStringAttr(text);
  }

  const Model &model;
  MLIRContext *context;
  OpBuilder builder;
  Status &status;
  llvm::StringSet<> functions; ///< keys of the model-local functions
};

} // namespace

/// One key for a function and the nodes that call it.
static std::string functionKey(const std::string &domain, const std::string &name,
                               const std::string &overload) {
  return std::string(canonicalDomain(domain)) + '\n' + name + '\n' + overload;
}

DictionaryAttr Importer::importOpsets(const Opsets &opsets) {
  NamedAttrList versions;
  for (const proto::OperatorSetIdProto &opset : opsets) {
    std::string_view domain = canonicalDomain(opset.domain());
    versions.set(domain.empty() ? "ai.onnx" : StringRef(domain), builder.getI64IntegerAttr(opset.version()));
  }
  return versions.getDictionary(context);
}

FailureOr<OwningOpRef<ModuleOp>> Importer::run() {
  const proto::ModelProto &proto = model.getProto();
  OwningOpRef<ModuleOp> module = ModuleOp::create(FileLineColLoc::get(context, model.getName(), 0, 0));
  Operation *op = module->getOperation();
  op->setAttr("onnx.ir_version", builder.getI64IntegerAttr(proto.ir_version()));
  op->setAttr("onnx.opsets", importOpsets(proto.opset_import()));
  op->setAttr("onnx.producer", builder.getStringAttr(proto.producer_name()));
  op->setAttr("onnx.producer_version", builder.getStringAttr(proto.producer_version()));
  builder.setInsertionPointToEnd(module->getBody());
  for (const proto::FunctionProto &function : proto.functions())
    functions.insert(functionKey(function.domain(), function.name(), function.overload()));
  for (const proto::FunctionProto &function : proto.functions())
    if (failed(importFunction(function)))
      return failure();
  if (failed(importGraph(proto.graph(), nullptr, proto.opset_import())))
    return failure();
  return module;
}

LogicalResult Importer::importFunction(const proto::FunctionProto &function) {
  OpBuilder::InsertionGuard guard(builder);
  NamedAttrList defaults;
  for (const proto::AttributeProto &attribute : function.attribute_proto()) {
    if (char kind = attributeKind(attribute); kind == 'g' || kind == 'G') {
      status = Status::refusal("function '" + function.name() + "': attribute '" + attribute.name() +
                               "' is a graph; default values that are graphs are not supported");
      return failure();
    }
    Attribute value = importAttribute(context, model, attribute.name(), attribute, status);
    if (!value)
      return failure();
    defaults.set(attribute.name(), value);
  }
  SmallVector<StringRef> inputs(function.input().begin(), function.input().end());
  SmallVector<StringRef> outputs(function.output().begin(), function.output().end());
  SmallVector<StringRef> parameters(function.attribute().begin(), function.attribute().end());
  std::string symbol = function.domain() + "." + function.name();
  if (!function.overload().empty())
    symbol += "." + function.overload();
  auto op =
      onnx::FunctionOp::create(builder, nameLoc(function.name()), builder.getStringAttr(symbol),
                               builder.getStringAttr(StringRef(canonicalDomain(function.domain()))),
                               builder.getStringAttr(function.name()), optionalString(function.overload()),
                               names(inputs), names(outputs), names(parameters),
                               defaults.getDictionary(context), importOpsets(function.opset_import()));
  Block *block = builder.createBlock(&op.getBody());
  Values values;
  for (StringRef input : inputs)
    values.byName[input] = block->addArgument(onnx::AnyType::get(context), nameLoc(input));
  for (const proto::NodeProto &node : function.node())
    if (failed(importNode(node, values, {}, function.opset_import())))
      return failure();
  SmallVector<Value> results;
  for (StringRef output : outputs)
    results.push_back(values.find(output));
  onnx::ReturnOp::create(builder, op.getLoc(), results);
  return success();
}

LogicalResult Importer::importInitializers(const proto::GraphProto &graph, Values &values) {
  llvm::StringMap<int64_t> inputs;
  for (auto [i, input] : llvm::enumerate(graph.input()))
    inputs[input.name()] = static_cast<int64_t>(i);
  std::map<std::string, InitializerOrigin> origins = findOrigins(graph);
  auto add = [&](const std::string &name, const TensorData &data) {
    auto input = inputs.find(name);
    IntegerAttr position = input == inputs.end() ? IntegerAttr() : builder.getI64IntegerAttr(input->second);
    ElementsAttr value = importTensor(context, name, data);
    auto op = onnx::InitializerOp::create(builder, nameLoc(name), value.getType(),
                                          builder.getStringAttr(name), value, position);
    values.byName[name] = op;
    auto origin = origins.find(name);
    if (origin == origins.end())
      return;
    const InitializerOrigin &said = origin->second;
    if (said.origin != Origin::unknown)
      op->setAttr(onnx::kOrigin, builder.getStringAttr(said.origin == Origin::parameter ? "parameter"
                                                       : said.origin == Origin::buffer  ? "buffer"
                                                                                        : "constant"));
    if (!said.parameters.empty())
      op->setAttr(onnx::kSources,
                  names(SmallVector<StringRef>(said.parameters.begin(), said.parameters.end())));
  };
  TensorData data;
  for (const proto::TensorProto &tensor : graph.initializer()) {
    if (status = model.tensor(tensor, data); !status.isOk())
      return failure();
    add(tensor.name(), data);
  }
  for (const proto::SparseTensorProto &tensor : graph.sparse_initializer()) {
    if (status = model.sparseTensor(tensor, data); !status.isOk())
      return failure();
    add(tensor.values().name(), data);
  }
  return success();
}

LogicalResult Importer::importGraph(const proto::GraphProto &graph, const Values *outer,
                                    const Opsets &opsets) {
  OpBuilder::InsertionGuard guard(builder);
  llvm::StringMap<bool> initialized;
  for (const proto::TensorProto &tensor : graph.initializer())
    initialized[tensor.name()] = true;
  for (const proto::SparseTensorProto &tensor : graph.sparse_initializer())
    initialized[tensor.values().name()] = true;

  SmallVector<StringRef> inputNames, outputNames;
  SmallVector<Attribute> inputDims, outputDims;
  SmallVector<Type> inputTypes, outputTypes;
  StatedTypes types;
  for (const proto::ValueInfoProto &value : graph.value_info())
    types[value.name()] = &value.type();
  for (const proto::ValueInfoProto &input : graph.input()) {
    if (initialized.contains(input.name()))
      continue;
    inputNames.push_back(input.name());
    inputTypes.push_back(importType(context, input.type()));
    inputDims.push_back(importDimNames(context, input.type()));
  }
  for (const proto::ValueInfoProto &output : graph.output()) {
    outputNames.push_back(output.name());
    outputTypes.push_back(importType(context, output.type()));
    outputDims.push_back(importDimNames(context, output.type()));
    types[output.name()] = &output.type();
  }
  auto op = onnx::GraphOp::create(builder, nameLoc(graph.name()), builder.getStringAttr(graph.name()),
                                  names(inputNames), builder.getArrayAttr(inputDims), names(outputNames),
                                  builder.getTypeArrayAttr(outputTypes), builder.getArrayAttr(outputDims));
  Block *block = builder.createBlock(&op.getBody());
  Values values{outer};
  for (auto [name, type] : llvm::zip(inputNames, inputTypes))
    values.byName[name] = block->addArgument(type, nameLoc(name));
  if (failed(importInitializers(graph, values)))
    return failure();
  for (const proto::NodeProto &node : graph.node())
    if (failed(importNode(node, values, types, opsets)))
      return failure();
  SmallVector<Value> results;
  for (StringRef output : outputNames)
    results.push_back(values.find(output));
  onnx::ReturnOp::create(builder, op.getLoc(), results);
  return success();
}

int64_t Importer::sinceVersion(const proto::NodeProto &node, const Opsets &opsets) const {
  if (functions.contains(functionKey(node.domain(), node.op_type(), node.overload())))
    return 0;
  std::string_view domain = canonicalDomain(node.domain());
  const onnx::OperatorDefinition *definition =
      onnx::findOperator(domain, node.op_type(), opsetOf(opsets, domain));
  return definition ? definition->since : 0;
}

/// The attributes that are no graphs.
FailureOr<DictionaryAttr> Importer::importAttributes(const proto::NodeProto &node) {
  NamedAttrList attributes;
  for (const proto::AttributeProto &attribute : node.attribute()) {
    char kind = attributeKind(attribute);
    Attribute value;
    if (!attribute.ref_attr_name().empty())
      value = onnx::ReferenceAttr::get(context, attribute.ref_attr_name(),
                                       StringRef(onnx::attributeKindName(kind)));
    else if (kind == 'g' || kind == 'G')
      continue;
    else
      value = importAttribute(context, model, node.output_size() ? node.output(0) : node.name(), attribute,
                              status);
    if (!value)
      return failure();
    attributes.set(attribute.name(), value);
  }
  return attributes.getDictionary(context);
}

/// The number of names up to the last that is not empty.
template <typename Names> static int usedNames(const Names &names) {
  int used = names.size();
  while (used > 0 && names[used - 1].empty())
    --used;
  return used;
}

LogicalResult Importer::importNode(const proto::NodeProto &node, Values &values, const StatedTypes &types,
                                   const Opsets &opsets) {
  if (usedNames(node.output()) == 0) // nothing can read what it computes
    return success();
  Location location = nameLoc(node.name().empty() ? node.output(0) : node.name());
  FailureOr<DictionaryAttr> attributes = importAttributes(node);
  if (failed(attributes))
    return failure();
  SmallVector<Value> inputs;
  for (int i = 0, count = usedNames(node.input()); i < count; ++i) {
    if (node.input(i).empty() && !values.none) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(builder.getBlock());
      values.none = onnx::NoneOp::create(builder, builder.getUnknownLoc(), builder.getNoneType());
    }
    inputs.push_back(node.input(i).empty() ? values.none : values.find(node.input(i)));
  }
  SmallVector<Type> resultTypes;
  SmallVector<StringRef> resultNames;
  for (int i = 0, count = usedNames(node.output()); i < count; ++i) {
    resultNames.push_back(node.output(i));
    const proto::TypeProto *stated = types.lookup(node.output(i));
    resultTypes.push_back(stated ? importType(context, *stated) : onnx::AnyType::get(context));
  }
  SmallVector<StringRef> graphNames;
  SmallVector<const proto::GraphProto *> graphs;
  for (const proto::AttributeProto &attribute : node.attribute()) {
    if (attribute.has_g())
      graphs.push_back(&attribute.g());
    for (const proto::GraphProto &graph : attribute.graphs())
      graphs.push_back(&graph);
    graphNames.resize(graphs.size(), attribute.name());
  }
  auto op = onnx::NodeOp::create(
      builder, location, resultTypes, builder.getStringAttr(node.op_type()),
      optionalString(StringRef(canonicalDomain(node.domain()))), optionalString(node.overload()),
      builder.getI64IntegerAttr(sinceVersion(node, opsets)), optionalString(node.name()), inputs, *attributes,
      names(resultNames), graphs.empty() ? ArrayAttr() : names(graphNames),
      static_cast<unsigned>(graphs.size()));
  if (node.op_type() == "BatchNormalization")
    if (TracedNorm said = findTracedNorm(node, model.getProto().graph()); said != TracedNorm::unknown)
      op->setAttr(onnx::kTracedNorm,
                  builder.getStringAttr(said == TracedNorm::batch ? onnx::kBatch : onnx::kBatchOnly));
  if (TracedTies said = findTracedTies(node); said != TracedTies::unknown)
    op->setAttr(onnx::kTracedTies, builder.getStringAttr(said == TracedTies::bound    ? onnx::kBound
                                                         : said == TracedTies::shared ? onnx::kShared
                                                                                      : onnx::kFirst));
  if (isOfMaskedAttention(node))
    op->setAttr(onnx::kMaskedAttention, builder.getUnitAttr());
  if (double smoothing = findLabelSmoothing(node))
    op->setAttr(onnx::kLabelSmoothing, builder.getF64FloatAttr(smoothing));
  for (auto [region, graph] : llvm::zip(op.getGraphs(), graphs)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&region);
    if (failed(importGraph(*graph, &values, opsets)))
      return failure();
  }
  for (auto [name, result] : llvm::zip(resultNames, op.getResults()))
    if (!name.empty())
      values.byName[name] = result;
  return success();
}

FailureOr<OwningOpRef<ModuleOp>> importModel(const std::shared_ptr<const Model> &model, MLIRContext &context,
                                             Status &status) {
  context.getOrLoadDialect<onnx::OnnxDialect>();
  status = Status();
  FailureOr<OwningOpRef<ModuleOp>> module = Importer(*model, context, status).run();
  if (failed(module)) {
    status = Status::refusal("'" + model->getName() + "': " + status.getMessage());
    return failure();
  }
  std::string message;
  ScopedDiagnosticHandler capture(&context, [&](Diagnostic &diagnostic) {
    if (message.empty())
      message = diagnostic.str();
  });
  if (failed(verify(module->get()))) {
    status = Status::refusal("'" + model->getName() + "': " + message);
    return failure();
  }
  return module;
}

FailureOr<OwningOpRef<ModuleOp>> importModel(const std::string &path, MLIRContext &context, Status &status,
                                             const Limits &limits) {
  std::shared_ptr<const Model> model;
  status = Model::load(path, model, limits);
  if (!status.isOk())
    return failure();
  return importModel(model, context, status);
}

} // namespace ortc::frontend
