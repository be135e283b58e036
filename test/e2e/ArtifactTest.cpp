// Properties of artifacts: determinism, bindings, targets, range errors, and the folder they are written to.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sched.h>
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
/// for bit, infinite where a number is none.
double worstDistance(const std::map<std::string, Values> &wanted, const std::map<std::string, Values> &got) {
  EXPECT_FALSE(wanted.empty());
  EXPECT_EQ(wanted.size(), got.size());
  double worst = 0;
  for (const auto &[name, values] : wanted) {
    double largest = 1e-6, off = 0;
    const Values &other = valuesOf(got, name);
    EXPECT_EQ(values.type, other.type) << name;
    EXPECT_EQ(values.shape, other.shape) << name;
    if (values.shape != other.shape)
      return INFINITY;
    for (size_t i = 0; i < values.data.size(); ++i) {
      largest = std::max(largest, std::fabs(values.data[i]));
      double difference = std::fabs(values.data[i] - other.data[i]);
      off = std::isnan(difference) ? INFINITY : std::max(off, difference);
    }
    worst = std::max(worst, off / largest);
  }
  return worst;
}

bool runs(uint64_t features) { return (ortc_host_features() & features) == features; }
constexpr uint64_t kV3 = ORTC_X86_64_V3, kV4 = ORTC_X86_64_V4;

} // namespace

TEST_F(ArtifactTest, CompilingTwiceGivesTheSameBytes) {
  for (const char *name : {"one", "two"})
    compile("lenet", folder / name, {"--gradients", "--target", "x86-64-v3"});
  std::string one = readFile(folder / "one/model.ortc"), two = readFile(folder / "two/model.ortc");
  EXPECT_GT(one.size(), 50000u); // the weights alone
  EXPECT_TRUE(one == two);
  EXPECT_TRUE(readFile(folder / "one/manifest.json") == readFile(folder / "two/manifest.json"));
}

namespace {

/// Whether `real` is what the documentation shows: the same keys in the same order, the same texts, and numbers except
/// where they are sizes or counts. Lists may be shortened: their items with a name are looked up, others are the first.
void expectDocumented(const nlohmann::ordered_json &shown, const nlohmann::ordered_json &real,
                      const std::string &where) {
  ASSERT_STREQ(shown.type_name(), real.type_name()) << where;
  if (shown.is_object()) {
    std::vector<std::string> wanted, got;
    for (const auto &[key, value] : shown.items())
      wanted.push_back(key);
    for (const auto &[key, value] : real.items())
      got.push_back(key);
    ASSERT_EQ(wanted, got) << where;
    for (const auto &[key, value] : shown.items())
      expectDocumented(value, real[key], where + "/" + key);
  } else if (shown.is_array()) {
    ASSERT_LE(shown.size(), real.size()) << where;
    for (size_t i = 0; i < shown.size(); ++i) {
      size_t k = i;
      if (shown[i].is_object() && shown[i].contains("name"))
        while (k < real.size() && real[k]["name"] != shown[i]["name"])
          ++k;
      ASSERT_LT(k, real.size()) << where << ": " << shown[i];
      expectDocumented(shown[i], real[k], where + "/" + std::to_string(i));
    }
  } else {
    static const std::set<std::string> kMoves = {
        "steps",      "flops",   "transient", "bound",  "persistent",  "source_order",
        "code_bytes", "kernels", "offset",    "bytes",  "order_bound", "step",
        "alive",      "first",   "last",      "caller", "worker"};
    if (!kMoves.count(where.substr(where.rfind('/') + 1)))
      EXPECT_EQ(shown, real) << where;
  }
}

} // namespace

// Kernels are compiled on as many threads as the process may use; how many must not show.
TEST_F(ArtifactTest, OneAndManyCompileThreadsGiveTheSameBytes) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2)
    GTEST_SKIP() << "there is only one processor";
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &all))
      CPU_SET(cpu, &one);
  compile("lenet", folder / "many", {"--target", "x86-64-v3"});
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0); // the tool takes it over
  compile("lenet", folder / "one", {"--target", "x86-64-v3"});
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_TRUE(readFile(folder / "one/model.ortc") == readFile(folder / "many/model.ortc"));
}

