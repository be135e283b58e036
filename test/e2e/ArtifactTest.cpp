// Properties of artifacts: determinism, bindings, targets, range errors, and the folder they are written to.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <set>

#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;

namespace {

class ArtifactTest : public testing::Test {
protected:
  /// Compiles a zoo entry for AdamW with its flags and `extra`.
  Outcome compile(const std::string &name, const std::string &output, const std::vector<std::string> &extra) {
    ZooEntry entry(name);
    std::vector<std::string> arguments{
        "train", entry.model(), "-o", output, "--optimizer", entry.optimizers["adamw"], "--quiet"};
    arguments.insert(arguments.end(), entry.flags.begin(), entry.flags.end());
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    return mustRun(arguments);
  }

  /// Trains and returns the parameters and state.
  std::map<std::string, Values> trained(const std::string &artifact, const ZooEntry &entry) {
    std::string saved = folder / "saved.safetensors";
    mustRun({"run", artifact, "--data", entry.data(), "--steps", "5", "--no-shuffle", "--quiet", "--save",
             saved});
    return loadValues(saved);
  }

  std::set<std::string> listFolder() {
    std::set<std::string> names;
    for (const auto &item : std::filesystem::directory_iterator(folder / ""))
      names.insert(item.path().filename());
    return names;
  }

  TemporaryFolder folder;
};

/// The largest distance of `got` from `wanted`, relative to the largest magnitude of each tensor; 0 is bit
/// for bit.
double worstDistance(const std::map<std::string, Values> &wanted, std::map<std::string, Values> &got) {
  EXPECT_EQ(wanted.size(), got.size());
  double worst = 0;
  for (const auto &[name, values] : wanted) {
    double largest = 1e-6, off = 0;
    EXPECT_EQ(values.shape, got[name].shape) << name;
    if (values.shape != got[name].shape)
      continue;
    for (size_t i = 0; i < values.data.size(); ++i) {
      largest = std::max(largest, std::fabs(values.data[i]));
      off = std::max(off, std::fabs(values.data[i] - got[name].data[i]));
    }
    worst = std::max(worst, off / largest);
  }
  return worst;
}

bool runs(uint64_t features) { return (ortc_host_features() & features) == features; }
constexpr uint64_t kV3 = ORTC_X86_AVX2 | ORTC_X86_FMA, kV4 = kV3 | ORTC_X86_AVX512F;

} // namespace

TEST_F(ArtifactTest, CompilingTwiceGivesTheSameBytes) {
  compile("lenet", folder / "one", {"--gradients"});
  compile("lenet", folder / "two", {"--gradients"});
  std::string one = readFile(folder / "one/model.ortc"), two = readFile(folder / "two/model.ortc");
  EXPECT_GT(one.size(), 50000u); // the weights alone
  EXPECT_TRUE(one == two);
  EXPECT_TRUE(readFile(folder / "one/manifest.json") == readFile(folder / "two/manifest.json"));
}

TEST_F(ArtifactTest, TrainsAtBatch32AndPredictsAtBatch1) {
  ZooEntry entry("mlp-digits");
  std::string artifact = folder / "artifact", digits = sourcePath("data/digits/");
  mustRun({"train", entry.model(), "-o", artifact, "--optimizer", "adamw:lr=3e-3", "--target", "native",
           "--quiet", "--binding", "train", "--shape", "batch=32", "--binding", "single", "--shape",
           "batch=1"});
  mustRun(
      {"run", artifact, "--data", digits + "train.npz", "--epochs", "4", "--save", folder / "ck", "--quiet"});
  Outcome outcome = mustRun({"predict", artifact, "--binding", "single", "--data", digits + "test.npz",
                             "--load", folder / "ck", "-o", folder / "single.npz"});
  EXPECT_NE(outcome.text.find("output [360, 10]"), std::string::npos) << outcome.text;
  mustRun({"predict", artifact, "--binding", "train", "--data", digits + "test.npz", "--load", folder / "ck",
           "-o", folder / "train.npz", "--quiet"});
  auto single = loadValues(folder / "single.npz"), batch = loadValues(folder / "train.npz");
  EXPECT_LE(worstDistance(batch, single), 1e-6);
  auto labels = loadValues(digits + "test.npz")["label"].data;
  size_t right = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    auto row = single["output"].data.begin() + 10 * i;
    right += std::max_element(row, row + 10) - row == labels[i];
  }
  EXPECT_GT(right, 306u) << "85 % of 360 after four epochs";
}

