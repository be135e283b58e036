// Files of test/exporters, as their exporters wrote them: what is trained, the first gradients, and what is
// said about them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/frontend/onnx.pb.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

struct Habit {
  std::string name;
  std::vector<std::string> flags;
  std::vector<std::string> said;       ///< parts of notes and warnings
  bool isQuiet = false;                ///< nothing is said
  std::vector<std::string> shown = {}; ///< parts of the summary
};

const std::vector<Habit> kHabits = {
    // scikit-learn's classifier: the label's operators are dropped, the loss takes what goes into the softmax.
    {"sklearn-mlp",
     {"--shape", "X=8x6", "--loss-input", "add_result1"},
     {"output 'output_label' is left out", "'add_result1' is no output"}},
    // The exporter says what is a buffer: tables and scalars stay as they are. The head is the embedding.
    {"torch-dynamo-buffers", {"--loss", "cross_entropy:axis=-1"}, {"is tied to it again"}},
    // The same module written by TorchScript, which says nothing.
    {"torchscript-buffers",
     {"--loss", "cross_entropy:axis=-1", "--freeze", "cos|scale|onnx::Add.*"},
     {"'onnx::MatMul_58' (transposed 'embed.weight')"}},
    // Keras' GRU is a Loop whose condition is computed from lifted constants.
    {"keras-gru", {"--shape", "ids=8x7"}, {}, true},
    // JAX: epsilons behind CastLike and elsewhere, bounds, counts, a scale of scores, NaN for a mean of
    // nothing. Weights of one element (a slope, a layer scale, the logarithm of a temperature, a bias) are no
    // such numbers.
    {"flax-norms",
     {"--loss", "mse"},
     {"'const_35' is not trained, as a constant of a formula: fills what a mask leaves out"},
     false,
     {"\ntrained    18 tensors, 380 of the 415 values in the file's float initializers\n"
      "           of one element: const_3, const_15, const_20, const_40\n"
      "frozen     eps_0, const_18, const_19, dpa_scale_0, ... (14 tensors): 14 values, "}},
    // Keras on JAX: a batch normalisation is its formula, whose statistics stay; a slope, a scale and a bias
    // of one element.
    {"keras-norms",
     {"--loss", "mse", "--shape", "batch=4"},
     {"'const_13', 'const_14' are not trained, as running statistic of a batch normalisation"},
     false,
     {"20 tensors, 396 of the 428 values", "of one element: const_4, const_18, const_21, const_40\n"}},
    // A frozen backbone, named by the model itself, whose weights the exporter has transposed and renamed.
    {"torch-dynamo-frozen",
     {"--loss", "mse"},
     {"ortc: note: ortc.frozen of the model names 5 tensors not to be trained\n"},
     false,
     {"10 tensors, 92 of the 263 values", "of one element: temperature, layer_scale, head.bias, val_13\n",
      "frozen     positions, backbone.0.bias, backbone.2.bias, val_0, ... (5 tensors): 168 values, frozen by "
      "ortc.frozen of the model\n"}},
    // The same module written by TorchScript, which does not say what is a buffer; the names stand in a file.
    {"torchscript-frozen",
     {"--loss", "mse", "--freeze", "@" + sourcePath("exporters/torchscript-frozen/frozen.txt")},
     {"'norm.eps' is not trained, as a constant of a formula: added to a variance or a sum of squares",
      "'most' is not trained, as a constant of a formula: a bound of Max, Min or Clip",
      "'scale' is not trained, as a constant of a formula: scales attention scores by the size of the heads"},
     false,
     {"of one element: temperature, layer_scale, slope.weight, head.bias\n"}},
};

class ExportersTest : public testing::TestWithParam<Habit> {};

