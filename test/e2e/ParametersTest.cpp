// --parameters bf16: what is stored of parameters is bfloat16, and new values are rounded to it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "compiler/frontend/onnx.pb.h"
#include "engine/data/writers.h"
#include "ortc/ortc.hpp"
#include "support/ElementTypes.h"
#include "test/e2e/Models.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;
using proto::TensorProto;

namespace {

/// The loss is the sum of x w: its gradient is x, and does not depend on w.
class RoundingTest : public testing::Test {
protected:
  using Numbers = std::vector<float>;

  void write(const Numbers &w, const Numbers &x, int type = TensorProto::FLOAT) {
    auto count = static_cast<int64_t>(w.size());
    proto::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(15);
    proto::GraphProto *graph = model.mutable_graph();
    graph->set_name("g");
    describe(graph->add_input(), "x", type, {count});
    TensorProto *tensor = graph->add_initializer();
    tensor->set_name("w");
    tensor->set_data_type(type);
    tensor->add_dims(count);
    if (type == TensorProto::FLOAT)
      tensor->set_raw_data(bytesOf(w));
    else
      tensor->set_raw_data(bytesOf(std::vector<double>(w.begin(), w.end())));
    addNode(graph, "Mul", {"x", "w"}, "m");
    auto *keep = addNode(graph, "ReduceSum", {"m"}, "loss")->add_attribute();
    keep->set_name("keepdims");
    keep->set_type(proto::AttributeProto::INT);
    keep->set_i(0);
    describe(graph->add_output(), "loss", type, {});
    folder.write("m.onnx", model.SerializeAsString());
    std::string bytes = bytesOf(x);
    ASSERT_TRUE(engine::writeNpz(
                    folder / "x.npz",
                    {{"x", DataType::Float32, {count}, std::vector<uint8_t>(bytes.begin(), bytes.end())}})
                    .isOk());
  }

  Outcome compile(const std::string &parameters, const std::string &lr,
                  const std::vector<std::string> &more = {}) {
    std::vector<std::string> flags{"train",        folder / "m.onnx", "-o",       folder / parameters,
                                   "--optimizer",  "sgd:lr=" + lr,    "--loss",   "output:loss",
                                   "--parameters", parameters,        "--target", "native",
                                   "--quiet"};
    flags.insert(flags.end(), more.begin(), more.end());
    return runTool(flags);
  }

  /// The weights after so many steps of `lr`.
  std::vector<double> train(const std::string &parameters, const std::string &lr, int steps) {
    Outcome outcome = compile(parameters, lr);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    std::string saved = folder / (parameters + ".safetensors");
    mustRun({"run", folder / parameters, "--data", folder / "x.npz", "--steps", std::to_string(steps),
             "--save", saved, "--no-shuffle", "--quiet"});
    return valuesOf(loadValues(saved), "w").data;
  }

  static double meanOf(const std::vector<double> &values) {
    double sum = 0;
    for (double value : values)
      sum += value;
    return sum / static_cast<double>(values.size());
  }