TEST_F(ArtifactTest, OneSessionServesBothBindings) {
  ZooEntry entry("mlp-digits");
  mustRun({"train", entry.model(), "-o", folder / "artifact", "--target", "native", "--quiet", "--binding",
           "train", "--shape", "batch=32", "--binding", "single", "--shape", "batch=1"});
  Session session(folder / "artifact");
  std::vector<float> pixels(32 * 64), one(64), outputs(320), output(10);
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = float(i * 7 % 17) / 16;
  std::vector<int64_t> labels(32, 4);
  uint32_t train = ortc_binding_find(session.getProgram(), "train"),
           single = ortc_binding_find(session.getProgram(), "single");
  ASSERT_NE(single, ORTC_NONE);
  for (int step = 0; step < 3; ++step) {
    ASSERT_EQ(ortc_session_use_binding(session.get(), train), ORTC_OK);
    ASSERT_EQ(ortc_write(session.get(), "pixels", pixels.data(), pixels.size() * 4), ORTC_OK)
        << session.message();
    ASSERT_EQ(ortc_write(session.get(), "label", labels.data(), labels.size() * 8), ORTC_OK)
        << session.message();
    ASSERT_EQ(ortc_train_step(session.get(), nullptr), ORTC_OK) << session.message();
    ASSERT_EQ(ortc_predict_step(session.get()), ORTC_OK) << session.message();
    ASSERT_EQ(ortc_read(session.get(), "output", outputs.data(), outputs.size() * 4), ORTC_OK)
        << session.message();
    ASSERT_EQ(ortc_session_use_binding(session.get(), single), ORTC_OK);
    ASSERT_EQ(ortc_write(session.get(), "pixels", pixels.data() + 5 * 64, 64 * 4), ORTC_OK)
        << session.message();
    ASSERT_EQ(ortc_predict_step(session.get()), ORTC_OK) << session.message();
    ASSERT_EQ(ortc_read(session.get(), "output", output.data(), output.size() * 4), ORTC_OK)
        << session.message();
    for (int i = 0; i < 10; ++i)
      EXPECT_NEAR(output[i], outputs[50 + i], 1e-5f) << "step " << step; // dots of 64 terms of magnitude 1
  }
}

TEST_F(ArtifactTest, ALabelOutOfRangeStopsTheStepAndChangesNothing) {
  ZooEntry entry("mlp-digits");
  compile("mlp-digits", folder / "artifact", {"--gradients", "--target", "native"});
  std::unique_ptr<host::DataSource> data;
  ASSERT_TRUE(host::openData(entry.data(), data).isOk());
  Session session(folder / "artifact");
  session.writeSlice(*data, 0);
  ASSERT_EQ(ortc_train_step(session.get(), nullptr), ORTC_OK) << session.message();
  auto before = session.readPersistent();
  for (int64_t wrong : {int64_t(10), int64_t(-1), INT64_MAX, INT64_MIN, int64_t(1) << 32}) {
    host::Array array;
    ASSERT_TRUE(data->load("label", array).isOk());
    std::vector<int64_t> labels(64);
    std::memcpy(labels.data(), array.data, 64 * 8);
    labels[17] = wrong;
    ASSERT_EQ(ortc_write(session.get(), "label", labels.data(), 64 * 8), ORTC_OK);
    double loss = 0;
    EXPECT_EQ(ortc_train_step(session.get(), &loss), ORTC_E_RANGE) << wrong;
    EXPECT_EQ(session.message(),
              "index " + std::to_string(wrong) + " in 'label' is out of range: it must be below 10");
    EXPECT_EQ(ortc_eval_step(session.get(), &loss), ORTC_E_RANGE) << wrong;
    EXPECT_EQ(ortc_gradients_step(session.get(), &loss), ORTC_E_RANGE) << wrong;
    EXPECT_EQ(ortc_update_step(session.get()), ORTC_E_STATE) << "no gradients were computed";
    EXPECT_TRUE(before == session.readPersistent()) << wrong;
  }
  session.writeSlice(*data, 1);
  EXPECT_EQ(ortc_train_step(session.get(), nullptr), ORTC_OK) << session.message();
  EXPECT_FALSE(before == session.readPersistent());
}