TEST_P(ExportersTest, TrainsWhatTheModelTrains) {
  const Habit &habit = GetParam();
  std::string folder = sourcePath("exporters/" + habit.name) + "/";
  TemporaryFolder out;
  std::vector<std::string> command{"train",  folder + "model.onnx", "-o", out / "a", "--target",
                                   "native", "--gradients"};
  command.insert(command.end(), habit.flags.begin(), habit.flags.end());
  Outcome outcome = mustRun(command);
  for (const std::string &text : habit.said)
    EXPECT_NE(outcome.errors.find(text), std::string::npos) << text << "\n" << outcome.errors;
  if (habit.isQuiet)
    EXPECT_EQ(outcome.errors, "");
  for (const std::string &text : habit.shown)
    EXPECT_NE(outcome.text.find(text), std::string::npos) << text << "\n" << outcome.text;
  mustRun({"gradients", out / "a", "--data", folder + "data.npz", "-o", out / "g.safetensors", "--quiet"});
  auto got = loadValues(out / "g.safetensors"), wanted = loadValues(folder + "golden.npz");
  std::set<std::string> names, known;
  double largest = 0;
  for (const auto &[name, values] : wanted) {
    known.insert(name);
    if (name != "loss")
      for (double value : values.data)
        largest = std::max(largest, std::fabs(value));
  }
  for (const auto &[name, values] : got)
    names.insert(name);
  ASSERT_EQ(names, known);
  for (const auto &[name, values] : wanted) {
    ASSERT_EQ(got[name].shape, values.shape) << name;
    for (size_t i = 0; i < values.data.size(); ++i)
      ASSERT_NEAR(got[name].data[i], values.data[i], name == "loss" ? 1e-5 : 1e-4 * largest)
          << name << " " << i;
  }
}

/// The model of torch-dynamo-frozen with other metadata, compiled with more flags: the manifest's "trained".
class NameListTest : public testing::Test {
protected:
  std::set<std::string> train(const std::map<std::string, std::string> &metadata,
                              const std::vector<std::string> &flags) {
    proto::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(readFile(sourcePath("exporters/torch-dynamo-frozen/model.onnx"))));
    model.clear_metadata_props();
    for (const auto &[key, value] : metadata) {
      auto *entry = model.add_metadata_props();
      entry->set_key(key);
      entry->set_value(value);
    }
    std::vector<std::string> command{"train",    folder.write("m.onnx", model.SerializeAsString()),
                                     "-o",       folder / "a",
                                     "--loss",   "mse",
                                     "--target", "native"};
    command.insert(command.end(), flags.begin(), flags.end());
    outcome = mustRun(command);
    std::set<std::string> names;
    auto manifest = nlohmann::json::parse(readFile(folder / "a/manifest.json"));
    for (const auto &name : manifest["trained"])
      names.insert(name.get<std::string>());
    return names;
  }
  TemporaryFolder folder;
  Outcome outcome;
};

TEST_F(NameListTest, TrainableMeansNothingElse) {
  // val_14 was computed from head.weight.
  EXPECT_EQ(train({{"ortc.trainable", "head.weight\r\nhead.bias\nnorm.eps\nlost"}}, {}),
            (std::set<std::string>{"val_14", "head.bias", "norm.eps"}));
  EXPECT_NE(outcome.errors.find("note: ortc.trainable of the model names 4 tensors to be trained\n"),
            std::string::npos);
  EXPECT_NE(outcome.errors.find("ortc.trainable of the model has 1 name that is no initializer: 'lost'"),
            std::string::npos);
  EXPECT_NE(outcome.text.find("not trained by ortc.trainable of the model\n"), std::string::npos)
      << outcome.text;
}

TEST_F(NameListTest, FrozenWinsOverTrainableAndFlagsOverBoth) {
  std::map<std::string, std::string> lists{{"ortc.trainable", "head.weight\nhead.bias"},
                                           {"ortc.frozen", "head.bias"}};
  EXPECT_EQ(train(lists, {}), (std::set<std::string>{"val_14"}));
  std::string file = folder.write("names", "norm.weight\nhead.bias\nkey.bias\n");
  EXPECT_EQ(train(lists, {"--train", "@" + file, "--freeze", "key.*"}),
            (std::set<std::string>{"norm.weight", "head.bias"}));
}

TEST_F(NameListTest, AListWithoutNamesFreezesNothing) {
  EXPECT_EQ(train({{"ortc.frozen", ""}}, {"--freeze", "@" + folder.write("none", "\n")}).size(), 15u);
}

