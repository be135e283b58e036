// Operators that choose gradients, padding rows, and what becomes of both beside adapters and in exported models.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>

#include "test/e2e/Marks.h"

using namespace ortc;
using namespace ortc::test;

namespace {

class OwnOperatorsTest : public MarksTest {
protected:
  /// loss = sum(table[ids] * k) + sum(table * h): a lookup, and another use of its table.
  static proto::ModelProto lookupModel(int type, int64_t axis = 0) {
    proto::ModelProto model = emptyModel();
    proto::GraphProto *graph = model.mutable_graph();
    describe(graph->add_input(), "ids", type, {5});
    addInitializer(graph, "table", proto::TensorProto::FLOAT, {4, 2},
                   std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
    addInitializer(graph, "onnx::Mul_1", proto::TensorProto::FLOAT, {2}, std::vector<float>{2, 3});
    addInitializer(graph, "onnx::Mul_2", proto::TensorProto::FLOAT, {2}, std::vector<float>{10, 20});
    auto *lookup = addNode(graph->mutable_node(), "Gather", {"table", "ids"}, {"rows"});
    if (axis)
      addAttribute(lookup, "axis", proto::AttributeProto::INT)->set_i(axis);
    addNode(graph->mutable_node(), "Mul", {"rows", "onnx::Mul_1"}, {"scaled"});
    addNode(graph->mutable_node(), "Mul", {"table", "onnx::Mul_2"}, {"head"});
    for (const char *value : {"scaled", "head"}) {
      auto *sum = addNode(graph->mutable_node(), "ReduceSum", {value}, {std::string(value) + "_sum"});
      addAttribute(sum, "keepdims", proto::AttributeProto::INT)->set_i(0);
    }
    addNode(graph->mutable_node(), "Add", {"scaled_sum", "head_sum"}, {"loss"});
    describe(graph->add_output(), "loss", proto::TensorProto::FLOAT, {});
    return model;
  }

  /// The gradient of the table for these lookups.
  template <typename T>
  std::vector<double> tableGradient(const proto::ModelProto &model, const std::vector<T> &ids) {
    outcome = train(model, {"--loss", "output:loss", "--freeze", "onnx.*"});
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    std::string array =
        engine::test::npyOf(sizeof(T) == 4 ? "<i4" : "<i8", "(5,)", engine::test::bytesOf(ids));
    mustRun({"gradients", folder / "a", "--data",
             folder.write("d.npz", engine::test::zip({{"ids.npy", array}})), "-o", folder / "g.safetensors",
             "--quiet"});
    return loadValues(folder / "g.safetensors")["table"].data;
  }

  proto::ModelProto exported() {
    mustRun({"export", folder / "a", "-o", folder / "e.onnx", "--quiet"});
    proto::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(readFile(folder / "e.onnx")));
    return model;
  }
  static std::string metadataOf(const proto::ModelProto &model, const std::string &key) {
    for (const auto &entry : model.metadata_props())
      if (entry.key() == key)
        return entry.value();
    return "";
  }
  /// y and t of the model are what these operators give.
  static proto::ModelProto chosenModel() {
    proto::ModelProto model = sineModel();
    auto *own = model.add_opset_import();
    own->set_domain("ai.ortc");
    own->set_version(1);
    auto *nodes = model.mutable_graph()->mutable_node();
    addNode(nodes, "StraightThrough", {"t", "y"}, {"straight"}, "ai.ortc");
    addNode(nodes, "Detach", {"t"}, {"fixed"}, "ai.ortc");
    addNode(nodes, "Mul", {"straight", "fixed"}, {"both"});
    nodes->Mutable(2)->set_input(1, "both");
    return model;
  }
};

/// The other use of the table trains the row; indices and rows may count from the end.
TEST_F(OwnOperatorsTest, LookupsOfThePaddingRowGiveNoGradient) {
  std::vector<int64_t> ids{0, 1, -4, 3, 1};
  proto::ModelProto model = lookupModel(proto::TensorProto::INT64);
  EXPECT_EQ(tableGradient(model, ids), (std::vector<double>{14, 26, 14, 26, 10, 20, 12, 23}));
  for (const char *row : {"0", "-4"}) {
    proto::ModelProto marked = model;
    mark(marked, "ortc.padding", std::string("rows=") + row);
    EXPECT_EQ(tableGradient(marked, ids), (std::vector<double>{10, 20, 14, 26, 10, 20, 12, 23})) << row;
    expectSaid(
        "ortc.padding of the model names 1 lookup with a padding row, which it does not train: 'rows' (row " +
        std::string(row) + ")");
  }
  model = lookupModel(proto::TensorProto::INT32);
  mark(model, "ortc.padding", "rows=3");
  EXPECT_EQ(tableGradient(model, std::vector<int32_t>{0, 1, -4, -1, 3}),
            (std::vector<double>{14, 26, 12, 23, 10, 20, 10, 20}));
}

TEST_F(OwnOperatorsTest, PaddingRowsAreOfTheTable) {
  for (const char *row : {"4", "-5"}) {
    proto::ModelProto model = lookupModel(proto::TensorProto::INT64);
    mark(model, "ortc.padding", std::string("rows=") + row);
    expectRefusal(model, std::string("its padding row is ") + row + ", and the table has 4 rows");
  }
  proto::ModelProto model = lookupModel(proto::TensorProto::INT64, 1);
  mark(model, "ortc.padding", "rows=0");
  expectRefusal(model, "padding rows are of what a Gather along the first axis gives");
}

/// As in PEFT, whose adapters of embeddings have their padding row.
TEST_F(OwnOperatorsTest, AdaptersDoNotTrainThePaddingRow) {
  proto::ModelProto model = lookupModel(proto::TensorProto::INT64);
  model.mutable_graph()->mutable_node()->DeleteSubrange(2, 1);
  for (auto &node : *model.mutable_graph()->mutable_node())
    for (auto &input : *node.mutable_input())
      input = input == "head" ? "onnx::Mul_2" : input;
  mark(model, "ortc.padding", "rows=1");
  outcome = train(model, {"--loss", "output:loss", "--lora", "table:rank=1"});
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  std::string ids =
      engine::test::npyOf("<i8", "(5,)", engine::test::bytesOf(std::vector<int64_t>{0, 1, 2, 1, 3}));
  mustRun({"gradients", folder / "a", "--data", folder.write("d.npz", engine::test::zip({{"ids.npy", ids}})),
           "-o", folder / "g.safetensors", "--quiet"});
  const std::vector<double> a = loadValues(folder / "g.safetensors")["table.lora_embedding_A"].data;
  ASSERT_EQ(a.size(), 4u);
  for (size_t row = 0; row < 4; ++row)
    EXPECT_EQ(a[row] == 0, row == 1) << row << " " << a[row];
}

TEST_F(OwnOperatorsTest, OperatorsChooseGradients) {
  // y + s t where s = t with the gradient of y, and t a number
  expectFactor(gradients(chosenModel())["w"], [](double y) { return 1 + std::sin(y); });
}

/// Exported models are of the standard, and say in their metadata what they were.
TEST_F(OwnOperatorsTest, ExportedModelsKeepTheirGradients) {
  outcome = train(chosenModel());
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  proto::ModelProto model = exported();
  EXPECT_EQ(metadataOf(model, "ortc.detached"), "fixed");
  EXPECT_EQ(metadataOf(model, "ortc.straight_through"), "straight=y");
  for (const auto &node : model.graph().node())
    EXPECT_EQ(node.domain(), "") << node.op_type();
  EXPECT_EQ(model.opset_import_size(), 1);
  expectFactor(gradients(model)["w"], [](double y) { return 1 + std::sin(y); });

  model = sineModel();
  mark(model, "ortc.straight_through", "t=y");
  outcome = train(model);
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  proto::ModelProto same = exported();
  EXPECT_EQ(metadataOf(same, "ortc.straight_through"), "t=y");
  EXPECT_EQ(same.graph().node_size(), model.graph().node_size());
  expectFactor(gradients(same)["w"], [](double) { return 2; });
}

/// Differences of losses go through what is detached: the formulas are checked without the marks.
TEST_F(OwnOperatorsTest, ChecksOfGradientsLeaveMarksOut) {
  proto::ModelProto model = sineModel();
  mark(model, "ortc.detached", "t");
  std::string file = write(model);
  Outcome check = mustRun({"check", file, "--loss", "output:loss", "--data", writeData()});
  EXPECT_NE(check.errors.find("are left out: differences of losses do not show them"), std::string::npos)
      << check.errors;
  check = mustRun({"check", file, "--loss", "output:loss", "--data", writeData(), "--against", "evaluator"});
  EXPECT_NE(check.errors.find("ortc.detached of the model names 1 value"), std::string::npos) << check.errors;
}

} // namespace
