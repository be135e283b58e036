// Merged and copied parameters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/frontend/SharedInitializersFixture.h"

using namespace ortc;
using namespace ortc::frontend;
using namespace ortc::frontend::test;

namespace {

TEST_F(SharedInitializersTest, LeavesOrdinaryModelsAlone) {
  addValues("a", {3}, {1, 2, 3});
  addValues("b", {3}, {4, 5, 6});
  addNorms("a", "b", "b");
  EXPECT_EQ(resolve(), "");
  EXPECT_TRUE(report.warnings.empty() && report.notes.empty());
  EXPECT_EQ(model->getProto().SerializeAsString(), message.SerializeAsString());
}

TEST_F(SharedInitializersTest, RestoresTheParameterThatAnIdentityBearsTheNameOf) {
  addValues("norm1.weight", {3}, {1, 1, 1});
  addValues("bias", {3}, {1, 2, 3});
  addNode(graph, "Identity", {"norm1.weight"}, {"norm2.weight"}, "Identity_0");
  addNorms("norm1.weight", "norm2.weight", "bias");
  ASSERT_EQ(resolve(), "");
  EXPECT_EQ(bytes("norm2.weight"), bytes("norm1.weight"));
  ASSERT_EQ(model->getProto().graph().node_size(), 2);
  EXPECT_EQ(node(1).input(1), "norm2.weight");
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0],
            "1 parameter that the exporter had merged with an equal one is its own again: 'norm2.weight'; if "
            "the model ties them: --tie norm2.weight=norm1.weight");
  // As the note says.
  ASSERT_EQ(resolve({{}, {{"norm2.weight", "norm1.weight"}}}), "");
  EXPECT_EQ(node(1).input(1), "norm1.weight");
  EXPECT_EQ(model->getProto().graph().initializer_size(), 2);
}

TEST_F(SharedInitializersTest, AnIdentityOfAnotherNameStays) {
  for (const char *name : {"/layer/Identity_output_0", "onnx::Mul_12", "12", "y"}) {
    message.mutable_graph()->clear_node();
    message.mutable_graph()->clear_initializer();
    addValues("w", {2, 3}, {1, 2, 3, 4, 5, 6});
    addNode(graph, "Identity", {"w"}, {name}, "id");
    if (std::string(name) != "y")
      addNode(graph, "Add", {"x", name}, {"y"}, "add");
    ASSERT_EQ(resolve(), "");
    EXPECT_EQ(node(0).op_type(), "Identity") << name;
  }
}

TEST_F(SharedInitializersTest, WarnsOfFreshNormsThatAreOneAndUntiesThem) {
  addValues("ones", {3}, {1, 1, 1});
  addValues("bias", {3}, {1, 2, 3});
  addNorms("ones", "ones", "bias");
  ASSERT_EQ(resolve(), "");
  ASSERT_EQ(report.warnings.size(), 1u); // the bias is no fresh one
  EXPECT_EQ(
      report.warnings[0],
      "'ones' (all ones) is read by 2 normalisations, 'first' and 'second': exporters merge fresh weights "
      "that are equal, and these are trained as one; --untie ones gives each its own");
  ASSERT_EQ(resolve({{"ones"}, {}}), "");
  EXPECT_TRUE(report.warnings.empty());
  EXPECT_EQ(node(0).input(1), "ones");
  EXPECT_EQ(node(1).input(1), "second.ones");
  EXPECT_EQ(bytes("second.ones"), bytes("ones"));
}

TEST_F(SharedInitializersTest, NotesATransposedEmbeddingAndTiesIt) {
  addValues("table", {3, 2}, {1, 2, 3, 4, 5, 6});
  addValues("head", {2, 3}, {1, 3, 5, 2, 4, 6});
  addInitializer(graph, "rows", {2})->set_raw_data(std::string(16, '\0'));
  graph->mutable_initializer(2)->set_data_type(proto::TensorProto::INT64);
  addNode(graph, "Gather", {"table", "rows"}, {"h"}, "embed");
  addNode(graph, "MatMul", {"h", "head"}, {"z"}, "out");
  addNode(graph, "Add", {"z", "x"}, {"y"}, "add");
  ASSERT_EQ(resolve(), "");
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(
      report.notes[0],
      "'head' is a transposed copy of 'table', an embedding; they are trained apart. If the model ties them: "
      "--tie head=table");
  ASSERT_EQ(resolve({{}, {{"head", "table"}}}), "");
  EXPECT_TRUE(report.notes.empty());
  EXPECT_EQ(node(0).op_type(), "Transpose");
  EXPECT_EQ(node(0).input(0), "table");
  EXPECT_EQ(node(0).output(0), "head");
  EXPECT_EQ(node(1).op_type(), "Gather");
  EXPECT_EQ(model->getProto().graph().initializer_size(), 2);
}

