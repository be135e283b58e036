// Losses and optimizers that are ONNX functions, against PyTorch (test/functions/make-functions.py).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/frontend/onnx.pb.h"
#include "engine/data/writers.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

/// Two ways in float64, ten steps.
constexpr double kTolerance = 1e-12;

template <typename T> std::vector<uint8_t> bytesOfAll(const std::vector<T> &values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::string functionPath(const std::string &name) { return sourcePath("functions/" + name); }

nlohmann::json readTorch() {
  std::ifstream file(functionPath("functions.json"));
  return nlohmann::json::parse(file);
}

class FunctionsTest : public testing::Test {
protected:
  FunctionsTest() {
    auto arrays = loadValues(digits.data());
    std::vector<float> x, mask, values;
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < 160; ++i) {
      for (int64_t k = 0; k < 64; ++k)
        x.push_back(float(arrays["pixels"].data[size_t(i * 64 + k)]));
      indices.push_back(int64_t(arrays["label"].data[size_t(i)]));
      mask.push_back(float(i % 4) * 0.5f);
      for (int64_t k = 0; k < 10; ++k)
        values.push_back(float((i + k) % 6) * 0.2f);
    }
    auto write = [&](const std::string &name, std::vector<engine::OutputArray> more) {
      more.push_back({"pixels", DataType::Float32, {160, 64}, bytesOfAll(x)});
      EXPECT_TRUE(engine::writeNpz(folder / name, more).isOk());
    };
    write("values.npz",
          {{"label", DataType::Float32, {160, 10}, bytesOfAll(values)},
           {"sample_weight", DataType::Float32, {160}, bytesOfAll(std::vector<float>(160, 2))}});
    write("mask.npz", {{"label", DataType::Int64, {160}, bytesOfAll(indices)},
                       {"mask", DataType::Float32, {160}, bytesOfAll(mask)}});
    write("two.npz", {{"label.a", DataType::Int64, {160}, bytesOfAll(indices)},
                      {"mask.a", DataType::Float32, {160}, bytesOfAll(mask)},
                      {"label.b", DataType::Float32, {160, 10}, bytesOfAll(values)}});
  }

  Outcome compile(const std::vector<std::string> &more, const std::string &precision = "f64",
                  const std::string &artifact = "a") {
    std::vector<std::string> flags{"train",       digits.model(), "--shape",        "batch=16",
                                   "--precision", precision,      "--target",       "native",
                                   "--quiet",     "-o",           folder / artifact};
    flags.insert(flags.end(), more.begin(), more.end());
    return runTool(flags);
  }
  void run(const std::string &data, int steps, const std::string &to, const std::string &from = "") {
    std::vector<std::string> flags{"run",       folder / "a",          "--data",       data,
                                   "--steps",   std::to_string(steps), "--no-shuffle", "--quiet",
                                   "--metrics", folder / "m.jsonl",    "--save",       folder / to};
    if (!from.empty())
      flags.insert(flags.end(), {"--load", folder / from});
    mustRun(flags);
  }
  /// Trains ten steps.
  std::map<std::string, std::vector<double>> train(const std::vector<std::string> &flags,
                                                   const std::string &data,
                                                   const std::string &precision = "f64") {
    Outcome compiled = compile(flags, precision);
    EXPECT_EQ(compiled.status, 0) << compiled.errors;
    run(data, 10, "end.safetensors");
    std::map<std::string, std::vector<double>> got{{"loss", loadLosses(folder / "m.jsonl")}};
    for (const auto &[name, values] : loadValues(folder / "end.safetensors")) {
      double sum = 0, squares = 0;
      for (double value : values.data) {
        sum += value;
        squares += value * value;
      }
      got[name] = {sum, std::sqrt(squares)};
    }
    return got;
  }
  void expectTorch(const std::string &name, std::map<std::string, std::vector<double>> got) {
    nlohmann::json expected = readTorch()[name];
    ASSERT_EQ(expected.size(), 5u) << name; // losses and four tensors
    for (const auto &[key, wanted] : expected.items()) {
      ASSERT_EQ(got[key].size(), wanted.size()) << key;
      for (size_t i = 0; i < wanted.size(); ++i)
        EXPECT_NEAR(got[key][i], double(wanted[i]), kTolerance * std::fabs(double(wanted.back())))
            << name << " " << key;
    }
  }
  void expectRefusal(const std::vector<std::string> &flags, const std::string &text) {
    Outcome outcome = compile(flags, "f64", "refused");
    EXPECT_EQ(outcome.status, 2) << outcome.errors;
    EXPECT_NE(outcome.errors.find(text), std::string::npos) << outcome.errors;
    EXPECT_FALSE(std::ifstream(folder / "refused/model.ortc").good());
  }

  /// The same where an input or an initializer of the model has another name.
  void expectRefusal(const std::string &from, const std::string &to, const std::vector<std::string> &flags,
                     const std::string &text) {
    proto::ModelProto model;
    ASSERT_TRUE(model.ParseFromString(readFile(digits.model())));
    proto::GraphProto &graph = *model.mutable_graph();
    auto rename = [&](std::string &name) { name = name == from ? to : name; };
    for (auto &input : *graph.mutable_input())
      rename(*input.mutable_name());
    for (auto &initializer : *graph.mutable_initializer())
      rename(*initializer.mutable_name());
    for (auto &node : *graph.mutable_node())
      for (std::string &operand : *node.mutable_input())
        rename(operand);
    folder.write("renamed.onnx", model.SerializeAsString());
    std::vector<std::string> all{
        "train", folder / "renamed.onnx", "--shape", "batch=16", "--quiet", "--target", "native",
        "-o",    folder / "refused"};
    all.insert(all.end(), flags.begin(), flags.end());
    Outcome outcome = runTool(all);
    EXPECT_EQ(outcome.status, 2) << outcome.errors;
    EXPECT_NE(outcome.errors.find(text), std::string::npos) << outcome.errors;
    EXPECT_FALSE(std::ifstream(folder / "refused/model.ortc").good());
  }

  TemporaryFolder folder;
  ZooEntry digits{"mlp-digits"};
};

