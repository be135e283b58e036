// --buckets: steps of the length that their samples need.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/data/writers.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

class BucketsTest : public testing::TestWithParam<std::string> {
protected:
  BucketsTest() : entry(GetParam()), data(entry.data()) {}

  /// Compiles with the first flags of `bindings` for binding b0, and so on.
  void compile(const std::vector<std::string> &bindings, const std::vector<std::string> &more = {}) {
    std::vector<std::string> flags{"train",  entry.model(),     "-o",       folder / "artifact",
                                   "--loss", entry.flags.at(1), "--target", "native",
                                   "--quiet"};
    for (size_t i = 0; i < bindings.size(); ++i)
      flags.insert(flags.end(), {"--binding", "b" + std::to_string(i), "--shape", bindings[i]});
    flags.insert(flags.end(), more.begin(), more.end());
    mustRun(flags);
  }

  std::vector<std::string> runFlags(const std::string &data, const std::vector<std::string> &more) {
    std::vector<std::string> flags{"run", folder / "artifact", "--data", data, "--quiet"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  /// Trains; the checkpoint. Steps are in NAME.jsonl.
  std::string train(const std::string &name, int steps, const std::vector<std::string> &more) {
    std::vector<std::string> flags = runFlags(data, more);
    std::string saved = folder / (name + ".safetensors");
    flags.insert(flags.end(), {"--steps", std::to_string(steps), "--metrics", folder / (name + ".jsonl"),
                               "--save", saved});
    mustRun(flags);
    return saved;
  }
  std::vector<std::string> bindingsOf(const std::string &name) {
    std::vector<std::string> bindings;
    std::ifstream lines(folder / (name + ".jsonl"));
    for (std::string line; std::getline(lines, line);)
      if (nlohmann::json step = nlohmann::json::parse(line); step.contains("loss"))
        bindings.push_back(step.value("binding", ""));
    return bindings;
  }
  void expectRefusal(const std::string &data, const std::vector<std::string> &flags,
                     const std::string &message, int status = 2) {
    Outcome outcome = runTool(runFlags(data, flags));
    EXPECT_EQ(outcome.status, status) << message;
    EXPECT_NE(outcome.errors.find(message), std::string::npos) << outcome.errors;
  }
  /// The data of the entry with one array more, and without labels of tokens that the mask hides.
  std::string withArray(engine::OutputArray array) {
    std::vector<engine::OutputArray> arrays;
    std::unique_ptr<engine::DataSource> source;
    EXPECT_TRUE(engine::openData(entry.data(), source).isOk());
    auto known = loadValues(entry.data());
    const Values &mask = valuesOf(known, "attention_mask");
    for (const std::string &name : source->getNames()) {
      Array from;
      EXPECT_TRUE(source->load(name, from).isOk());
      std::vector<uint8_t> bytes(from.data, from.data + from.bytes);
      const int64_t ignored = -100;
      for (size_t i = 0; name == "label" && from.shape.size() == 2 && i < mask.bits.size(); ++i)
        if (mask.bits[i] == 0)
          std::memcpy(&bytes[i * sizeof ignored], &ignored, sizeof ignored);
      arrays.push_back({name, from.type, from.shape, std::move(bytes)});
    }
    std::string path = folder / (array.name + ".npz");
    arrays.push_back(std::move(array));
    EXPECT_TRUE(engine::writeNpz(path, arrays).isOk());
    return path;
  }
  static engine::OutputArray makeLengths(const std::string &name, const std::vector<int32_t> &values) {
    engine::OutputArray array{name,
                              DataType::Int32,
                              {int64_t(values.size())},
                              std::vector<uint8_t>(values.size() * sizeof(int32_t))};
    std::memcpy(array.data.data(), values.data(), array.data.size());
    return array;
  }

  const std::vector<std::string> three{"batch=4,sequence=10", "batch=4,sequence=12", "batch=4,sequence=9"};
  TemporaryFolder folder;
  ZooEntry entry;
  std::string data;
};

/// Where masks hide what is cut, losses are those of PyTorch at full length (golden.npz), and so are weights.
TEST_P(BucketsTest, CutsWhatNoMaskShows) {
  for (const char *kind : {"sgd", "adamw"}) {
    compile(three, {"--optimizer", entry.optimizers.at(kind)});
    train(kind, entry.steps, {"--no-shuffle", "--buckets", "length=attention_mask"});
    // The longest of four samples: 11, 10, 12, 11 and 10 tokens in bert-tiny; in roberta-tiny always 12.
    auto wanted = GetParam() == "bert-tiny" ? std::vector<std::string>{"b1", "b0", "b1", "b1", "b0"}
                                            : std::vector<std::string>{"b1", "b1", "b1", "b1", "b1"};
    EXPECT_EQ(bindingsOf(kind), wanted);
    auto golden = loadValues(entry.folder + "/golden.npz");
    std::vector<double> losses = loadLosses(folder / (std::string(kind) + ".jsonl")),
                        reference = valuesOf(golden, std::string("loss/") + kind).data;
    ASSERT_EQ(losses.size(), reference.size());
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], reference[i], entry.tolerance.at(std::string("loss/") + kind) * reference[i])
          << i;
  }
}