TEST_F(SharedInitializersTest, RefusesWhatIsNotThere) {
  addValues("a", {3}, {1, 2, 3});
  addValues("b", {3}, {1, 2, 4});
  addNorms("a", "b", "b");
  EXPECT_EQ(resolve({{"c"}, {}}), "--untie c: the model has no initializer of that name");
  EXPECT_EQ(resolve({{"a"}, {}}), "--untie a: it has one reader only, 'first'");
  EXPECT_EQ(resolve({{}, {{"a", "c"}}}), "--tie a=c: the model has no initializer 'c'");
  EXPECT_EQ(resolve({{}, {{"a", "b"}}}),
            "--tie a=b: the first is neither equal to the second nor its transpose");
}

TEST_F(SharedInitializersTest, TiesWhatWasFoldedFromAParameterThatIsRead) {
  addValues("w", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  addValues("val_0", {3, 3}, {1, 4, 7, 2, 5, 8, 3, 6, 9});
  addValues("val_1", {3, 3}, {2, 4, 6, 8, 10, 12, 14, 16, 18});
  addNode(graph, "MatMul", {"x", "w"}, {"a"}, "first");
  addNode(graph, "MatMul", {"a", "val_0"}, {"b"}, "second");
  addNode(graph, "MatMul", {"b", "val_1"}, {"y"}, "third");
  auto *signature = graph->add_metadata_props();
  signature->set_key("pkg.torch.export.ExportedProgram.graph_signature");
  signature->set_value(
      "\n# inputs\np_w: PARAMETER target='w'\np_g: PARAMETER target='gone'\nx: USER_INPUT\n");
  annotate(graph, "w", kKind, "PARAMETER");
  annotate(graph, "val_0", kFoldedFrom, "['w']");
  annotate(graph, "val_1", kFoldedFrom, "['val_7', 'w']");
  ASSERT_EQ(resolve(), "");
  ASSERT_EQ(model->getProto().graph().initializer_size(), 2);
  EXPECT_EQ(node(0).op_type(), "Transpose");
  EXPECT_EQ(node(0).input(0), "w");
  ASSERT_EQ(report.notes.size(), 2u);
  EXPECT_EQ(report.notes[0], "'val_0', which the exporter folded from 'w', is tied to it again");
  EXPECT_EQ(report.notes[1],
            "1 parameter of the exported program is not in the file (tied, merged with equal ones, folded "
            "into others, or of no use): 'gone'");
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_EQ(report.warnings[0],
            "trained in place of the parameters that the exporter computed it from, which is another "
            "training: 'val_1' (from 'w'); export without folding (PyTorch: optimize=False)");
}

TEST_F(SharedInitializersTest, KnowsWhatTheExporterSaysOfInitializers) {
  for (const char *name : {"weight", "table", "folded", "lifted", "unknown"})
    addValues(name, {3}, {1, 2, 3});
  auto *signature = graph->add_metadata_props();
  signature->set_key("pkg.torch.export.ExportedProgram.graph_signature");
  signature->set_value("# inputs\np_weight: PARAMETER target='weight'\np_it: PARAMETER "
                       "target=\"it's\"\nb_table: BUFFER target='table'\n");
  annotate(graph, "weight", kKind, "PARAMETER");
  annotate(graph, "table", kKind, "BUFFER");
  annotate(graph, "folded", kFoldedFrom, "['a', \"it's\"]");
  annotate(graph, "lifted", kFoldedFrom, "['table', 'val_3']");
  annotate(graph, "unknown", "other", "PARAMETER");
  auto origins = findOrigins(*graph);
  EXPECT_EQ(origins.size(), 4u);
  EXPECT_EQ(origins["weight"].origin, Origin::parameter);
  EXPECT_EQ(origins["table"].origin, Origin::buffer);
  EXPECT_EQ(origins["folded"].origin, Origin::parameter);
  EXPECT_EQ(origins["lifted"].origin, Origin::constant);
}

TEST_F(SharedInitializersTest, WarnsOfWhatWasComputedFromParameters) {
  const char *const names[] = {"val_3",  "unsqueeze_1", "t",   "cat",
                               "expand", "embedding_1", "exp", "transpose"};
  auto *signature = graph->add_metadata_props();
  signature->set_key("pkg.torch.export.ExportedProgram.graph_signature");
  signature->set_value("p_w: PARAMETER target='w'\np_b: PARAMETER target='b'\n");
  std::vector<std::string> all{"x"};
  for (const char *name : names) {
    auto first = static_cast<float>(all.size()); // all differ: equal ones folded from one parameter are one
    addValues(name, {3}, {first, 2, 3});
    bool isBoth = name == std::string("cat") || name == std::string("transpose");
    annotate(graph, name, kFoldedFrom, isBoth ? "['b', 'w']" : "['w']");
    all.push_back(name);
  }
  auto *node = graph->add_node();
  node->set_op_type("Sum");
  node->add_output("y");
  for (const std::string &name : all)
    node->add_input(name);
  ASSERT_EQ(resolve(), "");
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_EQ(report.warnings[0],
            "trained in place of the parameters that the exporter computed it from, which is another "
            "training: 'embedding_1' (from 'w'), 'exp' (from 'w'), 'expand' (from 'w'), 'transpose' (from "
            "'b' and others); export without folding (PyTorch: optimize=False)");
}

TEST_F(SharedInitializersTest, RestoresWhatTheExportedProgramTook) {
  addValues("n1.weight", {3}, {1, 1, 1});
  addValues("n1.bias", {3}, {0, 0, 0});
  addValues("val_0", {3}, {1, 2, 3});
  addNode(graph, "LayerNormalization", {"x", "n1.weight", "n1.bias"}, {"a"}, "first");
  addNode(graph, "LayerNormalization", {"a", "n1.weight", "n1.bias"}, {"b"}, "second");
  addNode(graph, "Mul", {"b", "val_0"}, {"c"}, "third");
  addNode(graph, "Add", {"c", "n1.bias"}, {"y"}, "fourth");
  auto *signature = graph->add_metadata_props();
  signature->set_key("pkg.torch.export.ExportedProgram.graph_signature");
  signature->set_value("p_n1_weight: PARAMETER target='n1.weight'\np_n1_bias: PARAMETER target='n1.bias'\n"
                       "p_n2_weight: PARAMETER target='n2.weight'\np_n2_bias: PARAMETER target='n2.bias'\n"
                       "p_w: PARAMETER target='w'\np_v: PARAMETER target='v'\n");
  const char *const operations[] = {"%n = norm(%x, %p_n1_weight, %p_n1_bias)",
                                    "%n_1 = norm(%n, %p_n2_weight, %p_n2_bias)", "%l = f(%n_1, %p_w, %p_v)",
                                    "%l = f(%n_1, %p_w, %p_v)"};
  for (int n = 0; n < 4; ++n) {
    auto *entry = graph->mutable_node(n)->add_metadata_props();
    entry->set_key("pkg.torch.onnx.fx_node");
    entry->set_value(operations[n]);
  }
  annotate(graph, "n1.weight", kKind, "PARAMETER");
  annotate(graph, "n1.bias", kKind, "PARAMETER");
  ASSERT_EQ(resolve(), "");
  EXPECT_EQ(bytes("n2.weight"), bytes("n1.weight"));
  EXPECT_EQ(node(1).input(1), "n2.weight");
  EXPECT_EQ(node(1).input(2), "n2.bias");
  EXPECT_EQ(node(3).input(1), "n1.bias"); // of w and v it may be either
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0], "2 parameters that the exporter had merged with equal ones are their own again: "
                             "'n2.weight', 'n2.bias'");
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_EQ(report.warnings[0],
            "parameters that the exporter has dropped, or merged with equal ones: 'w', 'v'; export without "
            "folding (PyTorch: optimize=False)");
}