class LossFunctionsTest : public FunctionsTest {};

TEST_F(LossFunctionsTest, TrainAsPyTorchDoes) {
  for (const char *keys : {"", ":scale=2.5"})
    expectTorch(std::string("log_cosh") + keys,
                train({"--loss", "onnx:" + functionPath("log_cosh.onnx") + keys, "--optimizer", "sgd:lr=0.1"},
                      folder / "values.npz"));
  expectTorch("masked_cross_entropy", train({"--loss", "onnx:" + functionPath("masked_cross_entropy.onnx"),
                                             "--optimizer", "sgd:lr=0.1"},
                                            folder / "mask.npz"));
}

/// Each has its value; what is trained is their weighted sum.
TEST_F(LossFunctionsTest, AreLossesAmongOthers) {
  std::string masked = "a=onnx:" + functionPath("masked_cross_entropy.onnx") + "@output",
              cosh = "b=onnx:" + functionPath("log_cosh.onnx") + ":scale=2.5@output:weight=0.25";
  train({"--loss", masked, "--loss", cosh, "--optimizer", "sgd:lr=0"}, folder / "two.npz");
  std::ifstream file(folder / "m.jsonl");
  std::string line;
  std::getline(file, line);
  nlohmann::json first = nlohmann::json::parse(line);
  double a = first["loss.a"], b = first["loss.b"];
  nlohmann::json torch = readTorch();
  EXPECT_NEAR(a, torch["masked_cross_entropy"]["loss"][0], 1e-12);
  EXPECT_NEAR(b, torch["log_cosh:scale=2.5"]["loss"][0], 1e-12);
  EXPECT_NEAR(first["loss"], a + 0.25 * b, 1e-12);
}

/// Terms are reduced as those of other losses; slices that are not full give the loss of all samples.
TEST_F(LossFunctionsTest, TermsAreReduced) {
  std::string file = "onnx:" + functionPath("log_cosh.onnx");
  auto mean = train({"--loss", file, "--optimizer", "sgd:lr=0"}, folder / "values.npz"),
       sum = train({"--loss", file + ":reduction=sum", "--optimizer", "sgd:lr=0"}, folder / "values.npz");
  for (size_t i = 0; i < 10; ++i)
    EXPECT_NEAR(sum["loss"][i], 160 * mean["loss"][i], 1e-12 * sum["loss"][i]);
  // Equal weights change no mean, and multiply a sum.
  for (auto [keys, plain, factor] :
       {std::tuple(":sample_weight=1", &mean, 1.0), {":sample_weight=1,reduction=sum", &sum, 2.0}}) {
    auto weighted = train({"--loss", file + keys, "--optimizer", "sgd:lr=0"}, folder / "values.npz");
    for (size_t i = 0; i < 10; ++i)
      EXPECT_NEAR(weighted["loss"][i], factor * (*plain)["loss"][i], 1e-12 * weighted["loss"][i]) << keys;
  }
  expectRefusal({"--loss", "onnx:" + functionPath("masked_cross_entropy.onnx") + ":reduction=sum"},
                "has no samples for reduction");
}

