// Every optimizer over fifty steps, with a group and clipping, against PyTorch (test/optimizers/make-optimizers.py).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "ortc/ortc.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

/// Two ways in float64: rounding of 1e-16 that fifty steps carry on.
constexpr double kTolerance = 1e-10;
/// `ortc eval` rounds losses to float32, and their mean: twice half a unit in the last place.
constexpr double kEvalTolerance = 0x1p-23;

nlohmann::json readCases() {
  std::ifstream file(sourcePath("optimizers/optimizers.json"));
  return nlohmann::json::parse(file);
}

/// The largest distance relative to the largest expected magnitude.
double distance(const std::vector<double> &wanted, const std::vector<double> &got) {
  if (wanted.size() != got.size())
    return INFINITY;
  double off = 0, span = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    span = std::max(span, std::fabs(wanted[i]));
    double difference = std::fabs(wanted[i] - got[i]);
    off = std::isnan(difference) ? INFINITY : std::max(off, difference);
  }
  return off / span;
}

/// One case by its place in the file, in a precision.
class OptimizersTest : public testing::TestWithParam<size_t> {
protected:
  void compile(const std::string &precision, const std::vector<std::string> &more = {}) {
    std::vector<std::string> flags{"train",    entry.model(), "-o",          folder / "artifact",
                                   "--target", "native",      "--precision", precision,
                                   "--quiet"};
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    for (const nlohmann::json &flag : each["flags"])
      flags.push_back(flag);
    flags.insert(flags.end(), more.begin(), more.end());
    mustRun(flags);
  }
  void run(int steps, const std::vector<std::string> &more) {
    std::vector<std::string> flags{"run",     folder / "artifact",   "--data", entry.data(), "--no-shuffle",
                                   "--steps", std::to_string(steps), "--quiet"};
    flags.insert(flags.end(), more.begin(), more.end());
    mustRun(flags);
  }
  std::string saved(const std::string &name) const { return folder / (name + ".safetensors"); }

  /// What the training that was saved came to, as the file has it.
  std::map<std::string, std::vector<double>> measure() {
    std::map<std::string, std::vector<double>> got{{"loss", loadLosses(folder / "run.jsonl")}};
    for (const auto &[name, values] : loadValues(saved("end"))) {
      double sum = 0, squares = 0;
      for (double value : values.data) {
        sum += value;
        squares += value * value;
      }
      got[name] = {sum, std::sqrt(squares)};
    }
    Outcome eval =
        mustRun({"eval", folder / "artifact", "--data", entry.data(), "--load", saved("end"), "--json"});
    got["eval"] = {nlohmann::json::parse(eval.text)["loss"]};
    return got;
  }
  void expectTorch(bool isWide) {
    auto got = measure();
    for (const auto &[key, wanted] : each["expected"].items())
      EXPECT_LE(distance(wanted, got[key]),
                isWide ? (key == "eval" ? kEvalTolerance : kTolerance) : double(each["tolerance"][key]))
          << key;
  }

  nlohmann::json each = readCases().at(GetParam());
  ZooEntry entry{each["model"]};
  TemporaryFolder folder;
};

TEST_P(OptimizersTest, WideIsTorch) {
  compile("f64");
  run(50, {"--metrics", folder / "run.jsonl", "--save", saved("end")});
  expectTorch(/*isWide=*/true);
}

/// float32, also in two parts: what is saved in between is all that goes on.
TEST_P(OptimizersTest, IsTorchAndResumes) {
  compile("f32");
  run(50, {"--metrics", folder / "run.jsonl", "--save", saved("end")});
  expectTorch(/*isWide=*/false);
  run(20, {"--save", saved("half")});
  run(30, {"--load", saved("half"), "--save", saved("resumed")});
  EXPECT_EQ(readTensors(saved("resumed")), readTensors(saved("end")));
}

std::string nameOf(const testing::TestParamInfo<size_t> &info) {
  nlohmann::json each = readCases().at(info.param);
  return caseName(each["model"]) + "_" + std::string(each["optimizer"]);
}

INSTANTIATE_TEST_SUITE_P(Zoo, OptimizersTest, testing::Range<size_t>(0, readCases().size()), nameOf);