TEST_F(SharedInitializersTest, SaysNothingOfNormsThatShareAParameter) {
  addValues("norm.weight", {3}, {1, 1, 1});
  addValues("norm.bias", {3}, {0, 0, 0});
  addNorms("norm.weight", "norm.weight", "norm.bias");
  ASSERT_EQ(resolve(), "");
  EXPECT_TRUE(report.warnings.empty() && report.notes.empty());
  EXPECT_EQ(node(1).input(1), "norm.weight");
}

TEST_F(SharedInitializersTest, TiesViewsOfOneParameterWithMadeUpNames) {
  std::vector<float> values = randomValues(24, 1), turned(24), last(24);
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 3; ++j)
      for (size_t k = 0; k < 4; ++k) {
        turned[(k * 2 + i) * 3 + j] = values[(i * 3 + j) * 4 + k]; // [4, 2, 3]
        last[k * 6 + i * 3 + j] = values[(i * 3 + j) * 4 + k];     // [4, 6]
      }
  addValues("val_0", {2, 3, 4}, values);
  addValues("val_1", {4, 2, 3}, turned);
  addValues("val_2", {6, 4}, values);
  addValues("val_3", {4, 6, 1}, last);
  addValues("val_4", {2, 3, 4}, randomValues(24, 2));
  addValues("mine", {2, 3, 4}, values); // a name of its own is nobody's copy, and an original
  auto *sum = graph->add_node();
  sum->set_op_type("Sum");
  sum->add_output("y");
  for (const char *name : {"val_0", "val_1", "val_2", "val_3", "val_4", "mine"})
    sum->add_input(name);
  ASSERT_EQ(resolve(), "");
  std::set<std::string> floats;
  for (const auto &tensor : model->getProto().graph().initializer())
    if (tensor.data_type() == proto::TensorProto::FLOAT)
      floats.insert(tensor.name());
  EXPECT_EQ(floats, (std::set<std::string>{"mine", "val_4"}));
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0].rfind("4 initializers with names that the exporter made up equal others", 0), 0u)
      << report.notes[0];
  // --untie takes the name of a copy, or of the original of all.
  ASSERT_EQ(resolve({{"val_2"}, {}}), "");
  EXPECT_EQ(bytes("val_2"), bytes("mine"));
  ASSERT_EQ(resolve({{"mine"}, {}}), "");
  EXPECT_EQ(model->getProto().SerializeAsString(), message.SerializeAsString());
  EXPECT_TRUE(report.notes.empty());
}

