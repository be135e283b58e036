// Models that have to be accepted.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ModelBuilder.h"

#include "dialects/onnx/OnnxOperators.h"

#include <cctype>
#include <gtest/gtest.h>

using namespace ortc;
using namespace ortc::frontend;
using namespace ortc::onnx;
using namespace ortc::frontend::test;

namespace {

std::shared_ptr<const Model> parse(const proto::ModelProto &proto) {
  std::shared_ptr<const Model> model;
  Status status = Model::parse(proto.SerializeAsString(), "m.onnx", ".", model);
  EXPECT_EQ(status.getMessage(), "");
  return model;
}

TEST(ModelTest, AcceptsTheSmallModelAtEveryVersion) {
  for (int64_t opset = kOldestOpset; opset <= kNewestOpset; ++opset)
    for (int64_t ir = 3; ir <= 15; ++ir) {
      proto::ModelProto model = smallModel();
      model.set_ir_version(ir);
      model.mutable_opset_import(0)->set_version(opset);
      EXPECT_EQ(check(model), "") << "opset " << opset << ", IR version " << ir;
    }
}

TEST(ModelTest, SortsNodes) {
  proto::ModelProto proto = smallModel();
  proto.mutable_graph()->mutable_node()->SwapElements(0, 1);
  auto model = parse(proto);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->getProto().graph().node(0).name(), "dense");
  EXPECT_EQ(model->getProto().graph().node(1).name(), "act");
}

TEST(ModelTest, KeepsAValidOrder) {
  proto::ModelProto proto = smallModel();
  addNode(proto.mutable_graph(), "Exp", {"x"}, {"e"}, "late");
  auto model = parse(proto);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->getProto().graph().node(2).name(), "late");
}

TEST(ModelTest, SortsBehindValuesThatOnlyABranchReads) {
  proto::ModelProto proto = smallModel();
  proto::GraphProto *graph = proto.mutable_graph();
  graph->clear_node();
  auto *condition = setType(graph->add_input(), "c", {});
  condition->mutable_type()->mutable_tensor_type()->set_elem_type(proto::TensorProto::BOOL);
  proto::NodeProto *choice = addNode(graph, "If", {"c"}, {"y"}, "choice");
  for (const char *name : {"then_branch", "else_branch"}) {
    proto::GraphProto *branch = addAttribute(choice, name, proto::AttributeProto::GRAPH)->mutable_g();
    addNode(branch, "Relu", {"h"}, {"r"});
    setType(branch->add_output(), "r", {2, 4});
  }
  addNode(graph, "MatMul", {"x", "w"}, {"h"}, "dense");
  auto model = parse(proto);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->getProto().graph().node(0).name(), "dense");
  EXPECT_EQ(model->getProto().graph().node(1).name(), "choice");
}

TEST(ModelTest, ToleratesUnknownFields) {
  std::string bytes = smallModel().SerializeAsString();
  bytes += std::string("\xaa\x3f\x03"
                       "abc",
                       6); // field 1013, three bytes
  EXPECT_EQ(check(bytes), "");
}

TEST(ModelTest, LeavesUnknownOperatorsToTheLegaliser) {
  proto::ModelProto model = smallModel();
  model.mutable_graph()->mutable_node(1)->set_op_type("Frobnicate");
  EXPECT_EQ(check(model), "");
  model.mutable_graph()->mutable_node(1)->set_domain("com.example");
  EXPECT_EQ(check(model), "");
}

TEST(ModelTest, AllowsTrailingEmptyInputs) {
  proto::ModelProto model = smallModel();
  proto::NodeProto *clip = model.mutable_graph()->mutable_node(1);
  clip->set_op_type("Clip");
  clip->add_input("");
  clip->add_input("");
  EXPECT_EQ(check(model), "");
}

static std::string typeError(const char *name, int64_t version, std::vector<int32_t> types) {
  return checkTypes(*findDefinition("", name, version), types);
}

TEST(OperatorTableTest, ElementTypesOfOperands) {
  using proto::TensorProto;
  constexpr int32_t f32 = TensorProto::FLOAT, f64 = TensorProto::DOUBLE, i8 = TensorProto::INT8,
                    u8 = TensorProto::UINT8, i32 = TensorProto::INT32, i64 = TensorProto::INT64,
                    boolean = TensorProto::BOOL;
  EXPECT_EQ(typeError("Less", 13, {i8, i8}), "");
  EXPECT_EQ(typeError("Less", 13, {i8, u8}), "operands 0 and 1 have different element types, int8 and uint8");
  EXPECT_EQ(typeError("Less", 13, {f32, f64}),
            "operands 0 and 1 have different element types, float and double");
  EXPECT_EQ(typeError("Compress", 11, {f32, f32}),
            "operand 1 has element type float, where Compress takes bool");
  EXPECT_EQ(typeError("Compress", 11, {f32, boolean}), "");
  // Types of their own: the exponent, and what a loop carries.
  EXPECT_EQ(typeError("Pow", 15, {f32, i64}), "");
  EXPECT_EQ(typeError("Loop", 13, {i64, boolean, f32, i8, f64}), "");
  // Absent operands; the last formal input stands for all that follow.
  EXPECT_EQ(typeError("Clip", 13, {f32, 0, f32}), "");
  EXPECT_EQ(typeError("Clip", 13, {f32, 0, i32}),
            "operands 0 and 2 have different element types, float and int32");
  EXPECT_EQ(typeError("Max", 13, {f32, f32, f32, i32}),
            "operands 0 and 3 have different element types, float and int32");
  // Scales of quantisation are float32 in the standard and f64 in a program that computes in float64.
  EXPECT_EQ(typeError("QLinearMatMul", 10, {u8, f64, u8, u8, f64, u8, f64, u8}), "");
  // What a later version takes is taken in earlier ones: integers by Relu, which had floats alone before 14.
  EXPECT_EQ(typeError("Relu", 13, {i32}), "");
}

TEST(OperatorTableTest, ElementTypesHaveNames) {
  for (int type = 0; type < proto::TensorProto::DataType_ARRAYSIZE; ++type) {
    std::string name = proto::TensorProto::DataType_Name(type);
    for (char &c : name)
      c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(elementTypeName(type), name);
  }
  EXPECT_EQ(elementTypeName(99), "type 99");
}

TEST(OperatorTableTest, IsSortedAndSelectsVersions) {
  EXPECT_EQ(findOperator("", "Conv", 10)->since, 1);
  EXPECT_EQ(findOperator("", "Conv", 11)->since, 11);
  EXPECT_EQ(findOperator("", "Conv", 21)->since, 11);
  EXPECT_EQ(findOperator("", "Conv", 28)->since, 22);
  EXPECT_EQ(findOperator("", "Gelu", 19), nullptr);
  EXPECT_EQ(findOperator("", "Gelu", 20)->since, 20);
  EXPECT_EQ(findOperator("", "Abs", 28)->name, "Abs");
  EXPECT_EQ(findOperator("", "Xor", 28)->name, "Xor");
  EXPECT_EQ(findOperator("", "Aaa", 28), nullptr);
  EXPECT_EQ(findOperator("", "Zzz", 28), nullptr);
  EXPECT_EQ(findOperator("ai.onnx.ml", "LinearClassifier", 3)->since, 1);
  EXPECT_EQ(findDefinition("", "Conv", 12), nullptr);
  EXPECT_TRUE(isStandardDomain("ai.onnx.ml"));
  EXPECT_FALSE(isStandardDomain("com.microsoft"));
}

} // namespace
