// Files of test/exporters, as their exporters wrote them: what is trained, the first gradients, and what is said about them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <gtest/gtest.h>
#include <set>

#include "test/e2e/Tool.h"

using namespace ortc::test;

namespace {

struct Habit {
  std::string name;
  std::vector<std::string> flags;
  std::vector<std::string> said; ///< parts of notes and warnings
  bool isQuiet = false;          ///< nothing is said
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
     {"--loss", "cross_entropy:axis=-1", "--freeze", "cos|scale|onnx::Add.*", "--tie",
      "onnx::MatMul_58=embed.weight"},
     {},
     true},
    // Keras' GRU is a Loop whose condition is computed from lifted constants.
    {"keras-gru", {"--shape", "ids=8x7"}, {}, true},
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

INSTANTIATE_TEST_SUITE_P(Exporters, ExportersTest, testing::ValuesIn(kHabits), [](const auto &info) {
  std::string name = info.param.name;
  for (char &letter : name)
    letter = letter == '-' ? '_' : letter;
  return name;
});

} // namespace