TEST_F(SharedInitializersTest, WarnsOfCopiesThatMayBeEqualByChance) {
  std::vector<std::vector<float>> patterns = {std::vector<float>(9, 0.25f),
                                              {1, 0, 0, 0, 1, 0, 0, 0, 1},
                                              {0, 1, 2, 3, 4, 5, 6, 7, 8},
                                              {1, 2, 4, 8, 16, 32, 64, 128, 256}};
  for (const auto &pattern : patterns) {
    graph->clear_node();
    graph->clear_initializer();
    addValues("val_0", {3, 3}, pattern);
    addValues("val_1", {3, 3}, pattern);
    addNode(graph, "MatMul", {"x", "val_0"}, {"h"}, "first");
    addNode(graph, "MatMul", {"h", "val_1"}, {"y"}, "second");
    ASSERT_EQ(resolve(), "");
    EXPECT_TRUE(report.notes.empty());
    ASSERT_EQ(report.warnings.size(), 1u);
    EXPECT_EQ(report.warnings[0],
              "equal, perhaps by chance, and trained apart: 'val_1' ('val_0'); if the model "
              "has one parameter there: --tie val_1=val_0");
    EXPECT_EQ(bytes("val_1"), bytes("val_0"));
    ASSERT_EQ(resolve({{}, {{"val_1", "val_0"}}}), "");
    EXPECT_TRUE(report.warnings.empty());
    EXPECT_EQ(node(1).input(1), "val_0");
  }
}

TEST_F(SharedInitializersTest, LeavesCopiedLayersApart) {
  std::vector<float> weight = randomValues(9, 1), bias = randomValues(3, 2);
  addValues("onnx::MatMul_1", {3, 3}, weight);
  addValues("onnx::MatMul_2", {3, 3}, weight);
  addValues("onnx::MatMul_3", {3, 3}, weight);
  addValues("layers.0.fc.bias", {3}, bias);
  addValues("layers.1.fc.bias", {3}, bias);
  addNode(graph, "MatMul", {"x", "onnx::MatMul_1"}, {"a"}, "/layers.0/fc/MatMul");
  addNode(graph, "Add", {"a", "layers.0.fc.bias"}, {"b"}, "/layers.0/fc/Add");
  addNode(graph, "MatMul", {"b", "onnx::MatMul_2"}, {"c"}, "/layers.1/fc/MatMul");
  addNode(graph, "Add", {"c", "layers.1.fc.bias"}, {"d"}, "/layers.1/fc/Add");
  addNode(graph, "MatMul", {"d", "onnx::MatMul_3"}, {"e"}, "/layers.0/fc_1/MatMul"); // called again
  addNode(graph, "Add", {"e", "layers.0.fc.bias"}, {"y"}, "/layers.0/fc_1/Add");
  ASSERT_EQ(resolve(), "");
  EXPECT_EQ(node(0).input(1), "onnx::MatMul_1");
  EXPECT_EQ(node(2).input(1), "onnx::MatMul_2");
  EXPECT_EQ(node(4).input(1), "onnx::MatMul_1");
  // Other biases: a weight alone is shared.
  graph->mutable_initializer(4)->set_raw_data(std::string(12, '\1'));
  ASSERT_EQ(resolve(), "");
  EXPECT_EQ(node(2).input(1), "onnx::MatMul_1");
}