TEST_F(LossFunctionsTest, RefuseWithReason) {
  std::string cosh = "onnx:" + functionPath("log_cosh.onnx");
  expectRefusal({"--loss", "onnx:" + (folder / "none.onnx")}, "none.onnx");
  expectRefusal({"--loss", cosh + ":scael=2"},
                "loss 'onnx:log_cosh.onnx' has no option 'scael'; it takes scale, "
                "reduction, sample_weight; did you mean 'scale'?");
  expectRefusal({"--loss", "onnx:" + digits.model()},
                "input 'pixels' is FLOAT[batch,64], and what it is given is f64[16,10]"); // no label
  expectRefusal({"--loss", "onnx:" + functionPath("lion.onnx")}, "gives 2 outputs; a loss is one");
  expectRefusal({"--loss", "onnx:" + functionPath("bad/key-of-all.onnx")},
                "loss 'onnx:key-of-all.onnx' has a key 'reduction', which all losses have");
  expectRefusal({"--loss", cosh + "@output+output"}, "has no output 'output+output'");
  // Inputs have the types of the model's inputs of their names.
  expectRefusal("pixels", "mask", {"--loss", "onnx:" + functionPath("masked_cross_entropy.onnx")},
                "input 'mask' is FLOAT[N], and what it is given is f32[16,64]");
  expectRefusal(
      "pixels", "sample_weight", {"--loss", cosh + ":sample_weight=1"},
      "the model's input 'sample_weight' is f32[16,64], and loss onnx:log_cosh.onnx reads f32[16] of "
      "that name; rename it in the model");
}

class OptimizerFunctionsTest : public FunctionsTest {
protected:
  std::string adamw = "onnx:" + functionPath("adamw.onnx"), lion = "onnx:" + functionPath("lion.onnx"),
              norm = "onnx:" + functionPath("adagrad_norm.onnx");
  /// The checkpoint of ten steps of a model of the zoo.
  std::string trainEntry(const std::string &name, const std::vector<std::string> &more) {
    ZooEntry entry(name);
    std::vector<std::string> flags{"train",    entry.model(), "-o",     folder / "zoo",
                                   "--target", "native",      "--quiet"};
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    flags.insert(flags.end(), more.begin(), more.end());
    mustRun(flags);
    mustRun({"run", folder / "zoo", "--data", entry.data(), "--no-shuffle", "--steps", "10", "--quiet",
             "--save", folder / "zoo.safetensors"});
    return readTensors(folder / "zoo.safetensors");
  }
};

TEST_F(OptimizerFunctionsTest, TrainAsPyTorchDoes) {
  expectTorch("adamw",
              train({"--optimizer", adamw + ":lr=0.01,beta1=0.8,weight_decay=0.1"}, folder / "mask.npz"));
  expectTorch("adagrad_norm", train({"--optimizer", norm}, folder / "mask.npz"));
}

/// In float32, bit for bit; the weights of convolutions, and others that are stored transposed, too.
TEST_F(OptimizerFunctionsTest, AreTheOptimizersOfTheTable) {
  for (const char *model : {"lenet", "gpt2-tiny"})
    EXPECT_TRUE(trainEntry(model, {"--optimizer", lion + ":lr=0.01,weight_decay=0.1"}) ==
                trainEntry(model, {"--optimizer", "lion:lr=0.01,weight_decay=0.1"}))
        << model;
  std::vector<std::string> flags{"--no-decay", "biases", "--clip-norm", "0.5", "--optimizer"};
  auto with = [&](const std::string &optimizer) {
    std::vector<std::string> all = flags;
    all.push_back(optimizer);
    return trainEntry("lenet", all);
  };
  EXPECT_TRUE(with(lion + ":lr=0.01,weight_decay=0.1") == with("lion:lr=0.01,weight_decay=0.1"));
}