/// Also where samples are shuffled and labels are cut, with the lengths in an array of their own.
TEST_P(BucketsTest, ChoosesForTheSamplesOfAStep) {
  compile(three, {"--accumulate", "2", "--optimizer", "sgd:lr=0.05"});
  auto masks = loadValues(entry.data());
  const Values &mask = valuesOf(masks, "attention_mask");
  std::vector<int32_t> lengths(20);
  for (size_t i = 0; i < mask.bits.size(); ++i)
    if (mask.bits[i])
      lengths[i / 12] = int32_t(i % 12 + 1);
  data = withArray(makeLengths("lengths", lengths));
  std::string byMask = train("mask", 25, {"--buckets", "length=attention_mask"});
  std::string byLengths = train("lengths", 25, {"--buckets", "length=lengths"});
  EXPECT_EQ(readTensors(byMask), readTensors(byLengths));
  engine::OutputArray column = makeLengths("column", lengths);
  column.shape.push_back(1);
  data = withArray(column);
  EXPECT_EQ(readTensors(train("column", 25, {"--buckets", "length=column"})), readTensors(byMask));
  data = withArray(makeLengths("lengths", lengths));
  std::vector<std::string> bindings = bindingsOf("mask");
  EXPECT_EQ(bindings, bindingsOf("lengths"));
  EXPECT_GE(std::set<std::string>(bindings.begin(), bindings.end()).size(), 2u);
  // The same at full length, but for the order of sums.
  train("whole", 25, {"--binding", "b1"});
  std::vector<double> found = loadLosses(folder / "mask.jsonl"), whole = loadLosses(folder / "whole.jsonl");
  ASSERT_EQ(found.size(), whole.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], whole[i], 2e-5 * whole[i]) << i;
  EXPECT_EQ(bindingsOf("whole")[0], "") << "said without --buckets";
  Outcome outcome =
      mustRun({"run", folder / "artifact", "--data", data, "--steps", "1", "--buckets", "length=lengths"});
  EXPECT_EQ(outcome.errors.find("not used"), std::string::npos) << outcome.errors;
}

TEST_P(BucketsTest, ResumesBitForBit) {
  compile(three, {"--optimizer", entry.optimizers.at("adamw")});
  const std::vector<std::string> flags{"--buckets", "length=attention_mask", "--threads", "1"};
  std::string whole = train("whole", 9, flags);
  std::vector<std::string> more = flags;
  more.insert(more.end(), {"--load", train("half", 4, flags), "--threads", "2"});
  more.erase(more.begin() + 2, more.begin() + 4);
  EXPECT_EQ(readTensors(train("rest", 5, more)), readTensors(whole));
}