TEST_F(SharedInitializersTest, GivesFreshModulesBackWhatTheExporterMerged) {
  addValues("onnx::Mul_1", {3}, {1, 1, 1});
  addNode(graph, "Identity", {"onnx::Mul_1"}, {"onnx::Mul_2"}, "Identity_0");
  addNode(graph, "Identity", {"onnx::Mul_1"}, {"onnx::Mul_3"}, "Identity_1");
  addNode(graph, "Mul", {"x", "onnx::Mul_1"}, {"a"}, "/gn/Mul");
  addNode(graph, "Mul", {"a", "onnx::Mul_2"}, {"b"}, "/other/Mul");
  addNode(graph, "Mul", {"b", "onnx::Mul_3"}, {"y"}, "/gn_1/Mul");
  ASSERT_EQ(resolve(), "");
  EXPECT_EQ(bytes("onnx::Mul_2"), bytes("onnx::Mul_1"));
  EXPECT_EQ(model->getProto().graph().initializer_size(), 2); // gn is called twice
  ASSERT_EQ(report.notes.size(), 1u);
}

TEST_F(SharedInitializersTest, OnesAndZerosOfGroupNormsAreConstants) {
  addValues("val_1", {1}, {1});
  addValues("val_0", {1}, {0});
  addValues("val_5", {3}, {1, 1, 1});
  addValues("val_6", {3}, {0, 0, 0});
  addValues("scale", {3}, {1, 2, 1});
  addValues("shift", {3}, {0, 0, 0});
  addValues("norm.weight", {3}, {1, 1, 1});
  addValues("norm.bias", {3}, {0, 0, 0});
  addNode(graph, "Reshape", {"x", "s"}, {"a"}, "cut");
  addNode(graph, "InstanceNormalization", {"a", "val_1", "val_0"}, {"b"}, "group");
  addNode(graph, "Reshape", {"b", "s"}, {"c"}, "back");
  addNode(graph, "Mul", {"c", "val_5"}, {"d"}, "weight"); // fresh, and no constant
  addNode(graph, "InstanceNormalization", {"d", "scale", "shift"}, {"e"}, "learned");
  addNode(graph, "InstanceNormalization", {"e", "norm.weight", "norm.bias"}, {"f"}, "fresh");
  // The exporter has merged the ones of this one with the weight of the last.
  addNode(graph, "Reshape", {"f", "s"}, {"g"}, "cut again");
  addNode(graph, "InstanceNormalization", {"g", "norm.weight", "norm.bias"}, {"h"}, "merged");
  addNode(graph, "Reshape", {"h", "s"}, {"y"}, "back again");
  setType(graph->add_input(), "s", {2})
      ->mutable_type()
      ->mutable_tensor_type()
      ->set_elem_type(proto::TensorProto::INT64);
  ASSERT_EQ(resolve(), "");
  EXPECT_EQ(listConstants(*model),
            (std::set<std::string>{"val_0", "val_1", "merged.norm.bias", "merged.norm.weight"}));
  EXPECT_EQ(node(5).input(1), "norm.weight");
  EXPECT_EQ(node(7).input(1), "merged.norm.weight");
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0], "the ones and zeros of group or instance norms without weights of their own are "
                             "constants and not trained: 'norm.bias', 'norm.weight', 'val_0', 'val_1'");
}

