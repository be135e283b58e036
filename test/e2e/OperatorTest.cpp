// Generated code against ONNX Runtime: every small operator model of test/compiler/legalize/cases, compiled
// and predicted.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The evaluator runs the same models in test/compiler/legalize; here they go through fusion, placement, the kernel
// generators, the artifact and the runtime.
#include <cmath>
#include <gtest/gtest.h>

#include "engine/data/writers.h"
#include "test/e2e/Tool.h"
#include "test/engine/cases.h"

using namespace ortc;
using namespace ortc::test;

namespace {

std::string casesFolder() { return sourcePath("compiler/legalize/cases"); }

class OperatorTest : public testing::TestWithParam<std::string> {
protected:
  /// Writes the arrays `in/NAME` under their own names and gives the flags that bind their shapes.
  std::vector<std::string> prepareInputs(const std::string &base) {
    std::unique_ptr<engine::DataSource> source;
    EXPECT_TRUE(engine::openData(base + ".npz", source).isOk());
    std::vector<engine::OutputArray> inputs;
    std::vector<std::string> flags;
    for (const std::string &name : source->getNames()) {
      Array array;
      if (!name.starts_with("in/"))
        continue;
      EXPECT_TRUE(source->load(name, array).isOk()) << name;
      std::string shape;
      for (int64_t size : array.shape)
        shape += (shape.empty() ? "" : "x") + std::to_string(size);
      if (!shape.empty() && array.bytes > 0) // which a flag cannot say, and the model says itself
        flags.insert(flags.end(), {"--shape", name.substr(3) + "=" + shape});
      if (array.shape.empty())
        array.shape = {1}; // one slice of a scalar
      inputs.push_back({name.substr(3), array.type, array.shape, {array.data, array.data + array.bytes}});
    }
    EXPECT_TRUE(engine::writeNpz(folder / "inputs.npz", inputs).isOk());
    return flags;
  }

  /// Compiles the case for `target`, predicts with the flags `device` and compares every output.
  void agree(const std::string &target, const std::vector<std::string> &device);

  TemporaryFolder folder;
};

/// Type, shape and every bit of integers and booleans. Of floating-point numbers the largest magnitude
/// counts: 1e-5 of it, as in the evaluator's test, 1e-3 where the model computes in float16.
void compare(const std::string &name, const Values &got, const Values &want, double tolerance) {
  ASSERT_EQ(got.type, want.type) << name;
  // A scalar of one step is an array of one.
  ASSERT_EQ(got.shape, want.shape.empty() ? Shape{1} : want.shape) << name;
  ASSERT_EQ(got.data.size(), want.data.size()) << name;
  ASSERT_EQ(got.bits, want.bits) << name;
  double largest = 0.1;
  for (double value : want.data)
    if (std::isfinite(value))
      largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < want.data.size(); ++i) {
    double a = got.data[i], b = want.data[i];
    bool same = a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= tolerance * largest;
    ASSERT_TRUE(same) << name << "[" << i << "] is " << a << ", not " << b;
  }
}

} // namespace

void OperatorTest::agree(const std::string &target, const std::vector<std::string> &device) {
  std::string base = casesFolder() + "/" + GetParam();
  std::vector<std::string> command = {
      "train", base + ".onnx", "-o", folder / "artifact", "--loss", "none", "--target", target, "--quiet"};
  std::vector<std::string> flags = prepareInputs(base);
  command.insert(command.end(), flags.begin(), flags.end());
  mustRun(command);
  std::vector<std::string> predict = {
      "predict", folder / "artifact", "--data", folder / "inputs.npz", "--steps", "1",
      "-o",      folder / "out.npz",  "--quiet"};
  predict.insert(predict.end(), device.begin(), device.end());
  mustRun(predict);
  auto got = loadValues(folder / "out.npz"), reference = loadValues(base + ".npz");
  unsigned compared = 0;
  for (const auto &[key, want] : reference) {
    if (!key.starts_with("out/"))
      continue;
    auto found = got.find(key.substr(4));
    ASSERT_NE(found, got.end()) << key << " is missing";
    compare(key, found->second, want, GetParam().find("float16") == std::string::npos ? 1e-5 : 1e-3);
    ++compared;
  }
  EXPECT_GT(compared, 0u);
}

TEST_P(OperatorTest, GeneratedCodeGivesTheReferencesNumbers) { agree("native", {}); }

/// The driver is that of $ORTC_CUDA_DRIVER, or of the machine's GPU.
class DeviceOperatorTest : public OperatorTest {};

TEST_P(DeviceOperatorTest, GeneratedCodeGivesTheReferencesNumbers) { agree("sm_80", {"--device", "cuda"}); }

INSTANTIATE_TEST_SUITE_P(Cases, OperatorTest, testing::ValuesIn(engine::test::listCases(casesFolder())),
                         engine::test::testName);
INSTANTIATE_TEST_SUITE_P(Cases, DeviceOperatorTest, testing::ValuesIn(engine::test::listCases(casesFolder())),
                         engine::test::testName);
