// Models that have to be refused, with the message.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ModelBuilder.h"

#include <functional>
#include <gtest/gtest.h>

using namespace ortc;
using namespace ortc::frontend;
using namespace ortc::frontend::test;
using proto::AttributeProto;
using proto::TensorProto;

namespace {

/// A way to break the small model, and what the checker says.
struct Malformed {
  const char *name;
  std::function<void(proto::ModelProto &)> change;
  const char *message;
};

std::ostream &operator<<(std::ostream &out, const Malformed &malformed) { return out << malformed.name; }

proto::GraphProto *graphOf(proto::ModelProto &m) { return m.mutable_graph(); }
TensorProto *weight(proto::ModelProto &m) { return graphOf(m)->mutable_initializer(0); }
proto::NodeProto *relu(proto::ModelProto &m) { return graphOf(m)->mutable_node(1); }

/// Replaces Relu by an If whose then-branch is returned; the else-branch is well-formed.
proto::GraphProto *makeIf(proto::ModelProto &m) {
  proto::GraphProto *graph = graphOf(m);
  auto *condition = graph->add_initializer();
  condition->set_name("c");
  condition->set_data_type(TensorProto::BOOL);
  condition->add_int32_data(1);
  relu(m)->Clear();
  relu(m)->set_op_type("If");
  relu(m)->set_name("choice");
  relu(m)->add_input("c");
  relu(m)->add_output("y");
  proto::GraphProto *branches[2];
  for (int i = 0; i < 2; ++i) {
    branches[i] =
        addAttribute(relu(m), i ? "else_branch" : "then_branch", AttributeProto::GRAPH)->mutable_g();
    branches[i]->set_name("branch");
    addNode(branches[i], "Relu", {"h"}, {"r"});
    setType(branches[i]->add_output(), "r", {2, 4});
  }
  return branches[0];
}

/// Adds function custom.F(a) -> b with one Relu, and calls it in place of the model's Relu.
proto::FunctionProto *makeFunction(proto::ModelProto &m) {
  proto::FunctionProto *function = m.add_functions();
  function->set_domain("custom");
  function->set_name("F");
  function->add_input("a");
  function->add_output("b");
  function->add_opset_import()->set_version(17);
  addNode(function->mutable_node(), "Relu", {"a"}, {"b"});
  relu(m)->set_op_type("F");
  relu(m)->set_domain("custom");
  return function;
}

proto::SparseTensorProto *makeSparse(proto::ModelProto &m, std::initializer_list<int64_t> indices) {
  auto *sparse = graphOf(m)->add_sparse_initializer();
  sparse->add_dims(2);
  sparse->add_dims(3);
  sparse->mutable_values()->set_name("s");
  sparse->mutable_values()->set_data_type(TensorProto::FLOAT);
  sparse->mutable_values()->add_dims(static_cast<int64_t>(indices.size()));
  sparse->mutable_indices()->set_data_type(TensorProto::INT64);
  sparse->mutable_indices()->add_dims(static_cast<int64_t>(indices.size()));
  for (int64_t index : indices) {
    sparse->mutable_values()->add_float_data(1);
    sparse->mutable_indices()->add_int64_data(index);
  }
  return sparse;
}

const Malformed kMalformed[] = {
    {"NoGraph", [](auto &m) { m.clear_graph(); },
     "there is no graph in the file; it is no ONNX model, or was cut short"},
    {"NoIrVersion", [](auto &m) { m.clear_ir_version(); },
     "the IR version is 0; it is no ONNX model, or is damaged"},
    {"NoOpset", [](auto &m) { m.clear_opset_import(); },
     "the model imports no opset (opset 1 is meant); the oldest supported is 7; export again, or convert "
     "with "
     "onnx.version_converter"},
    {"OldOpset", [](auto &m) { m.mutable_opset_import(0)->set_version(6); },
     "the model imports opset 6; the oldest supported is 7; export again, or convert with "
     "onnx.version_converter"},
    {"NewOpset", [](auto &m) { m.mutable_opset_import(0)->set_version(29); },
     "the model imports opset 29; the newest supported is 28; export with an older opset"},
    {"TwoOpsets",
     [](auto &m) {
       m.add_opset_import()->set_domain("ai.onnx");
       m.mutable_opset_import(1)->set_version(18);
     },
     "the model imports the default domain in versions 17 and 18"},
    {"OpsetOfOtherDomainOnly", [](auto &m) { m.mutable_opset_import(0)->set_domain("ai.onnx.ml"); },
     "node 'dense' (MatMul): no opset is imported for the default domain"},
    {"Cycle", [](auto &m) { graphOf(m)->mutable_node(0)->set_input(0, "y"); },
     "the graph has a cycle: node 'dense' (MatMul) needs node 'act' (Relu) needs node 'dense' (MatMul)"},
    {"SelfCycle", [](auto &m) { relu(m)->set_input(0, "y"); },
     "the graph has a cycle: node 'act' (Relu) needs node 'act' (Relu)"},
    {"CycleThroughSubgraph", [](auto &m) { makeIf(m)->mutable_node(0)->set_input(0, "y"); },
     "the graph has a cycle: node 'choice' (If) needs node 'choice' (If)"},
    {"DanglingInput", [](auto &m) { relu(m)->set_input(0, "nowhere"); },
     "node 'act' (Relu): nothing produces the input 'nowhere'"},
    {"DanglingOutput", [](auto &m) { graphOf(m)->mutable_output(0)->set_name("z"); },
     "nothing produces the output 'z'"},
    {"DanglingInSubgraph", [](auto &m) { makeIf(m)->mutable_node(0)->set_input(0, "nowhere"); },
     "node 'choice' (If): attribute 'then_branch': node 'r' (Relu): nothing produces the input 'nowhere'"},
    {"NoOutputs", [](auto &m) { graphOf(m)->clear_output(); }, "the graph has no outputs"},
    {"DuplicateOutputOfNodes", [](auto &m) { relu(m)->set_output(0, "h"); },
     "node 'act' (Relu): the output 'h' is already the name of another value"},
    {"OutputNamedAsInitializer", [](auto &m) { relu(m)->set_output(0, "w"); },
     "node 'act' (Relu): the output 'w' is already the name of another value"},
    {"DuplicateInput", [](auto &m) { *graphOf(m)->add_input() = graphOf(m)->input(0); },
     "two inputs are named 'x'"},
    {"DuplicateInitializer", [](auto &m) { *graphOf(m)->add_initializer() = graphOf(m)->initializer(0); },
     "two initializers are named 'w'"},
    {"DuplicateGraphOutput", [](auto &m) { *graphOf(m)->add_output() = graphOf(m)->output(0); },
     "two outputs are named 'y'"},
    {"DuplicateAttribute",
     [](auto &m) {
       addAttribute(relu(m), "a", AttributeProto::INT);
       addAttribute(relu(m), "a", AttributeProto::INT);
     },
     "node 'act' (Relu): two attributes are named 'a'"},
    {"NamelessInput", [](auto &m) { graphOf(m)->mutable_input(0)->clear_name(); }, "an input has no name"},
    {"NamelessOutput", [](auto &m) { graphOf(m)->mutable_output(0)->clear_name(); }, "an output has no name"},
    {"NamelessInitializer", [](auto &m) { weight(m)->clear_name(); }, "an initializer has no name"},
    {"NamelessAttribute", [](auto &m) { addAttribute(relu(m), "", AttributeProto::INT); },
     "node 'act' (Relu): an attribute has no name"},
    {"NamelessOperator", [](auto &m) { relu(m)->clear_op_type(); }, "node 'act' (): it names no operator"},
    {"InputWithoutType", [](auto &m) { graphOf(m)->mutable_input(0)->clear_type(); },
     "input 'x': it has no type"},
    {"InputOfUnknownType",
     [](auto &m) { graphOf(m)->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(99); },
     "input 'x': unknown data type 99"},
    {"NegativeInputDim",
     [](auto &m) {
       graphOf(m)
           ->mutable_input(0)
           ->mutable_type()
           ->mutable_tensor_type()
           ->mutable_shape()
           ->mutable_dim(1)
           ->set_dim_value(-7);
     },
     "input 'x': dimension 1 is -7"},
    {"InitializerContradictsInput",
     [](auto &m) {
       setType(graphOf(m)->add_input(), "w", {3, 4})->mutable_type()->mutable_tensor_type()->set_elem_type(7);
     },
     "initializer 'w' is FLOAT but the input of that name is INT64"},
    // Tensors.
    {"RawTooShort", [](auto &m) { weight(m)->mutable_raw_data()->pop_back(); },
     "initializer 'w': raw_data has 47 bytes but shape [3,4] of FLOAT needs 48"},
    {"RawTooLong", [](auto &m) { weight(m)->mutable_raw_data()->push_back(0); },
     "initializer 'w': raw_data has 49 bytes but shape [3,4] of FLOAT needs 48"},
    {"NoData", [](auto &m) { weight(m)->clear_raw_data(); },
     "initializer 'w': FLOAT tensor of shape [3,4] needs 12 entries in float_data but has 0"},
    {"TooFewEntries",
     [](auto &m) {
       weight(m)->clear_raw_data();
       weight(m)->add_float_data(1);
     },
     "initializer 'w': FLOAT tensor of shape [3,4] needs 12 entries in float_data but has 1"},
    {"NegativeDim", [](auto &m) { weight(m)->set_dims(0, -3); },
     "initializer 'w': shape [-3,4] has a negative dimension"},
    {"ElementsOverflow",
     [](auto &m) {
       weight(m)->set_dims(0, int64_t(1) << 40);
       weight(m)->set_dims(1, int64_t(1) << 40);
     },
     "initializer 'w': the number of elements of shape [1099511627776,1099511627776] overflows 63 bits"},
    {"BytesOverflow", [](auto &m) { weight(m)->set_dims(0, int64_t(1) << 59); },
     "initializer 'w': the size of shape [576460752303423488,4] overflows 63 bits"},
    {"NoDataType", [](auto &m) { weight(m)->clear_data_type(); }, "initializer 'w': has no data type"},
    {"UnknownDataType", [](auto &m) { weight(m)->set_data_type(29); },
     "initializer 'w': unknown data type 29"},
    {"NegativeDataType", [](auto &m) { weight(m)->set_data_type(-1); },
     "initializer 'w': unknown data type -1"},
    {"RawAndTyped", [](auto &m) { weight(m)->add_float_data(1); },
     "initializer 'w': has raw_data and float_data"},
    {"WrongField",
     [](auto &m) {
       weight(m)->clear_raw_data();
       weight(m)->add_int64_data(1);
     },
     "initializer 'w': FLOAT data is stored in int64_data"},
    {"RawStrings", [](auto &m) { weight(m)->set_data_type(TensorProto::STRING); },
     "initializer 'w': STRING data has to be in string_data, not in raw_data or an external file"},
    {"EntryOutOfRange",
     [](auto &m) {
       weight(m)->Clear();
       weight(m)->set_name("w");
       weight(m)->set_data_type(TensorProto::INT8);
       weight(m)->add_dims(1);
       weight(m)->add_int32_data(300);
     },
     "initializer 'w': int32_data[0] = 300 is no value of INT8"},
    {"BooleanTwo",
     [](auto &m) {
       weight(m)->set_data_type(TensorProto::BOOL);
       weight(m)->set_raw_data(std::string(11, '\1') + '\2');
     },
     "initializer 'w': BOOL element 11 is 2, not 0 or 1"},
    {"Segments", [](auto &m) { weight(m)->mutable_segment()->set_begin(0); },
     "initializer 'w': tensors stored in segments are not supported; export the model again"},
    {"SparseIndexOutside", [](auto &m) { makeSparse(m, {1, 6}); },
     "initializer 's': index 6 is outside of shape [2,3]"},
    {"SparseIndexNegative", [](auto &m) { makeSparse(m, {-1}); },
     "initializer 's': index -1 is outside of shape [2,3]"},
    {"SparseNotSorted", [](auto &m) { makeSparse(m, {3, 3}); },
     "initializer 's': indices of a sparse tensor are not in ascending order at entry 1"},
    {"SparseIndicesOfWrongCount", [](auto &m) { makeSparse(m, {1, 2})->mutable_indices()->set_dims(0, 1); },
     "initializer 's': indices of a sparse tensor: INT64 tensor of shape [1] needs 1 entry in int64_data "
     "but has 2"},
    {"SparseTooLarge", [](auto &m) { makeSparse(m, {1})->set_dims(0, int64_t(1) << 40); },
     "initializer 's': a sparse tensor of shape [1099511627776,3] needs 13194139533312 bytes when made "
     "dense, the limit "
     "is 268435712"},
    {"TensorAttribute",
     [](auto &m) {
       relu(m)->clear_input();
       relu(m)->set_op_type("Constant");
       TensorProto *value = addAttribute(relu(m), "value", AttributeProto::TENSOR)->mutable_t();
       value->set_data_type(TensorProto::INT64);
       value->add_dims(2);
       value->add_int64_data(5);
     },
     "node 'act' (Constant): attribute 'value': INT64 tensor of shape [2] needs 2 entries in int64_data but "
     "has 1"},
    // External data; where a file is needed, see ExternalDataTest.
    {"ExternalAbsolute", [](auto &m) { setExternal(weight(m), {{"location", "/etc/hostname"}}); },
     "initializer 'w': external data file '/etc/hostname' is an absolute path; data has to lie in the "
     "model's folder"},
    {"ExternalDotDot", [](auto &m) { setExternal(weight(m), {{"location", "a/../../secret"}}); },
     "initializer 'w': external data file 'a/../../secret' leaves the model's folder by '..'; data has to "
     "lie in the "
     "model's folder"},
    {"ExternalNoLocation", [](auto &m) { setExternal(weight(m), {{"length", "48"}}); },
     "initializer 'w': external data has no location"},
    {"ExternalBadOffset", [](auto &m) { setExternal(weight(m), {{"location", "w"}, {"offset", "-4"}}); },
     "initializer 'w': external data has the offset '-4', which is no number of bytes"},
    {"ExternalBadLength",
     [](auto &m) { setExternal(weight(m), {{"location", "w"}, {"length", "99999999999999999999"}}); },
     "initializer 'w': external data has the length '99999999999999999999', which is no number of bytes"},
    // Nodes.
    {"TooFewInputs", [](auto &m) { graphOf(m)->mutable_node(0)->mutable_input()->RemoveLast(); },
     "node 'dense' (MatMul): MatMul of version 13 takes 2 inputs, not 1"},
    {"TooManyInputs", [](auto &m) { relu(m)->add_input("x"); },
     "node 'act' (Relu): Relu of version 14 takes 1 input, not 2"},
    {"RequiredInputEmpty", [](auto &m) { graphOf(m)->mutable_node(0)->set_input(0, ""); },
     "node 'dense' (MatMul): MatMul of version 13 takes no empty name for input 0, which is required"},
    {"VariadicInputEmpty",
     [](auto &m) {
       graphOf(m)->mutable_node(0)->set_op_type("Max");
       graphOf(m)->mutable_node(0)->set_input(0, "");
     },
     "node 'dense' (Max): Max of version 13 takes no empty name for input 0, which is required"},
    {"TooManyOutputs", [](auto &m) { relu(m)->add_output("more"); },
     "node 'act' (Relu): Relu of version 14 has 1 output, not 2"},
    {"UnknownAttribute", [](auto &m) { addAttribute(relu(m), "slope", AttributeProto::FLOAT)->set_f(1); },
     "node 'act' (Relu): Relu of version 14 has no attribute 'slope'"},
    {"AttributeOfOtherType",
     [](auto &m) {
       relu(m)->set_op_type("Softmax");
       addAttribute(relu(m), "axis", AttributeProto::FLOAT)->set_f(1);
     },
     "node 'act' (Softmax): attribute 'axis' of Softmax of version 13 is of type int, not float"},
    {"MissingAttribute", [](auto &m) { relu(m)->set_op_type("Cast"); },
     "node 'act' (Cast): Cast of version 13 needs the attribute 'to'"},
    {"AttributeWithoutType", [](auto &m) { relu(m)->add_attribute()->set_name("a"); },
     "node 'act' (Relu): attribute 'a': it has no type, or one this version does not know"},
    {"AttributeHoldsOther", [](auto &m) { addAttribute(relu(m), "a", AttributeProto::INT)->add_ints(1); },
     "node 'act' (Relu): attribute 'a': its type is int but it holds a value of type ints"},
    {"TensorAttributeEmpty", [](auto &m) { addAttribute(relu(m), "a", AttributeProto::TENSOR); },
     "node 'act' (Relu): attribute 'a': its type is tensor but it holds no value"},
    {"ReferenceOutsideFunction",
     [](auto &m) { addAttribute(relu(m), "a", AttributeProto::INT)->set_ref_attr_name("k"); },
     "node 'act' (Relu): attribute 'a': it refers to attribute 'k' of a function, but stands in no function"},
    // Functions.
    {"FunctionWithoutName", [](auto &m) { m.add_functions()->set_domain("d"); },
     "a function of domain 'd' has no name"},
    {"TwoFunctions",
     [](auto &m) {
       makeFunction(m);
       *m.add_functions() = m.functions(0);
     },
     "there are two functions 'F' of domain 'custom'"},
    {"FunctionRecursive",
     [](auto &m) {
       auto *node = makeFunction(m)->mutable_node(0);
       node->set_op_type("F");
       node->set_domain("custom");
     },
     "function 'F' calls itself, directly or through others"},
    {"FunctionOutput", [](auto &m) { makeFunction(m)->set_output(0, "c"); },
     "function 'F': nothing produces the output 'c'"},
    {"FunctionTwoInputs", [](auto &m) { makeFunction(m)->add_input("a"); },
     "function 'F': two inputs are named 'a'"},
    {"FunctionOpset", [](auto &m) { makeFunction(m)->mutable_opset_import(0)->set_version(3); },
     "function 'F' imports opset 3; the oldest supported is 7; export again, or convert with "
     "onnx.version_converter"},
    {"FunctionSeesNoOuterValues", [](auto &m) { makeFunction(m)->mutable_node(0)->set_input(0, "x"); },
     "function 'F': node 'b' (Relu): nothing produces the input 'x'"},
    {"FunctionReference",
     [](auto &m) {
       addAttribute(makeFunction(m)->mutable_node(0), "a", AttributeProto::INT)->set_ref_attr_name("k");
     },
     "function 'F': node 'b' (Relu): attribute 'a': the function has no attribute 'k', which it refers to"},
    {"FunctionCallWithTooManyInputs",
     [](auto &m) {
       makeFunction(m);
       relu(m)->add_input("x");
     },
     "node 'act' (F): function 'F' has 1 input and 1 output, not 2 and 1"},
    {"FunctionCallWithUnknownAttribute",
     [](auto &m) {
       makeFunction(m);
       addAttribute(relu(m), "k", AttributeProto::INT)->set_i(1);
     },
     "node 'act' (F): function 'F' has no attribute 'k'"},
    {"FunctionsExplode",
     [](auto &m) {
       makeFunction(m);
       for (int level = 0; level < 40; ++level) { // each calls the one before it twice: 2^40 nodes
         auto *function = m.add_functions();
         function->set_domain("custom");
         function->set_name("G" + std::to_string(level));
         function->add_input("a");
         function->add_output("c");
         std::string callee = level ? "G" + std::to_string(level - 1) : "F";
         addNode(function->mutable_node(), callee, {"a"}, {"b"})->set_domain("custom");
         addNode(function->mutable_node(), callee, {"b"}, {"c"})->set_domain("custom");
       }
       relu(m)->set_op_type("G39");
     },
     "the model has more than 200000 nodes once its functions are inlined"},
    {"NormWithoutScaleBeforeItsOpset",
     [](auto &m) {
       m.mutable_opset_import(0)->set_version(14);
       relu(m)->set_op_type("LayerNormalization");
     },
     "node 'act' (LayerNormalization): LayerNormalization takes 2 to 3 inputs, not 1"},
    {"ContributedArity",
     [](auto &m) {
       relu(m)->set_op_type("FusedMatMul");
       relu(m)->set_domain("com.microsoft");
     },
     "node 'act' (FusedMatMul): com.microsoft.FusedMatMul takes 2 inputs, not 1"},
    {"ContributedAttribute",
     [](auto &m) {
       relu(m)->set_op_type("MultiHeadAttention");
       relu(m)->set_domain("com.microsoft");
     },
     "node 'act' (MultiHeadAttention): com.microsoft.MultiHeadAttention needs the attribute 'num_heads'"},
    {"NameThatIsNoText",
     [](auto &m) {
       m.mutable_graph()->mutable_initializer(0)->set_name("w\xff");
       m.mutable_graph()->mutable_node(0)->set_input(1, "w\xff");
     },
     "the initializer 'w\\xff' is not text in UTF-8; rename it, or export the model again"},
    {"NameWithZeroByte", [](auto &m) { relu(m)->set_name(std::string("a\0b", 3)); },
     "the node name 'a\\x00b' is not text in UTF-8; rename it, or export the model again"},
    {"DimensionThatIsNoText",
     [](auto &m) {
       auto *shape =
           m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
       shape->mutable_dim(0)->set_dim_param("n\xc0\x80");
     },
     "the dimension 'n\\xc0\\x80' is not text in UTF-8; rename it, or export the model again"},
    {"MetadataThatIsNoText",
     [](auto &m) {
       auto *entry = m.add_metadata_props();
       entry->set_key("k");
       entry->set_value("\xed\xa0\x80"); // a surrogate
     },
     "the value of metadata '\\xed\\xa0\\x80' is not text in UTF-8; rename it, or export the model again"},
};

class MalformedModelTest : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedModelTest, IsRefusedWithItsMessage) {
  proto::ModelProto model = smallModel();
  GetParam().change(model);
  EXPECT_EQ(check(model), std::string("'m.onnx': ") + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(All, MalformedModelTest, testing::ValuesIn(kMalformed),
                         [](const auto &info) { return std::string(info.param.name); });

/// A place for a name, and what messages call it. The model is well-formed with any name there.
struct Place {
  const char *name, *what;
  std::function<void(proto::ModelProto &, const std::string &)> set;
};

std::ostream &operator<<(std::ostream &out, const Place &place) { return out << place.name; }

proto::TensorShapeProto::Dimension *rows(proto::ValueInfoProto *value) {
  return value->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0);
}

const Place kPlaces[] = {
    {"Producer", "the producer's name", [](auto &m, auto &name) { m.set_producer_name(name); }},
    {"Graph", "the graph", [](auto &m, auto &name) { graphOf(m)->set_name(name); }},
    {"Node", "the node name", [](auto &m, auto &name) { relu(m)->set_name(name); }},
    {"Input", "the input",
     [](auto &m, auto &name) {
       graphOf(m)->mutable_input(0)->set_name(name);
       graphOf(m)->mutable_node(0)->set_input(0, name);
     }},
    {"Output", "the output",
     [](auto &m, auto &name) {
       graphOf(m)->mutable_output(0)->set_name(name);
       relu(m)->set_output(0, name);
     }},
    {"Initializer", "the initializer",
     [](auto &m, auto &name) {
       weight(m)->set_name(name);
       graphOf(m)->mutable_node(0)->set_input(1, name);
     }},
    {"Result", "the output", // of the node that comes first
     [](auto &m, auto &name) {
       graphOf(m)->mutable_node(0)->set_output(0, name);
       relu(m)->set_input(0, name);
     }},
    {"Value", "the value", [](auto &m, auto &name) { setType(graphOf(m)->add_value_info(), name, {2, 4}); }},
    {"Dimension", "the dimension",
     [](auto &m, auto &name) { rows(graphOf(m)->mutable_input(0))->set_dim_param(name); }},
    {"Attribute", "the attribute",
     [](auto &m, auto &name) {
       makeFunction(m)->add_attribute(name);
       addAttribute(relu(m), name, AttributeProto::INT);
     }},
    {"Operator", "the operator",
     [](auto &m, auto &name) {
       m.add_opset_import()->set_domain("custom");
       m.mutable_opset_import(1)->set_version(1);
       relu(m)->set_op_type(name);
       relu(m)->set_domain("custom");
     }},
    {"Function", "the function",
     [](auto &m, auto &name) {
       makeFunction(m)->set_name(name);
       relu(m)->set_op_type(name);
     }},
    {"Domain", "the domain of an opset",
     [](auto &m, auto &name) {
       m.add_opset_import()->set_domain(name);
       m.mutable_opset_import(1)->set_version(1);
     }},
    {"DomainOfFunction", "the domain",
     [](auto &m, auto &name) {
       makeFunction(m)->set_domain(name);
       relu(m)->set_domain(name);
     }},
    {"KeyOfMetadata", "the key of metadata",
     [](auto &m, auto &name) { m.add_metadata_props()->set_key(name); }},
};

class LongNamesTest : public testing::TestWithParam<Place> {};

TEST_P(LongNamesTest, AreRefused) {
  for (size_t size : {4096, 4097, 1 << 20}) {
    // Two bytes of a character are no half of it in a message.
    std::string name = std::string(39, 'n') + "\xc3\xa4";
    name.append(size - name.size(), 'n');
    proto::ModelProto model = smallModel();
    GetParam().set(model, name);
    EXPECT_EQ(check(model), size == 4096
                                ? ""
                                : std::string("'m.onnx': ") + GetParam().what + " '" + name.substr(0, 41) +
                                      "...': names have at most 4096 bytes, this one has " +
                                      std::to_string(size) + "; rename it, or export the model again");
  }
}

INSTANTIATE_TEST_SUITE_P(All, LongNamesTest, testing::ValuesIn(kPlaces),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(LongLinesTest, OfOwnMetadataAreRefused) {
  for (size_t size : {8193, 8194}) {
    proto::ModelProto model = smallModel();
    for (const char *key : {"ortc.frozen", "other"}) {
      auto *entry = model.add_metadata_props();
      entry->set_key(key);
      entry->set_value("w\n" + std::string(key[5] ? size : 1 << 20, 'n') + "\nx");
    }
    EXPECT_EQ(check(model), size == 8193
                                ? ""
                                : "'m.onnx': ortc.frozen of the model has a line of 8194 bytes, '" +
                                      std::string(40, 'n') +
                                      "...', but two names have at most 8193; a line has one name, or two "
                                      "around '='");
  }
}

TEST(LongTextTest, IsNoName) {
  const std::string text(1 << 20, 't');
  proto::ModelProto model = smallModel();
  model.set_doc_string(text);
  relu(model)->set_doc_string(text);
  auto *entry = model.add_metadata_props();
  entry->set_key("k");
  entry->set_value(text);
  makeFunction(model)->add_attribute("a");
  addAttribute(relu(model), "a", AttributeProto::STRING)->set_s(text);
  EXPECT_EQ(check(model), "");
}

TEST(SparseTensorsTest, AreMadeDenseWithinALimitForAll) {
  proto::ModelProto m = smallModel();
  for (int i = 0; i < 3; ++i) {
    proto::SparseTensorProto *sparse = makeSparse(m, {1});
    sparse->mutable_values()->set_name("s" + std::to_string(i));
    sparse->set_dims(0, 1000);
  }
  std::shared_ptr<const Model> checked;
  Limits limits;
  limits.sparseBytes = 30000; // of 3 * (2 * 3 * 1000 / 2 * 4 - 64 * 4)
  Status status = Model::parse(m.SerializeAsString(), "m", ".", checked, limits);
  EXPECT_NE(status.getMessage().find("with it, sparse tensors need more than 30000 bytes when made dense"),
            std::string::npos)
      << status.getMessage();
  limits.sparseBytes = 40000;
  EXPECT_TRUE(Model::parse(m.SerializeAsString(), "m", ".", checked, limits).isOk());
}

TEST(NotAModelTest, SaysWhatTheFileIs) {
  EXPECT_EQ(check(std::string()), "'m.onnx' is empty; export the model again");
  EXPECT_EQ(check(std::string("PK\3\4rest of an archive")),
            "'m.onnx' is a zip archive (a PyTorch or NumPy file?), not an ONNX model; export the network to "
            "ONNX first");
  EXPECT_EQ(check(std::string("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")),
            "'m.onnx' is a Git LFS pointer, not the model itself; fetch it with 'git lfs pull'");
  EXPECT_EQ(check(std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11)),
            "'m.onnx' is cut short: it ends inside a field that starts at byte 0; copy or export it again");
  EXPECT_EQ(check(std::string("\0\0\0\0", 4)),
            "'m.onnx' is not an ONNX model: there is no protobuf field at byte 0");
  EXPECT_EQ(check(std::string("\x0b", 1)),
            "'m.onnx' is not an ONNX model: field 1 at byte 0 is of no type that ONNX uses");
}

TEST(NotAModelTest, SaysWhereATruncatedFileEnds) {
  std::string bytes = smallModel().SerializeAsString();
  EXPECT_EQ(check(bytes.substr(0, 20)), "'m.onnx' is cut short or no ONNX model: field 7 at byte 2 needs " +
                                            std::to_string(smallModel().graph().ByteSizeLong()) +
                                            " bytes but 15 are left; copy or export it again");
}

TEST(NotAModelTest, RefusesFilesAboveTheLimit) {
  Limits limits;
  limits.modelBytes = 10;
  std::string bytes = smallModel().SerializeAsString();
  EXPECT_EQ(check(bytes, ".", limits), "'m.onnx' has " + std::to_string(bytes.size()) +
                                           " bytes, the limit is 10; store its tensors as external data");
}

TEST(NotAModelTest, RefusesWhatIsNoFile) {
  std::shared_ptr<const Model> model;
  EXPECT_EQ(Model::load("no/such.onnx", model).getMessage(),
            "no/such.onnx: cannot be opened: No such file or directory");
  EXPECT_EQ(Model::load("/", model).getMessage(), "/: is not a regular file");
  EXPECT_FALSE(model);
}

TEST(NotAModelTest, RefusesGraphsNestedTooDeeply) {
  proto::ModelProto model = smallModel();
  proto::GraphProto *graph = model.mutable_graph();
  for (int depth = 0; depth < 60; ++depth)
    graph =
        addAttribute(addNode(graph, "If", {"c"}, {"o"}), "then_branch", AttributeProto::GRAPH)->mutable_g();
  EXPECT_EQ(
      check(model),
      "'m.onnx' is not an ONNX model, or is damaged: a part of it is not a valid protobuf message or is "
      "nested too deeply");
}

} // namespace