  TemporaryFolder folder;

private:
  template <typename T> static std::string bytesOf(const std::vector<T> &values) {
    return std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
  }
  static proto::NodeProto *addNode(proto::GraphProto *graph, const std::string &op,
                                   const std::vector<std::string> &inputs, const std::string &output) {
    proto::NodeProto *node = graph->add_node();
    node->set_op_type(op);
    for (const std::string &input : inputs)
      node->add_input(input);
    node->add_output(output);
    return node;
  }
};

/// 10,000 steps of 1e-4 from 1 are 2; bfloat16 has steps of 2^-7 there. Every one is taken with the probability
/// p = 1e-4 / 2^-7: a weight's end has a deviation of sqrt(10,000 p (1 - p)) 2^-7 = 0.088, the mean of 1,024 one of
/// 0.0027.
TEST_F(RoundingTest, ManySmallStepsAddUp) {
  constexpr size_t kCount = 1024;
  write(Numbers(kCount, 1), Numbers(kCount, -1));
  double wide = meanOf(train("f32", "1e-4", 10000));
  EXPECT_NEAR(wide, 2, 0.01);
  std::vector<double> found = train("bf16:stochastic", "1e-4", 10000);
  double mean = meanOf(found), squares = 0;
  EXPECT_NEAR(mean, wide, 0.01 * wide);
  for (double value : found)
    squares += (value - mean) * (value - mean);
  double deviation = std::sqrt(squares / kCount); // itself known to 1 / sqrt(2,048), 2.2 %
  EXPECT_NEAR(deviation, 0.088, 5 * 0.022 * 0.088);
  for (double value : train("bf16:nearest", "1e-4", 10000))
    ASSERT_EQ(value, 1);
  std::printf("f32 %.6f, stochastic %.6f, deviation %.4f\n", wide, mean, deviation);
}

/// The chance of either neighbour follows from where between them a value lies, for both signs and across powers of
/// two.
TEST_F(RoundingTest, ChancesAreThoseOfDistances) {
  constexpr size_t kCount = 1 << 16;
  constexpr float kStep = 0x1p-7f; // between numbers from 1 to 2
  struct Case {
    float from, move; ///< in steps
    double up;        ///< the share that ends at the upper neighbour
  };
  for (const Case &each :
       {Case{2 - kStep, 0.75f, 0.75}, {2, -0.75f, 0.25}, {-2, 0.75f, 0.75}, {-2 + kStep, -0.75f, 0.25}}) {
    write(Numbers(kCount, each.from), Numbers(kCount, -each.move));
    std::vector<double> found = train("bf16:stochastic", "0.0078125", 1);
    double low = std::min(each.from, each.from + std::copysign(kStep, each.move)), high = low + kStep;
    auto up = static_cast<double>(std::count(found.begin(), found.end(), high));
    EXPECT_EQ(up + static_cast<double>(std::count(found.begin(), found.end(), low)), kCount) << each.from;
    EXPECT_NEAR(up / kCount, each.up, 5 * std::sqrt(0.25 * 0.75 / kCount)) << each.from; // five deviations
  }
}

/// What bfloat16 has is not drawn for. Initial values are rounded to the nearest.
TEST_F(RoundingTest, KeepsWhatIsExact) {
  write({96, 1e-20f, -1.01171875f, 0}, {0, 0, 0, 0});
  EXPECT_EQ(train("bf16:stochastic", "1", 3),
            (std::vector<double>{96, bfloatToFloat(floatToBfloat(1e-20f)), -1.015625, 0}));
}

/// Infinities and NaN stay what they are. Beyond the largest number, 0x1.fep127, is infinity.
TEST_F(RoundingTest, KeepsWhatIsNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kLargest = 0x1.fep127f;
  constexpr size_t kCount = 4096;
  Numbers w(kCount, kLargest), x(kCount, -0x1p119f); // half a unit in the last place
  for (size_t i = 0; i < kCount; i += 2)
    w[i] = -kLargest, x[i] = -x[i];
  w[0] = kInfinity, w[1] = -kInfinity, w[2] = std::nanf(""), w[3] = -std::nanf("0x3fffff");
  write(w, x);
  Outcome outcome = compile("bf16:stochastic", "1");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  ortc::Program program(folder / "bf16:stochastic/model.ortc"); // `ortc run` saves no such weights
  ortc::Session session(program);
  session.bind("x", x);
  session.trainStep();
  session.save(folder / "saved.safetensors");
  std::vector<double> found = valuesOf(loadValues(folder / "saved.safetensors"), "w").data;
  EXPECT_EQ(found[0], kInfinity);
  EXPECT_EQ(found[1], -kInfinity);
  EXPECT_TRUE(std::isnan(found[2]) && std::isnan(found[3]));
  size_t infinite = 0;
  for (size_t i = 4; i < kCount; ++i) {
    ASSERT_TRUE(std::fabs(found[i]) == kLargest || std::isinf(found[i])) << found[i];
    ASSERT_EQ(std::signbit(found[i]), i % 2 == 0);
    infinite += std::isinf(found[i]);
  }
  EXPECT_NEAR(double(infinite) / kCount, 0.5, 5 * 0.5 / 64); // 64: the root of their number
}

TEST_F(RoundingTest, RefusesFloat64) {
  write({1}, {1}, TensorProto::DOUBLE);
  Outcome outcome = compile("bf16:stochastic", "1");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find(
                "parameter 'w' is of type 'f64', but those that are stored as bf16 are of f32 before"),
            std::string::npos)
      << outcome.errors;
  write({1}, {1});
  outcome = compile("bf16", "1", {"--precision", "f64"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find(
                "--parameters bf16 stores parameters in bfloat16, and --precision f64 keeps them in "
                "float64; leave one of both out"),
            std::string::npos)
      << outcome.errors;
  outcome = compile("bf16:up", "1");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find("'bf16:up' but must be one of f32, bf16, bf16:nearest, bf16:stochastic"),
            std::string::npos)
      << outcome.errors;
}

class ParametersTest : public testing::TestWithParam<std::string> {
protected:
  ParametersTest() : entry(GetParam()) {}