TEST_F(ArtifactTest, AnIndexOutOfRangeOfAnEmbeddingChangesNothing) {
  ZooEntry entry("gpt2-tiny");
  compile("gpt2-tiny", folder / "artifact", {"--target", "native"});
  std::unique_ptr<host::DataSource> data;
  ASSERT_TRUE(host::openData(entry.data(), data).isOk());
  Session session(folder / "artifact");
  session.writeSlice(*data, 0);
  auto before = session.readPersistent();
  std::string input;
  for (const std::string &name : data->getNames())
    if (name != "label")
      input = name;
  std::vector<int64_t> tokens(4 * 16, 1);
  tokens[63] = 1 << 20;
  ASSERT_EQ(ortc_write(session.get(), input.c_str(), tokens.data(), tokens.size() * 8), ORTC_OK)
      << session.message();
  EXPECT_EQ(ortc_train_step(session.get(), nullptr), ORTC_E_RANGE);
  EXPECT_EQ(session.message().substr(0, 18), "index 1048576 in '");
  EXPECT_NE(session.message().find("' is out of range: it must be below 96"), std::string::npos)
      << session.message();
  EXPECT_TRUE(before == session.readPersistent());
}

// lenet: its dots, convolutions and pools take different code on each level.
TEST_F(ArtifactTest, LevelsOfX86Agree) {
  if (!runs(kV3))
    GTEST_SKIP() << "this machine has no AVX2";
  ZooEntry entry("lenet");
  compile("lenet", folder / "v3", {"--target", "x86-64-v3"});
  compile("lenet", folder / "baseline", {"--target", "x86-64"});
  auto v3 = trained(folder / "v3", entry), baseline = trained(folder / "baseline", entry);
  EXPECT_LE(worstDistance(v3, baseline), 2e-4) << "mul and add instead of fma, after five AdamW steps";
  if (!runs(kV4))
    GTEST_SKIP() << "this machine has no AVX-512; v3 and the baseline agree";
  compile("lenet", folder / "v4", {"--target", "x86-64-v4"});
  auto v4 = trained(folder / "v4", entry);
  EXPECT_EQ(worstDistance(v3, v4), 0);
}

TEST_F(ArtifactTest, PortableNumericsAreTheSameOnEveryLevel) {
  ZooEntry entry("mlp-digits");
  compile("mlp-digits", folder / "baseline", {"--target", "x86-64", "--numerics", "portable"});
  auto baseline = trained(folder / "baseline", entry);
  for (auto [level, features] : {std::pair<const char *, uint64_t>{"x86-64-v3", kV3}, {"x86-64-v4", kV4}}) {
    if (!runs(features))
      GTEST_SKIP() << "this machine does not run " << level;
    compile("mlp-digits", folder / level, {"--target", level, "--numerics", "portable"});
    auto other = trained(folder / level, entry);
    EXPECT_EQ(worstDistance(baseline, other), 0) << level;
  }
}

TEST_F(ArtifactTest, AFolderIsReplacedWholeOrNotAtAll) {
  compile("mlp-digits", folder / "artifact", {"--target", "native"});
  EXPECT_EQ(listFolder(), std::set<std::string>{"artifact"});
  std::string before = readFile(folder / "artifact/model.ortc");
  folder.write("broken.onnx", "this is no model");
  Outcome outcome = runTool({"train", folder / "broken.onnx", "-o", folder / "artifact", "--quiet"});
  EXPECT_EQ(outcome.status, 2) << outcome.errors;
  EXPECT_TRUE(before == readFile(folder / "artifact/model.ortc"));
  EXPECT_EQ(listFolder(), (std::set<std::string>{"artifact", "broken.onnx"}));

  folder.write("artifact/leftover.txt", "from before");
  compile("mlp-digits", folder / "artifact", {"--target", "native", "--gradients"});
  EXPECT_FALSE(before == readFile(folder / "artifact/model.ortc"));
  EXPECT_EQ(listFolder(), (std::set<std::string>{"artifact", "broken.onnx"}));
  EXPECT_FALSE(std::filesystem::exists(folder / "artifact/leftover.txt"));
}

TEST_F(ArtifactTest, AFolderThatCannotBeWrittenIsAnError) {
  ZooEntry entry("mlp-digits");
  folder.write("file", "not a folder");
  Outcome outcome = runTool({"train", entry.model(), "-o", folder / "file/artifact", "--shape", "batch=64",
                             "--target", "native", "--quiet"});
  EXPECT_NE(outcome.status, 0);
  EXPECT_EQ(outcome.errors.substr(0, 13), "ortc: error: ") << outcome.errors;
  EXPECT_NE(outcome.errors.find("file"), std::string::npos) << outcome.errors;
  EXPECT_EQ(listFolder(), std::set<std::string>{"file"});
}