/// Models of make_torch.py: the losses of training steps are PyTorch's, without a flag, whatever the export.
struct Export {
  std::string name;
  std::vector<std::string> said; ///< parts of notes; none: nothing is said
};

const char kConstants[] = "are constants and not trained", kRestored[] = "their own again",
           kTied[] = "one parameter with it";
const std::vector<Export> kExports = {
    {"shared-dynamo", {kTied, "is tied to it again"}},
    {"shared-dynamo-unfolded", {}},
    {"shared-torchscript", {kTied}},
    {"shared-torchscript-unfolded", {}},
    {"groupnorm-dynamo", {kConstants, kRestored}},
    {"groupnorm-dynamo-21", {kConstants, kRestored}},
    {"groupnorm-dynamo-unfolded", {}},
    {"groupnorm-torchscript", {kRestored, "the exporter made up the name"}},
    {"groupnorm-torchscript-unfolded", {}},
    {"copied-dynamo", {kRestored}},
    {"copied-dynamo-unfolded", {}},
    {"copied-torchscript", {kRestored}},
    {"copied-torchscript-unfolded", {}},
    // Without the values of nodes that the exporter has removed, which their readers' notes still name.
    {"detached-dynamo",
     {"tell of 4 detached values, which no gradient goes back through: 'detach', 'detach_1', 'detach_2' and "
      "1 more",
      "tell of 1 lookup with a padding row, which it does not train: 'embedding' (row 2)"}},
    {"detached-dynamo-unfolded", {"tell of 4 detached values", "tell of 1 lookup with a padding row"}},
    {"chosen-dynamo-unfolded",
     {"ortc.detached of the model names 1 value that no gradient goes back through: 'tanh'",
      "ortc.padding of the model names 1 lookup with a padding row, which it does not train: 'embedding' "
      "(row -7)",
      "ortc.straight_through of the model names 1 value whose gradient goes to another as it is: 'div' (to "
      "'linear_1')"}},
    {"chosen-torchscript-unfolded",
     {"ortc.detached of the model names 1 value", "ortc.padding of the model names 1 lookup",
      "ortc.straight_through of the model names 1 value"}},
};

class TorchExportsTest : public testing::TestWithParam<Export> {};

TEST_P(TorchExportsTest, TrainsAsPyTorchDoes) {
  std::string source = sourcePath("exporters/torch-" + GetParam().name) + "/";
  TemporaryFolder out;
  Outcome outcome = mustRun({"train", source + "model.onnx", "-o", out / "a", "--target", "native", "--loss",
                             "cross_entropy:axis=-1", "--optimizer", "sgd:lr=0.2"});
  for (const std::string &text : GetParam().said)
    EXPECT_NE(outcome.errors.find(text), std::string::npos) << text << "\n" << outcome.errors;
  if (GetParam().said.empty())
    EXPECT_EQ(outcome.errors, "");
  mustRun({"run", out / "a", "--data", source + "data.npz", "--steps", "4", "--no-shuffle", "--quiet",
           "--metrics", out / "m.jsonl", "--save", out / "s.safetensors"});
  std::vector<double> got = loadLosses(out / "m.jsonl"),
                      wanted = loadValues(source + "golden.npz")["losses"].data;
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) // four steps of float32 against float64: 1.4e-6 was the largest
    EXPECT_NEAR(got[i], wanted[i], 2e-5) << i;
  // What is exported holds every copy, and needs nothing to be said of it to predict the same.
  mustRun({"export", out / "a", "--load", out / "s.safetensors", "-o", out / "e.onnx", "--quiet"});
  mustRun({"train", out / "e.onnx", "-o", out / "b", "--loss", "none", "--target", "native", "--quiet"});
  mustRun({"predict", out / "a", "--load", out / "s.safetensors", "--data", source + "data.npz", "-o",
           out / "pa.npz", "--quiet"});
  mustRun({"predict", out / "b", "--data", source + "data.npz", "-o", out / "pb.npz", "--quiet"});
  auto a = loadValues(out / "pa.npz"), b = loadValues(out / "pb.npz");
  ASSERT_EQ(a.size(), 1u);
  auto &[name, values] = *a.begin();
  ASSERT_EQ(values.shape, b[name].shape);
  for (size_t i = 0; i < values.data.size(); ++i)
    ASSERT_NEAR(values.data[i], b[name].data[i], 1e-5) << i;
}