/// Keys of groups, another function in a group, and what is saved in between is all that goes on.
TEST_F(OptimizerFunctionsTest, HaveGroupsAndResume) {
  std::vector<std::string> bases = {adamw + ":lr=0.01,weight_decay=0.1", "adamw:lr=0.01,weight_decay=0.1"};
  std::vector<std::map<std::string, std::vector<double>>> got;
  for (const std::string &base : bases)
    got.push_back(
        train({"--optimizer", base, "--group", ".*bias:weight_decay=0,beta1=0.5,lr_scale=2", "--group",
               "2.*:optimizer=" + (base[0] == 'o' ? lion : std::string("lion")) + ",lr=0.001"},
              folder / "mask.npz"));
  for (size_t i = 0; i < 10; ++i)
    EXPECT_NEAR(got[0]["loss"][i], got[1]["loss"][i], 1e-12);
  for (const std::string &optimizer : {adamw + ":lr=0.01", norm}) {
    train({"--optimizer", optimizer}, folder / "mask.npz", "f32");
    run(folder / "mask.npz", 4, "half.safetensors");
    run(folder / "mask.npz", 6, "resumed.safetensors", "half.safetensors");
    EXPECT_TRUE(readTensors(folder / "resumed.safetensors") == readTensors(folder / "end.safetensors"))
        << optimizer;
  }
  auto states = loadValues(folder / "end.safetensors");
  EXPECT_EQ(states["0.weight.total"].shape, (Shape{1, 1}));
  EXPECT_GT(states["0.weight.total"].data.at(0), 0.25);
}

TEST_F(OptimizerFunctionsTest, RefuseWithReason) {
  expectRefusal({"--optimizer", adamw}, "optimizer 'onnx:adamw.onnx' has no value for 'lr': give lr=NUMBER");
  expectRefusal({"--optimizer", adamw + ":lr=-1"}, "lr is '-1' but must be a number from 0 to 3.4e38");
  expectRefusal({"--optimizer", adamw + ":lr=1,beta3=0.9"},
                "has no option 'beta3'; it takes lr, beta1, beta2, epsilon, "
                "weight_decay; did you mean 'beta1'?");
  expectRefusal({"--group", ".*bias:optimizer=" + adamw},
                "group '.*bias' of optimizer 'onnx:adamw.onnx' has no value "
                "for 'lr'");
  expectRefusal(
      {"--optimizer", "onnx:" + functionPath("log_cosh.onnx")},
      "optimizer 'onnx:log_cosh.onnx' has no input 'parameter'; its inputs are output, label and scale");
  expectRefusal("2.bias", "0.weight.exp_avg", {"--optimizer", lion},
                "optimizer 'onnx:lion.onnx': the state 'exp_avg' of '0.weight' would be the tensor "
                "'0.weight.exp_avg', and the model has one of that name; rename 'exp_avg' in the file '" +
                    functionPath("lion.onnx") + "'");
  // Each file differs from a good one in one thing.
  const std::pair<const char *, const char *> bad[] = {
      {"no-result", "has no output 'parameter_new'; its outputs are parameter_out and m_new; did you mean"},
      {"no-state", "output 'v_new' is no new state; that of an input NAME is called NAME_new"},
      {"no-key", "has no value for 'beta'"},
      {"flag-key", "has a key 'clip_norm', which is a name of a step's own; rename it in the file"},
      {"flag-state", "has a state 'ema', which is a name of a step's own; rename it in the file"},
      {"negative-lr", "the default of 'lr' is -1, but must be a number from 0 to 3.4e38"},
      {"infinite-lr", "the default of 'lr' is inf; it must be a finite number"},
      {"vector-key", "input 'lr' is FLOAT[2], and it is one number"},
      {"matrix", "input 'parameter' is FLOAT[64,N], and what it is given is f64[64]"},
      {"shape", "output 'm_new' is f64[], and 'm' is f64[64,64]"},
      {"unknown-operator", "Nonsense 'parameter_new': no such operator in the standard"},
      {"branch", "If"},
      {"random", "it draws random numbers, which formulas do not"},
      {"integers", "input 'm' is INT64[...], and tensors of an optimizer are FLOAT"}};
  for (auto [name, message] : bad)
    expectRefusal({"--optimizer", "onnx:" + functionPath("bad/" + std::string(name) + ".onnx")}, message);
  expectRefusal({"--optimizer", "onnx:" + folder.write("text.onnx", "no ONNX at all")}, "text.onnx");
}

} // namespace
