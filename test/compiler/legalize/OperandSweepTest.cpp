// Every operator with operands it must not have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every operator that is legalised, in every version that a model may select, with each number of inputs and
// outputs, each input absent (in the node, and in a call of the function around it), each attribute missing
// or of another kind, and operands of other element types and ranks. What the definition excludes is refused
// with a message; the rest may be refused, too. A crash fails the program.
#include "compiler/frontend/Importer.h"
#include "compiler/legalize/Legalize.h"
#include "compiler/legalize/Table.h"
#include "compiler/passes/import/Passes.h"
#include "dialects/onnx/OnnxOperators.h"
#include "test/compiler/frontend/ModelBuilder.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <set>

using namespace mlir;
using namespace ortc;
using namespace ortc::legalize;
using onnx::OperatorDefinition;

namespace {

/// One node of that operator, as it is to be tried.
struct Trial {
  const OperatorDefinition *definition = nullptr;
  int64_t opset = 0;
  std::vector<bool> inputs; ///< whether each is given
  size_t outputs = 1;
  std::vector<int64_t> shape = {2, 4};
  int32_t type = 0;    ///< of all inputs; 0: one that the definition takes
  size_t oddInput = 0; ///< this one has another type, unless that is 0
  int32_t oddType = 0;
  std::string attribute; ///< this one is missing, or
  char kind = 0;         ///< of this kind
  bool isCall = false;   ///< the node stands in a function, and what is absent is absent in its call
};

/// The attributes of a definition: name, kind, whether it is required.
struct Formal {
  std::string name;
  char kind;
  bool isRequired;
};

std::vector<Formal> attributesOf(const OperatorDefinition &definition) {
  std::vector<Formal> formals;
  llvm::SmallVector<llvm::StringRef> items;
  llvm::StringRef(definition.attributes).split(items, ' ', -1, false);
  for (llvm::StringRef item : items) {
    auto [name, kind] = item.split(':');
    formals.push_back({name.str(), kind[0], kind.ends_with("!")});
  }
  return formals;
}

/// The letter of formal input `i` and the set of its types; '-' and 0 where nothing is said.
std::pair<char, uint32_t> typesOf(const OperatorDefinition &definition, size_t i) {
  llvm::SmallVector<llvm::StringRef> items;
  llvm::StringRef(definition.types).split(items, ' ', -1, false);
  uint32_t set = 0;
  if (items.empty())
    return {'-', set};
  llvm::StringRef item = items[std::min(i, items.size() - 1)];
  (void)item.drop_front().getAsInteger(16, set);
  return {item.front(), set};
}

/// Types that stand for each other: programs in float64 have no other floating-point type.
constexpr int32_t kFloats[] = {proto::TensorProto::FLOAT, proto::TensorProto::FLOAT16,
                               proto::TensorProto::DOUBLE, proto::TensorProto::BFLOAT16};

/// Whether the definition lets input `i` have that type.
bool takes(const OperatorDefinition &definition, size_t i, int32_t type) {
  uint32_t set = typesOf(definition, i).second;
  return !set || set >> type & 1 ||
         (llvm::is_contained(kFloats, type) &&
          llvm::any_of(kFloats, [&](int32_t other) { return set >> other & 1; }));
}

/// A type that input `i` may have.
int32_t typeOf(const OperatorDefinition &definition, size_t i) {
  uint32_t set = typesOf(definition, i).second;
  for (int32_t type : {proto::TensorProto::FLOAT, proto::TensorProto::INT64, proto::TensorProto::INT32,
                       proto::TensorProto::BOOL, proto::TensorProto::UINT8, proto::TensorProto::INT8})
    if (set >> type & 1)
      return type;
  return proto::TensorProto::FLOAT;
}

void setValue(proto::AttributeProto *attribute, char kind) {
  using Proto = proto::AttributeProto;
  auto setTensor = [](proto::TensorProto *tensor) {
    tensor->set_data_type(proto::TensorProto::FLOAT);
    tensor->add_dims(1);
    tensor->add_float_data(1);
  };
  switch (kind) {
  case 'f':
    attribute->set_type(Proto::FLOAT);
    return attribute->set_f(1);
  case 'i':
    attribute->set_type(Proto::INT);
    return attribute->set_i(1);
  case 's':
    attribute->set_type(Proto::STRING);
    return attribute->set_s("x");
  case 't':
    attribute->set_type(Proto::TENSOR);
    return setTensor(attribute->mutable_t());
  case 'F':
    attribute->set_type(Proto::FLOATS);
    return attribute->add_floats(1);
  case 'I':
    attribute->set_type(Proto::INTS);
    return attribute->add_ints(1);
  case 'S':
    attribute->set_type(Proto::STRINGS);
    return void(attribute->add_strings("x"));
  case 'g': {
    attribute->set_type(Proto::GRAPH);
    proto::GraphProto *graph = attribute->mutable_g();
    graph->set_name("body");
    frontend::test::addInitializer(graph, "inner_" + attribute->name(), {1});
    frontend::test::setType(graph->add_output(), "inner_" + attribute->name(), {1});
    return;
  }
  default:
    attribute->set_type(Proto::TYPE_PROTO);
    attribute->mutable_tp()->mutable_tensor_type()->set_elem_type(proto::TensorProto::FLOAT);
  }
}

proto::ModelProto modelOf(const Trial &trial) {
  const OperatorDefinition &definition = *trial.definition;
  proto::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(definition.domain.empty() ? trial.opset : 17);
  if (!definition.domain.empty()) {
    auto *import = model.add_opset_import();
    import->set_domain(std::string(definition.domain));
    import->set_version(std::max<int64_t>(trial.opset, 1));
  }
  proto::GraphProto *graph = model.mutable_graph();
  graph->set_name("g");
  proto::NodeProto node;
  node.set_op_type(std::string(definition.name));
  node.set_domain(std::string(definition.domain));
  node.set_name("tried");
  for (size_t i = 0; i < trial.inputs.size(); ++i) {
    std::string name = "x" + std::to_string(i);
    node.add_input(trial.inputs[i] || trial.isCall ? name : "");
    if (!trial.inputs[i])
      continue;
    proto::ValueInfoProto *input = frontend::test::setType(graph->add_input(), name, {});
    auto *type = input->mutable_type()->mutable_tensor_type();
    bool isOdd = trial.oddType && i == trial.oddInput;
    type->set_elem_type(isOdd ? trial.oddType : trial.type ? trial.type : typeOf(definition, i));
    for (int64_t size : trial.shape)
      type->mutable_shape()->add_dim()->set_dim_value(size);
  }
  for (size_t i = 0; i < trial.outputs; ++i)
    node.add_output("y" + std::to_string(i));
  for (const Formal &formal : attributesOf(definition)) {
    bool isTried = formal.name == trial.attribute;
    if (isTried ? trial.kind == 0 : !formal.isRequired)
      continue;
    proto::AttributeProto *attribute = node.add_attribute();
    attribute->set_name(formal.name);
    setValue(attribute, isTried ? trial.kind : formal.kind);
  }
  if (trial.isCall) {
    proto::FunctionProto *function = model.add_functions();
    function->set_name("Wrapped");
    function->set_domain("test");
    for (const auto &import : model.opset_import())
      *function->add_opset_import() = import;
    for (const std::string &name : node.input())
      function->add_input(name);
    for (const std::string &name : node.output())
      function->add_output(name);
    *function->add_node() = node;
    node.clear_attribute();
    node.set_op_type("Wrapped");
    node.set_domain("test");
    for (int i = 0; i < node.input_size(); ++i)
      if (!trial.inputs[static_cast<size_t>(i)])
        node.set_input(i, "");
  }
  *graph->add_node() = node;
  for (const std::string &name : node.output())
    graph->add_output()->set_name(name);
  return model;
}

/// The message with which the model is refused; "" when it is compiled.
std::string refusalOf(const Trial &trial, MLIRContext &context) {
  std::shared_ptr<const frontend::Model> model;
  Status status = frontend::Model::parse(modelOf(trial).SerializeAsString(), "m", ".", model);
  if (!status.isOk())
    return status.getMessage();
  auto source = frontend::importModel(model, context, status);
  if (failed(source))
    return status.getMessage();
  std::string message;
  ScopedDiagnosticHandler capture(&context, [&](Diagnostic &diagnostic) { message += diagnostic.str(); });
  PassManager passes(&context);
  passes.addPass(import::createInlineFunctionsPass());
  if (failed(passes.run(**source)))
    return message.empty() ? "inlining failed without a message" : message;
  OwningOpRef<ModuleOp> target = ModuleOp::create(UnknownLoc::get(&context));
  LegalizeOptions options;
  options.mode = Mode::eval;
  options.trains = false;
  LegalizeReport report;
  if (succeeded(ortc::legalize::legalize(**source, *target, options, report)))
    return "";
  return report.message();
}

/// Types are looked at before anything else of the operands.
bool isAboutTypes(const std::string &message) { return message.find("element type") != std::string::npos; }

class OperandSweepTest : public testing::TestWithParam<std::string> {};

TEST_P(OperandSweepTest, IsRefusedOrCompiled) {
  std::set<const OperatorDefinition *> tried;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  for (int64_t opset = onnx::kOldestOpset; opset <= onnx::kNewestOpset; ++opset)
    for (const Operator &entry : getOperators()) {
      if (entry.name.str() + entry.domain.str() != GetParam())
        continue;
      int64_t selected = entry.domain.empty() ? opset : opset - onnx::kOldestOpset;
      const OperatorDefinition *definition = onnx::findOperator(entry.domain, entry.name, selected);
      if (!definition || definition->since < entry.first || definition->since > entry.last ||
          !tried.insert(definition).second)
        continue;
      SCOPED_TRACE("opset " + std::to_string(selected));
      size_t least = definition->minInputs, formal = definition->inputs.size();
      bool isVariadic = formal && definition->inputs.back() == 'v';
      Trial base;
      base.definition = definition;
      base.opset = selected;
      base.inputs.assign(least, true);
      base.outputs = std::max<size_t>(definition->minOutputs, 1);
      // Numbers of inputs and outputs.
      for (size_t count = 0; count <= formal + 2; ++count)
        for (bool isCall : {false, true}) {
          Trial trial = base;
          trial.inputs.assign(count, true);
          trial.isCall = isCall;
          bool fits = count >= least && (isVariadic || count <= formal);
          std::string message = refusalOf(trial, context);
          EXPECT_TRUE(fits || !message.empty()) << count << " inputs";
        }
      for (size_t count = 0; count <= definition->outputs.size() + 2; ++count) {
        Trial trial = base;
        trial.outputs = count;
        bool isOpen = !definition->outputs.empty() && definition->outputs.back() == 'v';
        bool fits = count >= definition->minOutputs && (isOpen || count <= definition->outputs.size());
        std::string message = refusalOf(trial, context);
        EXPECT_TRUE(fits || !message.empty()) << count << " outputs";
      }
      // Absent inputs.
      for (size_t count : {least, formal})
        for (size_t absent = 0; absent < count; ++absent)
          for (bool isCall : {false, true}) {
            Trial trial = base;
            trial.inputs.assign(count, true);
            trial.inputs[absent] = false;
            trial.isCall = isCall;
            std::string message = refusalOf(trial, context);
            EXPECT_TRUE(definition->inputs[absent] == 'o' || absent >= least || !message.empty())
                << "input " << absent << " of " << count << " absent";
          }
      // Attributes.
      for (const Formal &attribute : attributesOf(*definition))
        for (char kind : {'\0', 'f', 'i', 's', 't', 'F', 'I', 'S', 'g'}) {
          Trial trial = base;
          trial.attribute = attribute.name;
          trial.kind = kind;
          std::string message = refusalOf(trial, context);
          bool fits = kind ? kind == attribute.kind : !attribute.isRequired;
          EXPECT_TRUE(fits || !message.empty()) << "attribute " << attribute.name << " of kind " << kind;
        }
      // Element types and ranks.
      for (int32_t type = 0; type < proto::TensorProto::DataType_ARRAYSIZE; ++type)
        for (size_t count : {least, formal})
          for (const std::vector<int64_t> &shape :
               {std::vector<int64_t>{2, 4}, {}, {0}, {1, 1, 1, 1}, {2, 3, 4, 4}}) {
            if (type && shape.size() != 2)
              continue;
            Trial trial = base;
            trial.inputs.assign(count, true);
            trial.type = type;
            trial.shape = shape;
            bool fits = true;
            for (size_t i = 0; type && i < count; ++i)
              fits &= takes(*definition, i, type);
            std::string message = refusalOf(trial, context);
            EXPECT_TRUE(fits || isAboutTypes(message))
                << count << " inputs of type " << type << ": " << message;
          }
      // One input of a type that it may not have, or not beside the others.
      for (int32_t type : {proto::TensorProto::FLOAT, proto::TensorProto::DOUBLE, proto::TensorProto::INT64,
                           proto::TensorProto::INT32, proto::TensorProto::BOOL, proto::TensorProto::UINT8})
        for (size_t odd = 0; odd < formal; ++odd) {
          Trial trial = base;
          trial.inputs.assign(formal, true);
          trial.oddInput = odd;
          trial.oddType = type;
          char letter = typesOf(*definition, odd).first;
          bool fits = takes(*definition, odd, type);
          for (size_t i = 0; i < formal; ++i)
            fits &= i == odd || letter == '-' || typesOf(*definition, i).first != letter ||
                    typeOf(*definition, i) == type;
          std::string message = refusalOf(trial, context);
          EXPECT_TRUE(fits || isAboutTypes(message))
              << "input " << odd << " of type " << type << ": " << message;
        }
    }
  EXPECT_FALSE(tried.empty()) << "no opset selects it, or nothing is known of its operands";
}

std::vector<std::string> operatorNames() {
  std::set<std::string> names;
  for (const Operator &entry : getOperators())
    names.insert(entry.name.str() + entry.domain.str());
  return {names.begin(), names.end()};
}

INSTANTIATE_TEST_SUITE_P(Operators, OperandSweepTest, testing::ValuesIn(operatorNames()),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

} // namespace