TEST_F(ArtifactTest, TheManifestIsAsDocumented) {
  std::string guide = readFile(sourcePath("../docs/manifest.md"));
  size_t begin = guide.find("```json\n") + 8, end = guide.find("```", begin);
  auto shown = nlohmann::ordered_json::parse(guide.substr(begin, end - begin));
  mustRun({"train", ZooEntry("mlp-digits").model(), "-o", folder / "digits", "--shape", "batch=64",
           "--optimizer", "adamw:lr=0.001", "--group", ".*bias:weight_decay=0", "--clip-norm", "1",
           "--target", "x86-64-v3", "--quiet"});
  auto real = nlohmann::ordered_json::parse(readFile(folder / "digits/manifest.json"));
  expectDocumented(shown, real, "");
  // 64 samples through 64x64 and 10x64 with biases; relu compares, which is no floating-point operation of this count.
  EXPECT_EQ(real["entries"][2]["name"], "predict/default");
  EXPECT_EQ(real["entries"][2]["flops"], 64 * (64 * (2 * 64 + 1) + 10 * (2 * 64 + 1)));
  EXPECT_EQ("ortc " + runTool({"--version"}).text.substr(5), real["generator"].get<std::string>() + "\n");
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
  ASSERT_EQ(labels.size(), 360u);
  ASSERT_EQ(valuesOf(single, "output").shape, (Shape{360, 10}));
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
  std::unique_ptr<engine::DataSource> data;
  ASSERT_TRUE(engine::openData(entry.data(), data).isOk());
  Session session(folder / "artifact");
  session.writeSlice(*data, 0);
  ASSERT_EQ(ortc_train_step(session.get(), nullptr), ORTC_OK) << session.message();
  auto before = session.readPersistent();
  for (int64_t wrong : {int64_t(10), int64_t(-1), INT64_MAX, INT64_MIN, int64_t(1) << 32}) {
    Array array;
    ASSERT_TRUE(data->load("label", array).isOk());
    std::vector<int64_t> labels(64);
    std::memcpy(labels.data(), array.data, 64 * 8);
    labels[17] = wrong;
    ASSERT_EQ(ortc_write(session.get(), "label", labels.data(), 64 * 8), ORTC_OK);
    double loss = 0;
    EXPECT_EQ(ortc_train_step(session.get(), &loss), ORTC_E_RANGE) << wrong;
    EXPECT_EQ(session.message(), "index " + std::to_string(wrong) + " in 'label' is out of range [0, 10)");
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
  std::unique_ptr<engine::DataSource> data;
  ASSERT_TRUE(engine::openData(entry.data(), data).isOk());
  Session session(folder / "artifact");
  session.writeSlice(*data, 0);
  auto before = session.readPersistent();
  std::string input;
  for (const std::string &name : data->getNames())
    if (name != "label")
      input = name;
  for (int64_t wrong : {1 << 20, 96, -97, -2000}) {
    std::vector<int64_t> tokens(4 * 16, 1);
    tokens[63] = wrong;
    ASSERT_EQ(ortc_write(session.get(), input.c_str(), tokens.data(), tokens.size() * 8), ORTC_OK)
        << session.message();
    EXPECT_EQ(ortc_train_step(session.get(), nullptr), ORTC_E_RANGE);
    EXPECT_EQ(session.message(),
              "index " + std::to_string(wrong) + " in '" + input + "' is out of range [-96, 96)");
  }
  EXPECT_TRUE(before == session.readPersistent());
}

// Their dots, convolutions, pools, attentions and norms take different code on each level.
TEST_F(ArtifactTest, LevelsOfX86Agree) {
  if (!runs(kV3))
    GTEST_SKIP() << "this machine has no AVX2";
  for (const char *name : {"lenet", "bert-tiny", "resnet-tiny"}) {
    ZooEntry entry(name);
    std::map<std::string, Values> v3, v4, baseline;
    compile(name, folder / "v3", {"--target", "x86-64-v3"});
    v3 = trained(folder / "v3", entry);
    if (entry.folder.ends_with("lenet")) {
      compile(name, folder / "baseline", {"--target", "x86-64"});
      baseline = trained(folder / "baseline", entry);
      EXPECT_LE(worstDistance(v3, baseline), 2e-4) << "mul and add instead of fma, after five AdamW steps";
    }
    if (!runs(kV4))
      continue;
    compile(name, folder / "v4", {"--target", "x86-64-v4"});
    v4 = trained(folder / "v4", entry);
    EXPECT_EQ(worstDistance(v3, v4), 0) << name;
  }
  if (!runs(kV4))
    GTEST_SKIP() << "this machine has no AVX-512; v3 and the baseline agree";
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

  compile("mlp-digits", folder / "artifact", {"--target", "native", "--gradients"});
  EXPECT_FALSE(before == readFile(folder / "artifact/model.ortc"));
  EXPECT_EQ(listFolder(), (std::set<std::string>{"artifact", "broken.onnx"}));
}

TEST_F(ArtifactTest, CheckpointsInTheFolderAreNotDeleted) {
  ZooEntry entry("mlp-digits");
  compile("mlp-digits", folder / "artifact", {"--target", "native"});
  mustRun({"run", folder / "artifact", "--data", entry.data(), "--steps", "1", "--quiet", "--save",
           folder / "artifact/ck.safetensors"});
  std::string before = readFile(folder / "artifact/model.ortc");
  Outcome outcome =
      runTool({"train", entry.model(), "-o", folder / "artifact", "--shape", "batch=64", "--gradients"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.errors.substr(0, outcome.errors.find(": it is")),
            "ortc: error: output folder '" + (folder / "artifact") + "' holds 'ck.safetensors'");
  EXPECT_TRUE(before == readFile(folder / "artifact/model.ortc"));
  EXPECT_TRUE(std::filesystem::exists(folder / "artifact/ck.safetensors"));
}

// A forward-only artifact trains nothing: its weights are constants, and PyTorch's predictions come out all the same.
TEST_F(ArtifactTest, WithoutALossAllWeightsAreConstants) {
  ZooEntry entry("mobilenetv2-tiny"); // with running statistics
  std::vector<std::string> arguments{"train",  entry.model(), "-o",       folder / "none",
                                     "--loss", "none",        "--target", "native"};
  std::vector<std::string> both{"train",    entry.model(), "-o",     folder / "both",
                                "--target", "native",      "--quiet"};
  for (size_t i = 0; i + 1 < entry.flags.size(); ++i)
    if (entry.flags[i] == "--shape")
      for (auto *list : {&arguments, &both})
        list->insert(list->end(), {"--shape", entry.flags[i + 1]});
  Outcome outcome = mustRun(arguments);
  EXPECT_NE(outcome.text.find("\ntrained    nothing: the weights are constants\n"), std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("\npersistent 0 B, "), std::string::npos) << outcome.text;
  mustRun(both);
  for (const char *name : {"none", "both"})
    mustRun({"predict", folder / name, "--data", entry.data(), "--steps", "1", "-o",
             folder / (std::string(name) + ".npz"), "--quiet"});
  auto wanted = loadValues(folder / "both.npz"), got = loadValues(folder / "none.npz");
  EXPECT_LE(worstDistance(wanted, got), 1e-5) << "products of constants are folded";
  outcome = runTool({"train", entry.model(), "-o", folder / "x", "--loss", "none", "--optimizer", "sgd"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.errors,
            "ortc: error: --optimizer needs a loss, and --loss none compiles the forward part only\n");
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
