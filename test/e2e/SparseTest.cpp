// --sparse: rows of tables against PyTorch's sparse gradients (test/sparse/make-sparse.py).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "compiler/frontend/onnx.pb.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

/// Both sides compute in float32: six steps of some hundred rounded numbers of about one.
constexpr double kTolerance = 3e-6;

class SparseTest : public testing::Test {
protected:
  std::string source(const std::string &name) const { return sourcePath("sparse/" + name); }
  std::vector<std::string> trainFlags(const std::string &optimizer,
                                      const std::vector<std::string> &more = {}) const {
    std::vector<std::string> flags{"train",       source("model.onnx"),
                                   "-o",          folder / "artifact",
                                   "--loss",      "cross_entropy",
                                   "--shape",     "item=8,user=8,history=8x5",
                                   "--optimizer", optimizer,
                                   "--target",    "native",
                                   "--quiet"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  void run(const std::vector<std::string> &more) {
    std::vector<std::string> flags{
        "run", folder / "artifact", "--data", source("data.npz"), "--no-shuffle", "--quiet"};
    flags.insert(flags.end(), more.begin(), more.end());
    flags.insert(flags.end(), device.begin(), device.end());
    mustRun(flags);
  }
  void compileLabels(const std::string &rows, const std::vector<std::string> &more = {}) {
    std::vector<std::string> flags{"train",        source("labels.onnx"),
                                   "-o",           folder / "artifact",
                                   "--loss",       "cross_entropy:axis=-1",
                                   "--head-chunk", rows,
                                   "--optimizer",  "sgd:lr=0.5",
                                   "--target",     "native",
                                   "--dump-ir",    folder / "ir",
                                   "--quiet"};
    flags.insert(flags.end(), more.begin(), more.end());
    mustRun(flags);
  }
  void trainLabels() {
    std::vector<std::string> flags{
        "run",          folder / "artifact", "--data",    source("labels-data.npz"),
        "--no-shuffle", "--quiet",           "--metrics", folder / "run.jsonl",
        "--save",       saved("end")};
    flags.insert(flags.end(), device.begin(), device.end());
    mustRun(flags);
    expectSaved("labels");
  }
  std::string saved(const std::string &name) const { return folder / (name + ".safetensors"); }
  /// Trains all of the data once and compares with a golden.
  void expectGolden(const std::string &name, const std::string &optimizer,
                    const std::vector<std::string> &more = {}) {
    std::vector<std::string> flags{"--sparse", "items.weight", "--sparse", "users.weight"};
    flags.insert(flags.end(), more.begin(), more.end());
    mustRun(trainFlags(optimizer, flags));
    run({"--metrics", folder / "run.jsonl", "--save", saved("end")});
    expectSaved(name);
  }
  void expectSaved(const std::string &name) {
    auto golden = loadValues(source(name + ".npz")), got = loadValues(saved("end"));
    std::vector<double> losses = loadLosses(folder / "run.jsonl");
    for (const auto &[key, values] : golden) {
      const std::vector<double> &have = key == "loss" ? losses : valuesOf(got, key).data;
      ASSERT_EQ(have.size(), values.data.size()) << name << ": " << key;
      for (size_t i = 0; i < have.size(); ++i)
        ASSERT_NEAR(have[i], values.data[i], kTolerance) << name << ": " << key << " at " << i;
    }
  }

  TemporaryFolder folder;
  std::vector<std::string> device; ///< flags of `ortc run`
};

TEST_F(SparseTest, SgdIsTorch) { expectGolden("sgd", "sgd:lr=0.5"); }
TEST_F(SparseTest, AdagradIsTorch) { expectGolden("adagrad", "adagrad:lr=0.1"); }
TEST_F(SparseTest, AdamIsSparseAdam) { expectGolden("adam", "adam:lr=0.05,epsilon=1e-3"); }
TEST_F(SparseTest, NormsAreOfTheWholeGradient) { expectGolden("clip", "sgd:lr=0.5", {"--clip-norm", "0.2"}); }
TEST_F(SparseTest, LossScalesChangeNothing) {
  expectGolden("sgd", "sgd:lr=0.5", {"--loss-scale", "dynamic:init=1024"});
}

/// Labels that are ignored: of a step with one that counts, with all, and with some. Chunks of 3 rows, and of 8.
TEST_F(SparseTest, IgnoredLabelsAreLeftOut) {
  for (const char *rows : {"3", "8", "0"}) {
    compileLabels(rows);
    EXPECT_EQ(readFile(folder / "ir/4-differentiate.mlir").find("limit(") != std::string::npos,
              std::string(rows) != "0");
    trainLabels();
  }
}

/// Rows, not threads, decide what is added to what; state of rows is in checkpoints.
TEST_F(SparseTest, ThreadsAndPausesChangeNoBit) {
  mustRun(trainFlags("adam:lr=0.05", {"--sparse", ".*s.weight", "--max-workers", "4"}));
  run({"--steps", "6", "--save", saved("one")});
  for (const char *threads : {"2", "4"}) {
    run({"--steps", "6", "--threads", threads, "--save", saved(threads)});
    EXPECT_EQ(readTensors(saved(threads)), readTensors(saved("one"))) << threads;
  }
  run({"--steps", "2", "--save", saved("half")});
  run({"--load", saved("half"), "--steps", "4", "--save", saved("resumed")});
  EXPECT_EQ(readTensors(saved("resumed")), readTensors(saved("one")));
}

/// A gradient of the table is not in the plan: neither time nor memory knows how many rows there are.
TEST_F(SparseTest, KeepsNoGradientOfTheTable) {
  mustRun(trainFlags("adam", {"--sparse", ".*s.weight", "--clip-norm", "1", "--clip-value", "1",
                              "--loss-scale", "dynamic", "--dump-buffers", folder / "buffers.csv"}));
  EXPECT_EQ(readFile(folder / "buffers.csv").find("train/default,40x6"), std::string::npos)
      << readFile(folder / "buffers.csv");
}

/// Devices write rows in their place, too, and do the chunks that processors leave out.
class DeviceSparseTest : public SparseTest {
protected:
  void SetUp() override { device = {"--device", "cuda"}; }
};

TEST_F(DeviceSparseTest, AdamIsSparseAdam) {
  expectGolden("adam", "adam:lr=0.05,epsilon=1e-3", {"--target", "sm_80"});
}
TEST_F(DeviceSparseTest, IgnoredLabelsAreLeftOut) {
  compileLabels("8", {"--target", "sm_80"});
  trainLabels();
}

/// A model of this folder with a change, as a file.
class EditedSparseTest : public SparseTest {
protected:
  void load(const std::string &name) {
    std::ifstream file(source(name), std::ios::binary);
    ASSERT_TRUE(model.ParseFromIstream(&file));
  }
  std::string save() {
    std::ofstream file(folder / "edited.onnx", std::ios::binary);
    EXPECT_TRUE(model.SerializeToOstream(&file));
    return folder / "edited.onnx";
  }
  proto::NodeProto &addNode(const char *type, std::initializer_list<const char *> inputs,
                            const char *output) {
    auto &node = *model.mutable_graph()->add_node();
    node.set_op_type(type);
    for (const char *input : inputs)
      node.add_input(input);
    node.add_output(output);
    return node;
  }
  void addShape(const char *name, std::initializer_list<int64_t> dims) {
    auto &tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(proto::TensorProto::INT64);
    tensor.add_dims(static_cast<int64_t>(dims.size()));
    for (int64_t dim : dims)
      tensor.add_int64_data(dim);
  }

  proto::ModelProto model;
};

/// The loss of the standard in the graph, which picks the labels' elements.
TEST_F(EditedSparseTest, LossesOfTheGraphAreInChunksToo) {
  load("labels.onnx");
  auto &graph = *model.mutable_graph();
  auto &label = *graph.add_input();
  label = graph.input(0);
  label.set_name("label");
  addShape("rows", {24, 23});
  addShape("all", {24});
  addNode("Reshape", {"output", "rows"}, "logits");
  addNode("Reshape", {"label", "all"}, "labels");
  auto &ignored = *addNode("SoftmaxCrossEntropyLoss", {"logits", "labels"}, "loss").add_attribute();
  ignored.set_name("ignore_index");
  ignored.set_type(proto::AttributeProto::INT);
  ignored.set_i(-100);
  auto &loss = *graph.mutable_output(0);
  loss.set_name("loss");
  loss.mutable_type()->mutable_tensor_type()->clear_shape();
  std::string path = save();
  for (const char *rows : {"3", "0"}) {
    mustRun({"train", path, "-o", folder / "artifact", "--loss", "output:loss", "--head-chunk", rows,
             "--optimizer", "sgd:lr=0.5", "--target", "native", "--dump-ir", folder / "ir", "--quiet"});
    EXPECT_EQ(readFile(folder / "ir/4-differentiate.mlir").find("limit(") != std::string::npos, *rows == '3');
    trainLabels();
  }
}

/// A sum over the whole table has a gradient in every row, though it is elementwise, too.
TEST_F(EditedSparseTest, RefusesTablesThatAreAlsoReadWhole) {
  load("model.onnx");
  addNode("ReduceSum", {"items.weight"}, "sum");
  addNode("Add", {"output", "sum"}, "regularized");
  model.mutable_graph()->mutable_output(0)->set_name("regularized");
  std::vector<std::string> flags = trainFlags("sgd", {"--sparse", "items.weight"});
  flags[1] = save();
  Outcome outcome = runTool(flags);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find("'items.weight' is read otherwise than by Gather along its first axis"),
            std::string::npos)
      << outcome.errors;
}

TEST_F(SparseTest, RefusesWhatMovesOtherRows) {
  struct Case {
    std::string optimizer;
    std::vector<std::string> flags;
    std::string message;
  };
  const Case cases[] = {
      {"sgd:momentum=0.9",
       {"--sparse", "items.weight"},
       "--sparse 'items.weight': momentum of 'sgd' moves every row of 'items.weight' in every step; lazy=1 "
       "lets it "
       "wait for a row's next gradient"},
      {"adamw", {"--sparse", "items.weight"}, "weight_decay of 'adamw' moves every row"},
      {"rmsprop", {"--sparse", "items.weight"}, "the average of squares of 'rmsprop' moves every row"},
      {"lion", {"--sparse", "items.weight"}, "the average of gradients of 'lion' moves every row"},
      {"adadelta", {"--sparse", "items.weight"}, "the average of squares of 'adadelta' moves every row"},
      {"lamb",
       {"--sparse", "items.weight:lazy=1"},
       "--sparse 'items.weight:lazy=1' updates rows of 'items.weight', and 'lamb' needs the norm of the "
       "parameter; give "
       "it a group with another optimizer"},
      {"adam", {"--group", "items.*:weight_decay=0.1", "--sparse", "items.weight"}, "weight_decay of 'adam'"},
      {"adam",
       {"--sparse", "head.weight"},
       "--sparse: 'head.weight' is read otherwise than by Gather along its first axis"},
      {"adam", {"--sparse", "items.weight", "--gradients"}, "which --gradients shows"},
      {"adam", {"--sparse", "items.weight", "--accumulate", "2"}, "which --accumulate adds up"},
      {"adam", {"--sparse", "items.weight:lasy=1"}, "lasy"},
      {"adam",
       {"--sparse", "items.weight", "--parameters", "bf16:stochastic"},
       "draws numbers for whole tables"},
      {"adam", {"--sparse", "("}, "("},
  };
  for (const Case &each : cases) {
    Outcome outcome = runTool(trainFlags(each.optimizer, each.flags));
    EXPECT_EQ(outcome.status, 2) << each.message;
    EXPECT_NE(outcome.errors.find(each.message), std::string::npos) << outcome.errors;
    EXPECT_FALSE(std::filesystem::exists(folder / "artifact")) << each.message;
  }
  mustRun(trainFlags("adamw", {"--sparse", "items.weight:lazy=1"}));
  mustRun(trainFlags("radam", {"--sparse", "items.weight:lazy=1"}));
  mustRun(trainFlags("lamb", {"--sparse", "items.weight", "--group", "items.weight:optimizer=adagrad"}));
}

} // namespace