struct Norms {
  std::string name, flag;
};

class TorchNormsTest : public testing::TestWithParam<Norms> {};

/// Batch norms with running statistics beside those without, in training and evaluation: no flag is about the latter.
TEST_P(TorchNormsTest, LearnAndPredictAsInPyTorch) {
  std::string source = sourcePath("exporters/torch-" + GetParam().name) + "/";
  TemporaryFolder out;
  Outcome outcome = mustRun({"train", source + "model.onnx", "-o", out / "a", "--target", "native",
                             "--batch-norm", GetParam().flag + ":unbiased=1", "--optimizer", "sgd:lr=0.2"});
  EXPECT_EQ(outcome.errors, "");
  mustRun({"run", out / "a", "--data", source + "data.npz", "--steps", "4", "--no-shuffle", "--quiet",
           "--metrics", out / "m.jsonl", "--save", out / "s.safetensors"});
  mustRun({"predict", out / "a", "--load", out / "s.safetensors", "--data", source + "data.npz", "-o",
           out / "p.npz", "--quiet"});
  auto golden = loadValues(source + "golden.npz");
  std::vector<double> losses = loadLosses(out / "m.jsonl"),
                      predicted = loadValues(out / "p.npz").begin()->second.data;
  ASSERT_EQ(losses.size(), golden["losses"].data.size());
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(losses[i], golden["losses"].data[i], 1e-5) << i;
  ASSERT_EQ(predicted.size(), golden["predictions"].data.size());
  for (size_t i = 0; i < predicted.size(); ++i) // float32 against float64: 3.2e-6 was the largest
    EXPECT_NEAR(predicted[i], golden["predictions"].data[i], 5e-5) << i;
}

INSTANTIATE_TEST_SUITE_P(Torch, TorchNormsTest,
                         testing::Values(Norms{"batchnorm-dynamo-unfolded", "as-exported"},
                                         Norms{"batchnorm-dynamo-unfolded", "train"},
                                         Norms{"batchnorm-torchscript-unfolded", "as-exported"},
                                         Norms{"batchnorm-torchscript-unfolded", "train"},
                                         Norms{"standardized-dynamo-unfolded", "as-exported"},
                                         Norms{"standardized-dynamo-unfolded", "train"},
                                         Norms{"standardized-torchscript-unfolded", "as-exported"},
                                         Norms{"standardized-torchscript-unfolded", "train"},
                                         Norms{"instancenorm-torchscript-13", "as-exported"},
                                         Norms{"instancenorm-torchscript-13", "train"}),
                         [](const auto &info) { return caseName(info.param.name + "-" + info.param.flag); });

/// Only one of three batch norms has running statistics: the warning counts that one.
TEST(TorchNormsAdviceTest, IsAboutRunningStatistics) {
  proto::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(
      readFile(sourcePath("exporters/torch-batchnorm-torchscript-unfolded/model.onnx"))));
  for (proto::NodeProto &node : *model.mutable_graph()->mutable_node())
    if (node.op_type() == "BatchNormalization")
      for (proto::AttributeProto &attribute : *node.mutable_attribute())
        if (attribute.name() == "training_mode")
          attribute.set_i(0);
  TemporaryFolder out;
  std::string path = out.write("m.onnx", model.SerializeAsString());
  auto compile = [&](const std::vector<std::string> &flags) {
    std::vector<std::string> command{"train", path, "-o", out / "a", "--target", "native", "--quiet"};
    command.insert(command.end(), flags.begin(), flags.end());
    return mustRun(command).errors;
  };
  EXPECT_NE(
      compile({}).find("1 batch normalisation was exported for inference and keeps its running statistics; "
                       "--batch-norm train trains it"),
      std::string::npos);
  EXPECT_EQ(compile({"--batch-norm", "train"}), "");
}

