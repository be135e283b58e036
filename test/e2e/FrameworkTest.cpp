// What a framework needs of an artifact: running statistics as PyTorch has them, gradients of inputs, weights from
// elsewhere, and clear refusals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

#include "engine/data/writers.h"
#include "test/e2e/Models.h"
#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;
using proto::AttributeProto;
using proto::TensorProto;

namespace {

constexpr int64_t kBatch = 3, kChannels = 2, kPoints = 5;

class FrameworkTest : public testing::Test {
protected:
  /// y = tanh(norm(x)): batch normalisation in training mode, with running statistics.
  FrameworkTest() {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(15);
    proto::GraphProto *graph = model.mutable_graph();
    graph->set_name("g");
    describe(graph->add_input(), "x", TensorProto::FLOAT, {kBatch, kChannels, kPoints});
    describe(graph->add_output(), "y", TensorProto::FLOAT, {kBatch, kChannels, kPoints});
    const std::map<std::string, std::vector<float>> vectors = {
        {"scale", {1.5f, -0.5f}}, {"shift", {0.25f, 0.125f}}, {"mean", {0, 0}}, {"variance", {1, 1}}};
    for (const auto &[name, values] : vectors) {
      TensorProto *tensor = graph->add_initializer();
      tensor->set_name(name);
      tensor->set_data_type(TensorProto::FLOAT);
      tensor->add_dims(kChannels);
      for (float value : values)
        tensor->add_float_data(value);
    }
    proto::NodeProto *norm = graph->add_node(), *tanh = graph->add_node();
    norm->set_op_type("BatchNormalization");
    for (const char *input : {"x", "scale", "shift", "mean", "variance"})
      norm->add_input(input);
    for (const char *output : {"n", "new_mean", "new_variance"})
      norm->add_output(output);
    AttributeProto *mode = norm->add_attribute();
    mode->set_name("training_mode");
    mode->set_type(AttributeProto::INT);
    mode->set_i(1);
    tanh->set_op_type("Tanh");
    tanh->add_input("n");
    tanh->add_output("y");
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(std::sin(1.7 * double(i)) + 0.1 * double(i % 3));
    cotangent = x;
    for (float &value : cotangent)
      value = 0.5f - value * value;
  }

