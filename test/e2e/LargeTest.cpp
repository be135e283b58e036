// Models with thousands of equal parts: the numbers are those of a small model, and four times as many
// initializers take less than eight times as long to compile. Parts of the compiler whose quadratic share is
// small beside the rest stay hidden here; those of legalisation have tests of their own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

#include "compiler/frontend/onnx.pb.h"
#include "engine/data/writers.h"
#include "test/e2e/Models.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

constexpr int64_t kRows = 4, kColumns = 8, kSteps = 4;

/// What begins with h = x * w, of shape [4, 8].
class Model {
public:
  Model() {
    model.set_ir_version(9);
    model.add_opset_import()->set_version(18);
    model.mutable_graph()->set_name("large");
    describe(model.mutable_graph()->add_input(), "x", proto::TensorProto::FLOAT, {kRows, kColumns});
    std::vector<float> w;
    for (int i = 0; i < kColumns * kColumns; ++i)
      w.push_back(0.1f * static_cast<float>(i * 7 % 11 - 5));
    addInitializer("w", {kColumns, kColumns}, w);
    addNode("MatMul", {"x", "w"});
  }

  void addInitializer(const std::string &name, const std::vector<int64_t> &dims,
                      const std::vector<float> &values) {
    auto *tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(proto::TensorProto::FLOAT);
    for (int64_t dim : dims)
      tensor->add_dims(dim);
    tensor->set_raw_data(values.data(), values.size() * sizeof(float));
  }

  /// Adds a node and makes its result the value that `last` names.
  proto::NodeProto *addNode(const std::string &op, const std::vector<std::string> &inputs) {
    auto *node = model.mutable_graph()->add_node();
    node->set_op_type(op);
    for (const std::string &input : inputs)
      node->add_input(input);
    last = "v" + std::to_string(model.graph().node_size());
    node->add_output(last);
    return node;
  }

  /// The file's contents; the last value is the output, of so many columns.
  std::string finish(int64_t columns = kColumns) {
    describe(model.mutable_graph()->add_output(), last, proto::TensorProto::FLOAT, {kRows, columns});
    return model.SerializeAsString();
  }

  std::string last;

private:
  proto::ModelProto model;
};