  std::string compile(const std::string &parameters, const std::vector<std::string> &more = {}) {
    std::vector<std::string> flags{"train",        entry.model(), "-o",          folder / parameters,
                                   "--parameters", parameters,    "--optimizer", entry.optimizers.at("adamw"),
                                   "--quiet"};
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    flags.insert(flags.end(), more.begin(), more.end());
    mustRun(flags);
    return folder / parameters;
  }
  /// Trains; the checkpoint. Losses are in NAME.jsonl.
  std::string train(const std::string &artifact, const std::string &name, int steps,
                    const std::vector<std::string> &more = {}) {
    std::string saved = folder / (name + ".safetensors");
    std::vector<std::string> flags{"run",          artifact,    "--data",
                                   entry.data(),   "--steps",   std::to_string(steps),
                                   "--no-shuffle", "--metrics", folder / (name + ".jsonl"),
                                   "--save",       saved,       "--quiet"};
    flags.insert(flags.end(), more.begin(), more.end());
    mustRun(flags);
    return saved;
  }

  TemporaryFolder folder;
  ZooEntry entry;
};

class ParametersCurveTest : public ParametersTest {};

/// Over 300 steps losses stay as near to those of float32 weights as PyTorch's do with rounded ones
/// (test/precision/make-parameters.py): 1.5 times the largest distance of four runs, which drift apart by chance.
TEST_P(ParametersCurveTest, StaysAsNearAsInPyTorch) {
  nlohmann::json curves =
      nlohmann::json::parse(readFile(sourcePath("precision/parameters.json")))[GetParam()];
  std::vector<double> wanted = curves["f32"];
  for (const char *kind : {"nearest", "stochastic"}) {
    std::vector<double> apart = curves[kind];
    double sum = 0, limit = 1.5 * *std::max_element(apart.begin(), apart.end());
    train(compile(std::string("bf16:") + kind, {"--target", "native"}), kind,
          static_cast<int>(wanted.size()));
    std::vector<double> losses = loadLosses(folder / (std::string(kind) + ".jsonl"));
    ASSERT_EQ(losses.size(), wanted.size());
    for (size_t i = 0; i < losses.size(); ++i) {
      ASSERT_TRUE(std::isfinite(losses[i]));
      sum += std::fabs(losses[i] - wanted[i]);
    }
    double distance = sum / static_cast<double>(losses.size());
    EXPECT_LE(distance, limit) << kind;
    EXPECT_GT(distance, limit / 100) << kind << ": nothing is rounded";
    std::printf("%s, %s: %.2e from float32, at most %.2e\n", GetParam().c_str(), kind, distance, limit);
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, ParametersCurveTest, testing::Values("mlp-digits", "resnet-tiny", "gpt2-tiny"),
                         [](const auto &info) { return caseName(info.param); });

class ParametersBitsTest : public ParametersTest {};

/// A run in two parts ends where a whole one does; another seed ends elsewhere. Parameters alone are bfloat16.
TEST_P(ParametersBitsTest, DoNotDependOnThreadsOrPauses) {
  for (const char *precision : {"f32", "bf16"}) {
    std::vector<std::string> flags{"--target", "native", "--max-workers", "4", "--precision", precision};
    std::string artifact = compile("bf16:stochastic", flags);
    std::string whole = train(artifact, "whole", 4, {"--threads", "1"});
    for (const char *threads : {"2", "4"})
      EXPECT_EQ(readTensors(train(artifact, threads, 4, {"--threads", threads})), readTensors(whole))
          << threads;
    std::string half = train(artifact, "half", 2);
    EXPECT_EQ(readTensors(train(artifact, "rest", 2, {"--load", half})), readTensors(whole)) << precision;
    nlohmann::json manifest = nlohmann::json::parse(readFile(artifact + "/manifest.json"));
    auto values = loadValues(whole);
    size_t parameters = 0;
    for (const auto &tensor : manifest["tensors"]) {
      bool isParameter = tensor["role"] == "parameter";
      std::string name = tensor["name"];
      parameters += isParameter;
      if (tensor["role"] != "constant")
        EXPECT_EQ(valuesOf(values, name).type == DataType::BFloat16, isParameter) << name;
    }
    EXPECT_GT(parameters, 0u);
    flags.insert(flags.end(), {"--seed", "1"});
    EXPECT_NE(readTensors(train(compile("bf16:stochastic", flags), "seed", 4)), readTensors(whole))
        << precision;
  }
}

/// The file has float32 weights, those of the checkpoint, and computes the same: --precision f32 multiplies what is
/// stored.
TEST_P(ParametersBitsTest, AreExportedAndChecked) {
  std::vector<std::string> flags{"--target", "native", "--gradients"};
  std::string artifact = compile("bf16:stochastic", flags), saved = train(artifact, "run", 2);
  mustRun({"export", artifact, "--load", saved, "-o", folder / "e.onnx", "--quiet"});
  std::vector<std::string> again{"train", folder / "e.onnx", "-o", folder / "wide", "--quiet"};
  again.insert(again.end(), flags.begin(), flags.end());
  again.insert(again.end(), entry.flags.begin(), entry.flags.end());
  mustRun(again);
  mustRun({"gradients", artifact, "--data", entry.data(), "--load", saved, "-o", folder / "n", "--quiet"});
  mustRun({"gradients", folder / "wide", "--data", entry.data(), "-o", folder / "w", "--quiet"});
  auto narrow = loadValues(folder / "n"), wide = loadValues(folder / "w");
  ASSERT_EQ(narrow.size(), wide.size());
  for (const auto &[name, values] : wide) {
    const Values &found = valuesOf(narrow, name);
    ASSERT_EQ(found.type, DataType::Float32) << name;
    ASSERT_EQ(found.shape, values.shape) << name;
    double largest = 0;
    for (double value : values.data)
      largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < values.data.size(); ++i) // sums in other orders, where kernels are cut otherwise
      ASSERT_NEAR(found.data[i], values.data[i], 2e-5 * largest + 1e-9) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, ParametersBitsTest, testing::Values("lenet", "dlrm-tiny", "lstm-dynamo"),
                         [](const auto &info) { return caseName(info.param); });

class ParametersFileTest : public ParametersTest {};

/// Checkpoints of float32 weights do not fit, nor the other way round: nothing is rounded in silence.
TEST_P(ParametersFileTest, CheckpointsOfOtherTypesAreRefused) {
  std::string narrow = compile("bf16", {"--target", "native"}), wide = compile("f32", {"--target", "native"});
  std::string ofNarrow = train(narrow, "narrow", 1), ofWide = train(wide, "wide", 1);
  for (auto [artifact, file, has, needs] :
       {std::array{narrow, ofWide, std::string("float32"), std::string("bfloat16")},
        std::array{wide, ofNarrow, std::string("bfloat16"), std::string("float32")}}) {
    Outcome outcome =
        runTool({"run", artifact, "--data", entry.data(), "--steps", "1", "--load", file, "--quiet"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.errors.find("is " + has + " ["), std::string::npos) << outcome.errors;
    EXPECT_NE(outcome.errors.find("but the artifact needs " + needs), std::string::npos) << outcome.errors;
    EXPECT_NE(outcome.errors.find(
                  "compile with the --precision and --parameters that it was saved with, or export it "
                  "and compile the model that this writes"),
              std::string::npos)
        << outcome.errors;
  }
}

/// Half of the parameters' bytes; the rest of what is persistent is as large as before.
TEST_P(ParametersFileTest, ThePlanKnowsTheMemory) {
  std::map<std::string, uint64_t> bytes;
  for (const char *parameters : {"f32", "bf16:stochastic"}) {
    std::vector<std::string> flags{"plan",         entry.model(), "--optimizer", "sgd:lr=0.1",
                                   "--parameters", parameters,    "--report",    folder / "r",
                                   "--quiet",      "--target",    "native"};
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    mustRun(flags);
    bytes[parameters] = nlohmann::json::parse(readFile(folder / "r"))["memory"]["persistent"];
  }
  // 4,810 parameters; every tensor begins at a multiple of 64 bytes.
  EXPECT_NEAR(double(bytes["f32"] - bytes["bf16:stochastic"]), 4810 * 2, 4 * 64);
}

INSTANTIATE_TEST_SUITE_P(Zoo, ParametersFileTest, testing::Values("mlp-digits"),
                         [](const auto &info) { return caseName(info.param); });

/// The emulator of a GPU rounds to the bits of a processor.
class DeviceParametersTest : public ParametersTest {};

TEST_P(DeviceParametersTest, HasTheBitsOfProcessors) {
  for (const char *precision : {"f32", "bf16"}) {
    std::string artifact = compile("bf16:stochastic", {"--target", "x86-64", "--target", "sm_80",
                                                       "--numerics", "portable", "--precision", precision});
    std::string wanted = readTensors(train(artifact, "cpu", 5));
    EXPECT_TRUE(readTensors(train(artifact, "cuda", 5, {"--device", "cuda"})) == wanted) << precision;
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, DeviceParametersTest,
                         testing::Values("mlp-digits", "gpt2-tiny", "gru-forecast"),
                         [](const auto &info) { return caseName(info.param); });

} // namespace