  std::vector<std::string> command(const std::vector<std::string> &flags) {
    std::vector<std::string> arguments{
        "train",  folder.write("m.onnx", model.SerializeAsString()), "-o", folder / "a", "--target", "native",
        "--quiet"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return arguments;
  }
  void compile(const std::vector<std::string> &flags) { mustRun(command(flags)); }

  static void write(Session &session, const char *name, const std::vector<float> &values) {
    EXPECT_EQ(ortc_write(session.get(), name, values.data(), values.size() * sizeof(float)), ORTC_OK)
        << name << ": " << session.message();
  }
  static std::vector<float> read(Session &session, const char *name, size_t count) {
    std::vector<float> values(count);
    EXPECT_EQ(ortc_read(session.get(), name, values.data(), count * sizeof(float)), ORTC_OK)
        << name << ": " << session.message();
    return values;
  }

  /// <cotangent, y> in double.
  double objective(const std::vector<double> &input) const {
    const double scale[] = {1.5, -0.5}, shift[] = {0.25, 0.125};
    double sum = 0;
    for (int64_t c = 0; c < kChannels; ++c) {
      auto [mean, variance] = moments(input, c);
      forChannel(c, [&](size_t i) {
        sum += cotangent[i] * std::tanh((input[i] - mean) / std::sqrt(variance + 1e-5) * scale[c] + shift[c]);
      });
    }
    return sum;
  }
  template <typename Visit> static void forChannel(int64_t c, Visit visit) {
    for (int64_t n = 0; n < kBatch; ++n)
      for (int64_t p = 0; p < kPoints; ++p)
        visit(size_t((n * kChannels + c) * kPoints + p));
  }
  static std::pair<double, double> moments(const std::vector<double> &input, int64_t c) {
    double mean = 0, variance = 0;
    forChannel(c, [&](size_t i) { mean += input[i] / (kBatch * kPoints); });
    forChannel(c, [&](size_t i) { variance += (input[i] - mean) * (input[i] - mean) / (kBatch * kPoints); });
    return {mean, variance};
  }

  proto::ModelProto model;
  TemporaryFolder folder;
  std::vector<float> x = std::vector<float>(kBatch * kChannels * kPoints), cotangent;
};

TEST_F(FrameworkTest, GradientsOfInputsAreThoseOfDifferences) {
  compile({"--cotangents", "y", "--input-gradients", "x"});
  Session session(folder / "a");
  write(session, "x", x);
  write(session, "y.cotangent", cotangent);
  EXPECT_EQ(ortc_step(session.get(), ORTC_ENTRY_BACKWARD, nullptr), ORTC_E_STATE);
  EXPECT_EQ(ortc_step(session.get(), ORTC_ENTRY_FORWARD, nullptr), ORTC_OK) << session.message();
  EXPECT_EQ(ortc_step(session.get(), ORTC_ENTRY_BACKWARD, nullptr), ORTC_OK) << session.message();
  std::vector<float> gradient = read(session, "x.gradient", x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double step = 1e-5;
    std::vector<double> up(x.begin(), x.end()), down = up;
    up[i] += step;
    down[i] -= step;
    EXPECT_NEAR(gradient[i], (objective(up) - objective(down)) / (2 * step), 2e-6) << i;
  }
}

/// The momentum of the file is 0.9: running statistics keep so much.
TEST_F(FrameworkTest, RunningVariancesAreOfTheBatchOrOfSamples) {
  for (bool isUnbiased : {false, true}) {
    compile({"--cotangents", "y", "--batch-norm", isUnbiased ? "as-exported:unbiased=1" : "as-exported"});
    Session session(folder / "a");
    write(session, "x", x);
    EXPECT_EQ(ortc_step(session.get(), ORTC_ENTRY_FORWARD, nullptr), ORTC_OK) << session.message();
    std::vector<float> mean = read(session, "mean", kChannels),
                       variance = read(session, "variance", kChannels);
    const double count = kBatch * kPoints;
    for (int64_t c = 0; c < kChannels; ++c) {
      auto [m, v] = moments({x.begin(), x.end()}, c);
      EXPECT_NEAR(mean[c], 0.1 * m, 1e-7);
      EXPECT_NEAR(variance[c], 0.9 + 0.1 * v * (isUnbiased ? count / (count - 1) : 1), 1e-7);
    }
  }
}

TEST_F(FrameworkTest, WeightsComeFromElsewhere) {
  compile({"--loss", "mse", "--optimizer", "adamw"});
  Session whole(folder / "a");
  auto persistent = whole.readPersistent();
  EXPECT_EQ(ortc_checkpoint_save(whole.get(), (folder / "c.safetensors").c_str(), nullptr, 0), ORTC_OK);
  std::string before = readFile(folder / "a/model.ortc");
  compile({"--loss", "mse", "--optimizer", "adamw", "--no-weights"});
  std::string after = readFile(folder / "a/model.ortc");
  EXPECT_LT(after.size(), before.size());
  const float scale[] = {1.5f, -0.5f};
  const std::string weights(reinterpret_cast<const char *>(scale), sizeof scale);
  EXPECT_NE(before.find(weights), std::string::npos);
  EXPECT_EQ(after.find(weights), std::string::npos);
  std::vector<uint8_t> bytes(x.size() * sizeof(float));
  std::memcpy(bytes.data(), x.data(), bytes.size());
  const Shape shape{kBatch, kChannels, kPoints};
  ASSERT_TRUE(engine::writeNpz(folder / "x.npz", {{"x", DataType::Float32, shape, bytes}}).isOk());
  std::vector<std::string> predict{"predict",        folder / "a", "--data",
                                   folder / "x.npz", "-o",         folder / "p.npz"};
  Outcome outcome = runTool(predict);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find("was compiled with --no-weights; give --load FILE"), std::string::npos)
      << outcome.errors;
  predict.insert(predict.end(), {"--load", folder / "c.safetensors"});
  mustRun(predict);
  Session session(folder / "a");
  EXPECT_EQ(read(session, "scale", kChannels), std::vector<float>({0, 0}));
  EXPECT_EQ(ortc_checkpoint_load(session.get(), (folder / "c.safetensors").c_str(), nullptr), ORTC_OK)
      << session.message();
  EXPECT_EQ(session.readPersistent(), persistent);
}

/// Gradients of filters have the layout of their parameters, which is dense where these are the host's.
TEST_F(FrameworkTest, GradientsAreReadBesideBoundParameters) {
  const ZooEntry entry("lenet");
  std::unique_ptr<engine::DataSource> data;
  ASSERT_TRUE(engine::openData(entry.data(), data).isOk());
  auto build = [&](const std::string &name, const std::vector<std::string> &more) {
    std::vector<std::string> arguments{"train",    entry.model(), "-o",      folder / name,
                                       "--target", "native",      "--quiet", "--gradients"};
    for (const auto &list : {entry.flags, more})
      arguments.insert(arguments.end(), list.begin(), list.end());
    mustRun(arguments);
  };
  build("own", {});
  Session own(folder / "own");
  own.writeSlice(*data, 0);
  for (const char *bind : {"parameters", "parameters,strided", "parameters,gradients"}) {
    SCOPED_TRACE(bind);
    build("bound", {"--bind", bind});
    const bool isDense = bind != std::string("parameters,strided");
    Session bound(folder / "bound");
    std::map<std::string, std::vector<float>> memory, gradients;
    auto info = ORTC_INIT(ortc_tensor_info);
    for (uint32_t i = 0; ortc_tensor_get(bound.getProgram(), i, &info) == ORTC_OK; ++i) {
      std::vector<float> &values = (info.role == ORTC_ROLE_OUTPUT ? gradients : memory)[info.name];
      const bool isGradient = info.role == ORTC_ROLE_OUTPUT && info.owner != ORTC_NONE;
      if (!(info.flags & ORTC_TENSOR_BOUND) && !isGradient)
        continue;
      values = isGradient || !isDense ? std::vector<float>(info.bytes / sizeof(float))
                                      : read(own, info.name, info.bytes / sizeof(float));
      ASSERT_EQ(ortc_bind(bound.get(), info.name, values.data(), info.bytes), ORTC_OK) << bound.message();
    }
    bound.writeSlice(*data, 0);
    ASSERT_EQ(ortc_gradients_step(own.get(), nullptr), ORTC_OK) << own.message();
    ASSERT_EQ(ortc_gradients_step(bound.get(), nullptr), ORTC_OK) << bound.message();
    size_t compared = 0;
    for (const auto &[name, values] : memory) {
      if (values.empty() || !isDense)
        continue;
      std::vector<float> wanted(values.size()), got = wanted;
      const size_t bytes = wanted.size() * sizeof(float);
      ASSERT_EQ(ortc_read_gradient(own.get(), name.c_str(), wanted.data(), bytes), ORTC_OK) << own.message();
      if (auto found = gradients.find(name + ".gradient"); found != gradients.end())
        got = found->second;
      else
        ASSERT_EQ(ortc_read_gradient(bound.get(), name.c_str(), got.data(), bytes), ORTC_OK)
            << bound.message();
      for (size_t k = 0; k < wanted.size(); ++k)
        ASSERT_NEAR(got[k], wanted[k], 1e-5) << name << " " << k; // sums of float32 in another order
      ++compared;
    }
    EXPECT_EQ(compared, isDense ? 10u : 0u);
    ASSERT_EQ(ortc_update_step(bound.get()), ORTC_OK) << bound.message();
  }
}

TEST_F(FrameworkTest, RefusalsSayWhatToDo) {
  const std::pair<std::vector<std::string>, const char *> cases[] = {
      {{"--cotangents", "z"}, "no output 'z'"},
      {{"--cotangents", "y", "--loss", "mse"},
       "--cotangents takes gradients of outputs from the host, and --loss mse"},
      {{"--loss", "mse", "--cotangents", "y"}, "leave one of both out"},
      {{"--cotangents", "y", "--cotangents", "y"}, "'y' is given twice"},
      {{"--cotangents", "y", "--gradients"}, "--gradients belongs to a step with a loss"},
      {{"--cotangents", "y", "--clip-norm", "1"}, "--clip-norm needs an optimizer"},
      {{"--cotangents", "y", "--input-gradients", "z"},
       "--input-gradients 'z' is no input of floating point"},
      {{"--input-gradients", "x"}, "--input-gradients x needs --cotangents"},
      {{"--bind", "gradients"}, "--bind gradients needs an entry that gives some"},
      {{"--bind", "weights"}, "must be parameters, gradients, or both"},
      {{"--bind", "parameters,parameters"}, "must be parameters, gradients, or both"},
      {{"--batch-norm", "frozen:unbiased=1"}, "frozen statistics do not move"},
      {{"--batch-norm", "train:biased=1"}, "unbiased"},
      {{"--loss", "none", "--no-weights"}, "--no-weights leaves out what is trained"},
      {{"--cotangents", "y", "--bind", "gradients", "--target", "sm_80"}, "--bind is for processors"},
  };
  for (const auto &[flags, text] : cases) {
    std::vector<std::string> arguments = command(flags);
    if (flags.back() == "sm_80")
      arguments.erase(std::find(arguments.begin(), arguments.end(), "native") - 1,
                      std::find(arguments.begin(), arguments.end(), "native") + 1);
    Outcome outcome = runTool(arguments);
    EXPECT_EQ(outcome.status, 2) << flags.front();
    EXPECT_NE(outcome.errors.find(text), std::string::npos) << outcome.errors;
  }
}

} // namespace