INSTANTIATE_TEST_SUITE_P(Zoo, BucketsTest, testing::Values("bert-tiny", "roberta-tiny"),
                         [](const auto &info) { return caseName(info.param); });

class BucketsRefusalTest : public BucketsTest {};

TEST_P(BucketsRefusalTest, SaysWhatDoesNotFit) {
  const std::vector<std::string> byMask{"--buckets", "length=attention_mask"};
  compile({three[0]});
  expectRefusal(entry.data(), byMask,
                "has one binding, and --buckets chooses among several; compile it with --binding "
                "NAME --shape ... for every length");
  compile({"batch=4,sequence=12", "batch=2,sequence=9"});
  expectRefusal(entry.data(), byMask,
                "its bindings differ in the dimensions 'batch', 'sequence', and --buckets needs "
                "bindings that differ in one: that of the length");
  compile({"batch=4,sequence=12", "batch=2,sequence=12"});
  expectRefusal(entry.data(), byMask,
                "input 'input_ids' is [2, 12] in binding 'b1' and [4, 12] in 'b0', and --buckets "
                "cuts other axes than the first alone");
  compile({"input_ids=4x12,attention_mask=4x12", "batch=4,sequence=9"});
  Outcome outcome = runTool(runFlags(entry.data(), byMask));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find("--buckets needs bindings that differ in one"), std::string::npos)
      << outcome.errors;
  compile(three);
  expectRefusal(entry.data(), {"--buckets", "length=lengths"},
                "has no array 'lengths' for --buckets; it has 'input_ids', 'attention_mask', 'label'", 1);
  expectRefusal(entry.data(), {"--buckets", "sequence=attention_mask"},
                "'sequence=attention_mask' must be length=ARRAY, an array of the data with a length or a "
                "mask for every "
                "sample");
  expectRefusal(entry.data(), {"--buckets", "length="}, "'length=' must be length=ARRAY");
  expectRefusal(entry.data(), {"--buckets", "length=attention_mask", "--binding", "b0"},
                "--buckets chooses the binding of every step, and --binding one for all; give one of them");
  engine::OutputArray real{"real", DataType::Float32, {20}, std::vector<uint8_t>(80)};
  expectRefusal(withArray(real), {"--buckets", "length=real"},
                "array 'real' is float32, and lengths and masks of --buckets are integers", 1);
  expectRefusal(
      withArray(makeLengths("few", std::vector<int32_t>(19, 5))), {"--buckets", "length=few"},
      "array 'few' has shape [19], and --buckets needs a length for each of 20 samples, or a row of a mask",
      1);
  engine::OutputArray narrow = makeLengths("narrow", std::vector<int32_t>(20 * 7, 1));
  narrow.shape = {20, 7};
  expectRefusal(
      withArray(narrow), {"--buckets", "length=narrow"},
      "array 'narrow' has rows of 7, and a mask for --buckets has sequence=12, that of the largest binding",
      1);
  expectRefusal(withArray({"flags", DataType::Bool, {20}, std::vector<uint8_t>(20, 1)}),
                {"--buckets", "length=flags"},
                "array 'flags' is bool, and one boolean a sample is neither a length nor a mask", 1);
  for (int32_t wrong : {13, -1}) {
    std::vector<int32_t> lengths(20, 5);
    lengths[7] = wrong;
    expectRefusal(
        withArray(makeLengths("long", lengths)), {"--buckets", "length=long"},
        "array 'long' has length " + std::to_string(wrong) +
            " at sample 7, but the largest binding, 'b1', has sequence=12; compile a larger one, or cut the "
            "samples",
        1);
  }
  expectRefusal(withArray({"huge", DataType::UInt64, {20}, std::vector<uint8_t>(20 * 8, 255)}),
                {"--buckets", "length=huge"}, "array 'huge' has length 18446744073709551615 at sample 0", 1);
}

INSTANTIATE_TEST_SUITE_P(Zoo, BucketsRefusalTest, testing::Values("bert-tiny"),
                         [](const auto &info) { return caseName(info.param); });

} // namespace