class LargeTest : public testing::Test {
protected:
  /// The losses of some steps in f64; the labels are the same 8 columns again and again.
  std::vector<double> losses(const std::string &model, std::vector<std::string> flags = {},
                             int64_t columns = kColumns) {
    std::vector<float> x, label;
    for (int64_t i = 0; i < kSteps * kRows * kColumns; ++i)
      x.push_back(static_cast<float>(i * 5 % 13 - 6) / 4);
    for (int64_t row = 0; row < kSteps * kRows; ++row)
      for (int64_t i = 0; i < columns; ++i)
        label.push_back(static_cast<float>((row * kColumns + i % kColumns) * 3 % 7 - 3));
    auto bytes = [](const std::vector<float> &values) {
      std::vector<uint8_t> raw(values.size() * sizeof(float));
      std::memcpy(raw.data(), values.data(), raw.size());
      return raw;
    };
    std::string data = folder / "data.npz";
    EXPECT_TRUE(
        engine::writeNpz(data, {{"x", DataType::Float32, {kSteps * kRows, kColumns}, bytes(x)},
                                {"label", DataType::Float32, {kSteps * kRows, columns}, bytes(label)}})
            .isOk());
    std::vector<std::string> arguments{"train",    folder.write("model.onnx", model),
                                       "-o",       folder / "a",
                                       "--loss",   "mse",
                                       "--target", "native",
                                       "--quiet",  "--precision",
                                       "f64"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    mustRun(arguments);
    mustRun(
        {"run", folder / "a", "--data", data, "--no-shuffle", "--quiet", "--metrics", folder / "m.jsonl"});
    return loadLosses(folder / "m.jsonl");
  }

  void expectSame(const std::vector<double> &large, const std::vector<double> &small) {
    ASSERT_EQ(large.size(), size_t(kSteps));
    ASSERT_EQ(small.size(), size_t(kSteps));
    EXPECT_GT(small.front() - small.back(), 1e-6) << "nothing is learnt";
    for (size_t i = 0; i < small.size(); ++i)
      EXPECT_NEAR(large[i], small[i], 1e-11 * std::fabs(small[i])) << i;
  }

  /// Compiles `model(n)` and `model(4 * n)` up to a phase, which must take about four times as long:
  /// quadratic parts, as far as they are worth speaking of, take 16 times. Times below `kFloor` are the
  /// tool's own.
  void expectLinear(Model (*model)(int), int n, const std::string &phase) {
    constexpr double kFloor = 0.25;
    auto take = [&](int count) {
      std::string path = folder.write("model.onnx", model(count).finish());
      auto begun = std::chrono::steady_clock::now();
      mustRun({"train", path, "--loss", "mse", "--target", "native", "--quiet", "--compile-to", phase});
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    };
    double small = take(n), large = take(4 * n);
    EXPECT_LT(large, 8 * std::max(small, kFloor)) << n << " take " << small << " s";
  }

  TemporaryFolder folder;
  const std::vector<std::string> rate{"--optimizer", "sgd:lr=0.01"};
};

TEST_F(LargeTest, AThousandPartsHaveTheMeanOfOne) {
  Model large, small;
  auto *concat = large.addNode("Concat", std::vector<std::string>(1000, large.last));
  auto *axis = concat->add_attribute();
  axis->set_name("axis");
  axis->set_type(proto::AttributeProto::INT);
  axis->set_i(1);
  expectSame(losses(large.finish(1000 * kColumns), rate, 1000 * kColumns), losses(small.finish(), rate));
}

TEST_F(LargeTest, ProductsWithTheIdentityChangeNothing) {
  Model large, small;
  std::vector<float> identity(kColumns * kColumns, 0);
  for (int i = 0; i < kColumns; ++i)
    identity[i * (kColumns + 1)] = 1;
  large.addInitializer("identity", {kColumns, kColumns}, identity);
  for (int i = 0; i < 1500; ++i)
    large.addNode("MatMul", {large.last, "identity"});
  std::vector<std::string> flags = rate;
  flags.insert(flags.end(), {"--freeze", "identity"});
  expectSame(losses(large.finish(), flags), losses(small.finish(), rate));
}

TEST_F(LargeTest, ManyBiasesLearnAsOneThatLearnsFaster) {
  constexpr int kCount = 2000;
  Model large, small;
  for (int i = 0; i < kCount; ++i) {
    large.addInitializer("bias." + std::to_string(i), {kColumns}, std::vector<float>(kColumns, 0));
    large.addNode("Add", {large.last, "bias." + std::to_string(i)});
  }
  small.addInitializer("bias", {kColumns}, std::vector<float>(kColumns, 0));
  small.addNode("Add", {small.last, "bias"});
  std::vector<std::string> once{"--optimizer", "sgd:lr=1e-5"}, faster = once;
  faster.insert(faster.end(), {"--group", "bias:lr_scale=" + std::to_string(kCount)});
  expectSame(losses(large.finish(), once), losses(small.finish(), faster));
}

/// Biases of layers that nothing names, as an exporter of modules writes them: "onnx::Add_7", read by the
/// node "/l.7/Add".
Model biasesWithoutNames(int count) {
  Model model;
  for (int i = 0; i < count; ++i) {
    std::string number = std::to_string(i);
    model.addInitializer("onnx::Add_" + number, {kColumns}, std::vector<float>(kColumns, 0));
    model.addNode("Add", {model.last, "onnx::Add_" + number})->set_name("/l." + number + "/Add");
  }
  return model;
}

Model biases(int count) {
  Model model;
  for (int i = 0; i < count; ++i) {
    model.addInitializer("bias." + std::to_string(i), {kColumns}, std::vector<float>(kColumns, float(i)));
    model.addNode("Add", {model.last, "bias." + std::to_string(i)});
  }
  return model;
}

TEST_F(LargeTest, InitialisersArePlacedInLinearTime) { expectLinear(biases, 3000, "place"); }

TEST_F(LargeTest, NamesThatAreMadeUpTakeLinearTime) { expectLinear(biasesWithoutNames, 5000, "legalize"); }

TEST_F(LargeTest, TransposesThatCancelAreGone) {
  Model large, small;
  for (int i = 0; i < 4000; ++i) {
    large.addNode("Transpose", {large.last});
    large.addNode("Relu", {large.last});
  }
  small.addNode("Relu", {small.last});
  expectSame(losses(large.finish(), rate), losses(small.finish(), rate));
}

} // namespace
