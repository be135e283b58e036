// Soft labels: one-hot ones are class indices, with smoothing too; a graph's own label input chooses by its type.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

#include "compiler/frontend/onnx.pb.h"
#include "engine/data/writers.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

template <typename T> std::vector<uint8_t> bytesOfAll(const std::vector<T> &values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class LabelTest : public testing::Test {
protected:
  /// mlp-digits' data with one-hot labels.
  std::string writeOneHot() {
    auto arrays = loadValues(entry.data());
    const Values &label = arrays["label"], &pixels = arrays["pixels"];
    std::vector<float> x(pixels.data.begin(), pixels.data.end()), y(label.data.size() * 10);
    for (size_t i = 0; i < label.data.size(); ++i)
      y[i * 10 + size_t(label.data[i])] = 1;
    std::string path = folder / "onehot.npz";
    EXPECT_TRUE(engine::writeNpz(
                    path, {{"pixels", DataType::Float32, pixels.shape, bytesOfAll(x)},
                           {"label", DataType::Float32, {int64_t(label.data.size()), 10}, bytesOfAll(y)}})
                    .isOk());
    return path;
  }
  std::vector<double> losses(const std::string &model, const std::string &loss, const std::string &data) {
    mustRun({"train", model, "--shape", "batch=64", "--loss", loss, "--precision", "f64", "--target",
             "native", "--quiet", "-o", folder / "a"});
    mustRun(
        {"run", folder / "a", "--data", data, "--no-shuffle", "--quiet", "--metrics", folder / "m.jsonl"});
    return loadLosses(folder / "m.jsonl");
  }
  void expectSame(const std::vector<double> &a, const std::vector<double> &b) {
    ASSERT_EQ(a.size(), b.size());
    ASSERT_GT(a.size(), 3u);
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], 1e-13 * std::fabs(a[i])) << i;
  }

  TemporaryFolder folder;
  ZooEntry entry{"mlp-digits"};
};

TEST_F(LabelTest, OneHotLabelsAreClassIndices) {
  std::string soft = writeOneHot();
  for (const char *smoothing : {"0", "0.2"}) {
    std::string spec = std::string("cross_entropy:label_smoothing=") + smoothing;
    expectSame(losses(entry.model(), spec, entry.data()),
               losses(entry.model(), spec + ",probabilities=1", soft));
  }
  Outcome accuracy = mustRun({"eval", folder / "a", "--data", soft});
  EXPECT_NE(accuracy.text.find("accuracy"), std::string::npos) << accuracy.text;
}

TEST_F(LabelTest, TheGraphsOwnLabelChoosesByItsType) {
  proto::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(readFile(entry.model())));
  auto *input = model.mutable_graph()->add_input();
  input->CopyFrom(model.graph().output(0));
  input->set_name("label");
  std::string path = folder.write("own.onnx", model.SerializeAsString());
  std::string soft = writeOneHot();
  expectSame(losses(entry.model(), "cross_entropy", entry.data()), losses(path, "cross_entropy", soft));
}

TEST_F(LabelTest, ProbabilitiesHaveNoIndexToIgnore) {
  Outcome outcome = runTool({"train", entry.model(), "--shape", "batch=64", "-o", folder / "a", "--loss",
                             "cross_entropy:probabilities=1,ignore_index=0"});
  EXPECT_EQ(outcome.status, 2);
}

} // namespace