TEST_F(SharedInitializersTest, RestoresBiasesOfZerosThatWereDropped) {
  addValues("fc.weight", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  addNode(graph, "Gemm", {"x", "fc.weight"}, {"y"}, "fc");
  auto *signature = graph->add_metadata_props();
  signature->set_key("pkg.torch.export.ExportedProgram.graph_signature");
  signature->set_value("p_w: PARAMETER target='fc.weight'\np_b: PARAMETER target='fc.bias'\n");
  auto *entry = graph->mutable_node(0)->add_metadata_props();
  entry->set_key("pkg.torch.onnx.fx_node");
  entry->set_value("%linear = linear(%x, %p_w, %p_b)");
  annotate(graph, "fc.weight", kKind, "PARAMETER");
  ASSERT_EQ(resolve(), "");
  ASSERT_EQ(node(0).input_size(), 3);
  EXPECT_EQ(node(0).input(2), "fc.bias");
  EXPECT_EQ(bytes("fc.bias"), std::string(12, '\0'));
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0], "1 bias of zeros that the exporter had dropped is there again: 'fc.bias'");
  EXPECT_EQ(report.warnings.size(), 0u);
}

TEST_F(SharedInitializersTest, TiesTheOriginalOfACopyToAThirdOne) {
  std::vector<float> values = randomValues(9, 1);
  for (const char *name : {"a.weight", "b.weight", "val_0", "val_1"})
    addValues(name, {3, 3}, values);
  addNode(graph, "MatMul", {"x", "a.weight"}, {"h"}, "first");
  addNode(graph, "MatMul", {"h", "b.weight"}, {"i"}, "second");
  addNode(graph, "MatMul", {"i", "val_0"}, {"j"}, "third");
  addNode(graph, "MatMul", {"j", "val_1"}, {"y"}, "fourth");
  ASSERT_EQ(resolve(), "");
  EXPECT_EQ(node(3).input(1), "val_0");
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_NE(report.warnings[0].find("--tie val_0=a.weight"), std::string::npos) << report.warnings[0];
  // As the warning says.
  ASSERT_EQ(resolve({{}, {{"val_0", "a.weight"}}}), "");
  EXPECT_EQ(node(2).input(1), "a.weight");
  EXPECT_EQ(node(3).input(1), "a.weight");
  EXPECT_EQ(model->getProto().graph().initializer_size(), 2);
}

TEST_F(SharedInitializersTest, RestoresAParameterOnceWhoseNameMayBeMadeUp) {
  addValues("m.w_cast", {3}, {1, 1, 1});
  addNode(graph, "Identity", {"m.w_cast"}, {"n.w_cast"}, "Identity_0");
  addNode(graph, "Mul", {"x", "m.w_cast"}, {"h"}, "/m/Mul");
  addNode(graph, "Mul", {"h", "n.w_cast"}, {"y"}, "/n/Mul");
  ASSERT_EQ(resolve(), "");
  EXPECT_EQ(bytes("n.w_cast"), bytes("m.w_cast"));
  EXPECT_EQ(model->getProto().graph().node_size(), 2);
}

/// What PyTorch's exporter writes down about a model whose only node took a weight and a bias.
void traceWeightAndBias(proto::GraphProto *graph) {
  auto *signature = graph->add_metadata_props();
  signature->set_key("pkg.torch.export.ExportedProgram.graph_signature");
  signature->set_value("p_w: PARAMETER target='up.weight'\np_b: PARAMETER target='up.bias'\n");
  auto *entry = graph->mutable_node(0)->add_metadata_props();
  entry->set_key("pkg.torch.onnx.fx_node");
  entry->set_value("%up = up(%x, %p_w, %p_b)");
  annotate(graph, "up.weight", kKind, "PARAMETER");
}

TEST_F(SharedInitializersTest, RestoresNoBiasOfAnImpossibleSize) {
  for (auto [group, elements] :
       std::vector<std::pair<int64_t, size_t>>{{3, 6}, {1, 2}, {-1, 0}, {0, 0}, {2, 0}, {INT64_MAX, 0}}) {
    graph->clear_node();
    graph->clear_initializer();
    graph->clear_metadata_props();
    graph->clear_value_info();
    addInitializer(graph, "up.weight", {3, 2, 1, 1});
    addAttribute(addNode(graph, "ConvTranspose", {"x", "up.weight"}, {"y"}, "up"), "group",
                 proto::AttributeProto::INT)
        ->set_i(group);
    traceWeightAndBias(graph);
    ASSERT_EQ(resolve(), "");
    EXPECT_EQ(node(0).input_size(), elements ? 3 : 2) << group;
    if (elements)
      EXPECT_EQ(bytes("up.bias").size(), elements * sizeof(float)) << group;
  }
  graph->clear_node();
  graph->clear_initializer();
  graph->clear_metadata_props();
  addInitializer(graph, "up.weight", {int64_t(1) << 40, 0, 1, 1});
  addNode(graph, "Conv", {"x", "up.weight"}, {"y"}, "up");
  traceWeightAndBias(graph);
  ASSERT_EQ(resolve(), "");
  EXPECT_EQ(node(0).input_size(), 2);
}