/// PyTorch's momentum=None becomes the share of the step at which the module was exported: 0 in the first one.
TEST(TorchNormsAdviceTest, NamesStatisticsOfTheLastBatch) {
  proto::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(
      readFile(sourcePath("exporters/torch-batchnorm-torchscript-unfolded/model.onnx"))));
  for (proto::NodeProto &node : *model.mutable_graph()->mutable_node())
    for (proto::AttributeProto &attribute : *node.mutable_attribute())
      if (node.op_type() == "BatchNormalization" && attribute.name() == "momentum")
        attribute.set_f(0);
  TemporaryFolder out;
  std::string path = out.write("m.onnx", model.SerializeAsString());
  auto warn = [&](const std::string &mode) {
    return mustRun({"train", path, "-o", out / "a", "--target", "native", "--quiet", "--batch-norm", mode})
        .errors;
  };
  std::string warned = warn("as-exported");
  EXPECT_NE(warned.find("momentum 0 in the batch normalisation '/norm/BatchNormalization' "),
            std::string::npos)
      << warned;
  EXPECT_NE(warned.find("momentum=None"), std::string::npos) << warned;
  EXPECT_EQ(warn("frozen"), "");
}

/// What PyTorch's exporters get wrong is named, with the way round it.
TEST(TorchFaultsTest, AreNamed) {
  const std::map<std::string, std::string> said = {
      {"conv3d-without-bias",
       "a bias of shape 4x2 for 4 features; PyTorch's exporter writes that for conv3d without a "
       "bias: export with optimize=True, "},
      {"lstm-projection", "PyTorch's exporter has left out the projection of an LSTM with proj_size"},
      {"lstm-projection-two-layers",
       "PyTorch's exporter has left out the projection of an LSTM with proj_size"},
      {"lstm-projection-unnoted", "initial_c has shape 1x2x5, not 1x2x2, as that of an LSTM with projections "
                                  "(PyTorch's proj_size), which ONNX does not have"},
      {"scatter-mean",
       "PyTorch's exporter has written scatter_reduce with reduce='mean' as one that keeps the last of "
       "several values"},
      {"instancenorm-statistics",
       "BatchNormalization of version 15 has 1 to 3 outputs, not 5; PyTorch's TorchScript "
       "exporter writes instance norms with running statistics so in training mode"}};
  TemporaryFolder out;
  for (const auto &[name, text] : said) {
    Outcome outcome = runTool(
        {"train", sourcePath("exporters/torch-faults/" + name + ".onnx"), "-o", out / "a", "--quiet"});
    EXPECT_EQ(outcome.status, 2) << name;
    EXPECT_NE(outcome.errors.find(text), std::string::npos) << outcome.errors;
  }
}

/// The way back: the copy of a shared layer is a parameter of its own again, and the numbers are others.
TEST(TorchUntieTest, UntieIsTheWayBack) {
  std::string source = sourcePath("exporters/torch-shared-dynamo") + "/";
  TemporaryFolder out;
  std::vector<std::vector<double>> losses;
  for (bool isUntied : {false, true}) {
    std::vector<std::string> command{
        "train",  source + "model.onnx",   "-o",          out / "a",   "--target", "native",
        "--loss", "cross_entropy:axis=-1", "--optimizer", "sgd:lr=0.2"};
    if (isUntied)
      command.insert(command.end(), {"--untie", "val_4"});
    Outcome outcome = mustRun(command);
    EXPECT_EQ(outcome.errors.find("--untie val_4") == std::string::npos, isUntied) << outcome.errors;
    mustRun({"run", out / "a", "--data", source + "data.npz", "--steps", "4", "--no-shuffle", "--quiet",
             "--metrics", out / "m.jsonl"});
    losses.push_back(loadLosses(out / "m.jsonl"));
  }
  EXPECT_NEAR(losses[0][0], losses[1][0], 1e-6);
  EXPECT_GT(std::fabs(losses[0][3] - losses[1][3]), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Torch, TorchExportsTest, testing::ValuesIn(kExports),
                         [](const auto &info) { return caseName(info.param.name); });

INSTANTIATE_TEST_SUITE_P(Exporters, ExportersTest, testing::ValuesIn(kHabits),
                         [](const auto &info) { return caseName(info.param.name); });

} // namespace