/// What the program does with vectors names the same parameters as these expressions.
TEST(NoDecayTest, IsAGroupOfBiasesAndNorms) {
  const std::pair<const char *, const char *> cases[] = {{"vit-tiny-slim", ".*(bias|norm.*)"},
                                                         {"resnet-tiny", ".*(bias|bn.*|downsample.1.*)"},
                                                         {"gru-forecast", ".*(bias|_186|_206)"}};
  for (auto [name, group] : cases) {
    ZooEntry entry(name);
    TemporaryFolder folder;
    auto train = [&](std::vector<std::string> more) {
      std::vector<std::string> flags{
          "train",  entry.model(), "-o",          folder / "artifact",          "--target",
          "native", "--quiet",     "--optimizer", "sgd:lr=0.1,weight_decay=0.5"};
      flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
      flags.insert(flags.end(), more.begin(), more.end());
      mustRun(flags);
      mustRun({"run", folder / "artifact", "--data", entry.data(), "--no-shuffle", "--steps", "2", "--quiet",
               "--save", folder / "end.safetensors"});
      return readTensors(folder / "end.safetensors");
    };
    std::string named = train({"--group", std::string(group) + ":weight_decay=0"});
    EXPECT_TRUE(train({"--no-decay", "biases,norms"}) == named) << name;
    EXPECT_FALSE(train({"--no-decay", "biases"}) == train({})) << name;
  }
}

/// Tables in registers, where this machine has instructions for it, beside tables in memory: with whole blocks and with
/// a rest.
TEST(ByteStatesTest, AreTheSameOnEveryLevel) {
  if (ortc_host_architecture() != ORTC_ARCH_X86_64)
    GTEST_SKIP() << "this machine has one level";
  for (const char *name : {"mlp-digits", "lenet"})
    for (const char *optimizer : {"adamw8bit:lr=0.01", "lion8bit"}) {
      ZooEntry entry(name);
      TemporaryFolder folder;
      auto train = [&](const std::string &target) {
        std::vector<std::string> flags{"train",      entry.model(), "-o",          folder / "artifact",
                                       "--target",   target,        "--optimizer", optimizer,
                                       "--numerics", "portable",    "--quiet"};
        flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
        mustRun(flags);
        mustRun({"run", folder / "artifact", "--data", entry.data(), "--no-shuffle", "--steps", "20",
                 "--quiet", "--save", folder / "end.safetensors"});
        return readTensors(folder / "end.safetensors");
      };
      EXPECT_TRUE(train("native") == train("x86-64")) << name << ", " << optimizer;
    }
}

class OptimizersRefusalTest : public testing::Test {
protected:
  std::string refuse(const std::vector<std::string> &more) {
    ZooEntry entry("mlp-digits");
    TemporaryFolder folder;
    std::vector<std::string> flags{"train", entry.model(), "-o", folder / "artifact"};
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    flags.insert(flags.end(), more.begin(), more.end());
    Outcome outcome = runTool(flags);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_FALSE(std::ifstream(folder / "artifact/model.ortc").good());
    return outcome.errors;
  }
};

/// The message lists the table of optimizers.
TEST_F(OptimizersRefusalTest, EveryOptimizerHasACase) {
  std::string errors = refuse({"--optimizer", "nothing"}), begin = "; there are ";
  size_t from = errors.find(begin), to = errors.find(" and onnx:FILE");
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  std::set<std::string> tested;
  for (const nlohmann::json &each : readCases())
    tested.insert(each["optimizer"]);
  std::istringstream words(errors.substr(from + begin.size(), to - from - begin.size()));
  int count = 0;
  for (std::string word; words >> word; ++count)
    EXPECT_TRUE(tested.count(word.substr(0, word.find(',')))) << word;
  EXPECT_GE(count, 18);
}

TEST_F(OptimizersRefusalTest, SaysWhatAndWhatToDo) {
  auto expect = [&](const std::vector<std::string> &flags, const std::string &text) {
    std::string errors = refuse(flags);
    EXPECT_NE(errors.find(text), std::string::npos) << errors;
  };
  expect({"--optimizer", "muon"}, "optimizer 'muon' updates tensors of 2 dimensions, and 2 are not: "
                                  "'0.bias', '2.bias'; give them a group with "
                                  "another optimizer: --group '0.bias:optimizer=adamw'");
  expect({"--group", ".*bias:optimizer=adan"}, "there is no optimizer 'adan'");
  expect({"--group", ".*bias:optimizer=adan"}, "; did you mean 'adam'?");
  expect({"--optimizer", "adamw", "--group", ".*bias:beta3=0.9"},
         "group '.*bias' of optimizer 'adamw' has no option 'beta3'; it takes lr_scale, lr, beta1, beta2, ");
  expect({"--group", ".*:optimizer=adam"}, "every trained tensor is in a --group with a learning rate of its "
                                           "own, and that of --optimizer is of none");
  expect({"--optimizer", "lbfgs"}, "optimizer 'lbfgs' is none of a compiled step: ");
  expect({"--no-decay", "bias"}, "'bias' must be biases, norms, or both with a comma between");
}

} // namespace