TEST_F(SharedInitializersTest, RestoresNoParameterWhoseNameIsTaken) {
  addInitializer(graph, "up.weight", {2, 3});
  addNode(graph, "Gemm", {"x", "up.weight"}, {"h"}, "up");
  addNode(graph, "Relu", {"h"}, {"up.bias"}, "act");
  addNode(graph, "Relu", {"up.bias"}, {"y"}, "again");
  traceWeightAndBias(graph);
  ASSERT_EQ(resolve(), "");
  EXPECT_EQ(node(0).input_size(), 2);
}

/// A function of the model that has the name of a standard operator, and gives its first input.
void addFunction(proto::ModelProto &message, const std::string &name, int inputs) {
  auto *function = message.add_functions();
  function->set_name(name);
  function->add_opset_import()->set_version(17);
  for (int i = 0; i < inputs; ++i)
    function->add_input("in" + std::to_string(i));
  function->add_output("out");
  addNode(function->mutable_node(), "Relu", {"in0"}, {"out"});
}

TEST_F(SharedInitializersTest, CallsOfFunctionsAreNoStandardOperators) {
  addFunction(message, "Identity", 1);
  addFunction(message, "InstanceNormalization", 3);
  addFunction(message, "Gather", 2);
  addFunction(message, "Gemm", 3);
  addValues("up.weight", {2, 3}, {1, 2, 3, 4, 5, 6});
  addValues("val_1", {3}, {1, 1, 1});
  addValues("val_0", {3}, {0, 0, 0});
  addValues("copy", {2, 3}, {1, 2, 3, 4, 5, 6});
  addNode(graph, "Gemm", {"x", "up.weight"}, {"a"}, "up");
  addNode(graph, "Reshape", {"a", "s"}, {"b"}, "cut");
  addNode(graph, "InstanceNormalization", {"b", "val_1", "val_0"}, {}, "no outputs");
  addNode(graph, "InstanceNormalization", {"b", "val_1", "val_0"}, {"c"}, "norm");
  addNode(graph, "Identity", {"val_1"}, {}, "no outputs either");
  addNode(graph, "Identity", {"val_1"}, {"norm.weight"}, "call");
  addNode(graph, "Gather", {"up.weight", "s"}, {"d"}, "table");
  auto *sum = addNode(graph, "Sum", {"b", "c", "d", "norm.weight", "copy"}, {"y"}, "sum");
  EXPECT_EQ(sum->input_size(), 5);
  setType(graph->add_input(), "s", {2})
      ->mutable_type()
      ->mutable_tensor_type()
      ->set_elem_type(proto::TensorProto::INT64);
  traceWeightAndBias(graph);
  ASSERT_EQ(resolve(), "");
  EXPECT_EQ(model->getProto().SerializeAsString(), message.SerializeAsString());
}

TEST_F(SharedInitializersTest, ANormWithLearnedNumbersInAConstantIsLearned) {
  for (bool isLearned : {false, true})
    for (const char *attribute : {"value_floats", "value", "value_float"}) {
      graph->clear_node();
      graph->clear_initializer();
      addValues("val_1", {3}, {1, 1, 1});
      auto *constant = addNode(graph, "Constant", {}, {"bias"}, "bias");
      std::vector<float> values(std::string(attribute) == "value_float" ? 1 : 3, 0.0f);
      values.back() = isLearned ? 2 : 0;
      if (attribute == std::string("value")) {
        proto::GraphProto tensors;
        std::string bytes(12, '\0');
        std::memcpy(bytes.data(), values.data(), bytes.size());
        addInitializer(&tensors, "", {3})->set_raw_data(bytes);
        *addAttribute(constant, attribute, proto::AttributeProto::TENSOR)->mutable_t() =
            tensors.initializer(0);
      } else if (values.size() > 1) {
        auto *list = addAttribute(constant, attribute, proto::AttributeProto::FLOATS);
        list->mutable_floats()->Add(values.begin(), values.end());
      } else {
        addAttribute(constant, attribute, proto::AttributeProto::FLOAT)->set_f(values[0]);
      }
      addNode(graph, "InstanceNormalization", {"x", "val_1", "bias"}, {"y"}, "norm");
      ASSERT_EQ(resolve(), "");
      EXPECT_EQ(listConstants(*model), isLearned ? std::set<std::string>{} : std::set<std::string>{"val_1"})
          << attribute;
    }
}

/// An If of which both branches are this graph.
void addBranches(proto::GraphProto *graph, const proto::GraphProto &body, const std::string &output) {
  setType(graph->add_input(), "flag", {})
      ->mutable_type()
      ->mutable_tensor_type()
      ->set_elem_type(proto::TensorProto::BOOL);
  auto *branches = addNode(graph, "If", {"flag"}, {output}, "branches");
  for (const char *name : {"then_branch", "else_branch"})
    *addAttribute(branches, name, proto::AttributeProto::GRAPH)->mutable_g() = body;
}

TEST_F(SharedInitializersTest, OnesThatABranchReadsAreNotFrozen) {
  addValues("val_1", {3}, {1, 1, 1});
  addValues("val_0", {3}, {0, 0, 0});
  addNode(graph, "InstanceNormalization", {"x", "val_1", "val_0"}, {"a"}, "norm");
  proto::GraphProto body;
  body.set_name("body");
  addNode(&body, "Mul", {"a", "val_1"}, {"scaled"}, "scale");
  setType(body.add_output(), "scaled", {2, 3});
  addBranches(graph, body, "y");
  ASSERT_EQ(resolve(), "");
  EXPECT_EQ(listConstants(*model), (std::set<std::string>{"norm.val_1", "val_0"}));
  EXPECT_EQ(node(0).input(1), "norm.val_1");
}

TEST_F(SharedInitializersTest, NewNamesAreNewInTheWholeModel) {
  addValues("ones", {3}, {1, 1, 1});
  addValues("bias", {3}, {1, 2, 3});
  addNode(graph, "LayerNormalization", {"x", "ones", "bias"}, {"a"}, "first");
  addNode(graph, "LayerNormalization", {"a", "ones", "bias"}, {"b"}, "second");
  addNode(graph, "LayerNormalization", {"b", "ones", "bias"}, {"c"}, "third");
  auto *sparse = graph->add_sparse_initializer();
  sparse->mutable_values()->set_name("second.ones");
  sparse->mutable_values()->set_data_type(proto::TensorProto::FLOAT);
  sparse->mutable_values()->add_dims(1);
  sparse->mutable_values()->add_float_data(1);
  sparse->mutable_indices()->set_data_type(proto::TensorProto::INT64);
  sparse->mutable_indices()->add_dims(1);
  sparse->mutable_indices()->add_int64_data(0);
  sparse->add_dims(3);
  proto::GraphProto body;
  body.set_name("body");
  addNode(&body, "Mul", {"c", "second.ones"}, {"third.ones"}, "scale");
  setType(body.add_output(), "third.ones", {2, 3});
  addBranches(graph, body, "y");
  ASSERT_EQ(resolve({{"ones"}, {}}), "");
  EXPECT_EQ(node(1).input(1), "second.ones_");
  EXPECT_EQ(node(2).input(1), "third.ones_");
}

TEST_F(SharedInitializersTest, TiesWhatIsAnOutputOrHasANameThatABranchUses) {
  addValues("val_0", {2, 3}, {1, 2, 3, 4, 5, 6});
  addValues("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  proto::GraphProto body;
  body.set_name("body");
  addNode(&body, "Add", {"x", "val_0"}, {"w"}, "own"); // its own w
  addNode(&body, "Add", {"w", "val_0"}, {"sum"}, "sum");
  setType(body.add_output(), "sum", {2, 3});
  addNode(graph, "Add", {"x", "w"}, {"a"}, "outer");
  addBranches(graph, body, "y");
  ASSERT_EQ(resolve({{}, {{"val_0", "w"}}}), "");
  EXPECT_EQ(model->getProto().graph().initializer_size(), 1);
  for (const auto &each : model->getProto().graph().node())
    for (const auto &attribute : each.attribute())
      if (attribute.has_g())
        EXPECT_EQ(attribute.g().node(0).input(1), "val_0");
  setType(graph->add_output(), "val_0", {2, 3});
  ASSERT_EQ(resolve({{}, {{"val_0", "w"}}}), "");
  EXPECT_EQ(model->getProto().graph().output(1).name(), "val_0");
}

} // namespace
