// Trains every zoo entry; losses, first gradients, the parameters that SGD and AdamW leave, and predictions
// are compared with PyTorch in float64, of every tensor that is trained. Compiled in float64, generated code
// is compared with the evaluator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Distances are relative to the largest magnitude of the golden array, at least the floor of its kind.
// Tolerances stand in recipe.json: eight times the largest distance from float64 of four float32 runs of
// PyTorch, one from the same weights and three from weights that are off by one to four units in the last
// place; at least 2e-6 for losses and 1e-5 for the rest.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>

#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

double largest(const std::vector<double> &values) {
  double result = 0;
  for (double value : values)
    result = std::max(result, std::fabs(value));
  return result;
}

/// The distance of `got` from `wanted`; infinite where a number is not finite.
double distance(const std::vector<double> &wanted, const std::vector<double> &got, double floor) {
  double worst = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!std::isfinite(got[i]))
      return INFINITY;
    worst = std::max(worst, std::fabs(wanted[i] - got[i]));
  }
  return worst / std::max(largest(wanted), floor);
}

/// What stands after the first '/' of a golden's name.
std::string tail(const std::string &key) { return key.substr(key.find('/') + 1); }

class ZooTest : public testing::TestWithParam<std::string> {
protected:
  ZooTest() : entry(GetParam()), golden(loadValues(entry.folder + "/golden.npz")) {
    for (const auto &[key, values] : golden)
      if (key.starts_with("grad/"))
        largestGradient = std::max(largestGradient, largest(values.data));
  }

  void compare(const std::string &key, const std::vector<double> &got, double floor, double tolerance) {
    const Values &wanted = golden[key];
    ASSERT_EQ(got.size(), wanted.data.size()) << key;
    double off = distance(wanted.data, got, floor);
    EXPECT_LE(off, tolerance) << key;
    worst = std::max(worst, off / tolerance);
    ++compared;
  }

  void compare(const std::string &key, const std::map<std::string, Values> &file, double floor) {
    auto found = file.find(tail(key));
    ASSERT_NE(found, file.end()) << key << " is missing";
    ASSERT_EQ(found->second.shape, golden[key].shape) << key;
    compare(key, found->second.data, floor, entry.tolerance.at(key));
  }

  /// Compiles for `kind`, trains and compares the losses. `extra` goes to the compiler.
  void train(const std::string &kind, const std::vector<std::string> &extra) {
    std::vector<std::string> arguments{"train",       entry.model(),          "-o",     folder / kind,
                                       "--optimizer", entry.optimizers[kind], "--quiet"};
    arguments.insert(arguments.end(), entry.flags.begin(), entry.flags.end());
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    mustRun(arguments);
    mustStep({"run", folder / kind, "--data", entry.data(), "--steps", std::to_string(entry.steps),
              "--no-shuffle", "--quiet", "--metrics", folder / (kind + ".jsonl"), "--save",
              folder / (kind + ".safetensors")});
    std::vector<double> losses = loadLosses(folder / (kind + ".jsonl"));
    ASSERT_FALSE(losses.empty());
    firstLoss = losses[0];
    compare("loss/" + kind, losses, 1e-3, entry.tolerance.at("loss/" + kind));
  }

  /// Runs a command that steps, on the device that is tested.
  void mustStep(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), device.begin(), device.end());
    mustRun(arguments);
  }

  /// Trains with both optimizers and compares everything. The targets are those of each.
  void agree(const std::string &adamwTarget, const std::string &sgdTarget);

  TemporaryFolder folder;
  std::vector<std::string> device, more; ///< flags of what steps, and of the compiler
  ZooEntry entry;
  std::map<std::string, Values> golden;
  double largestGradient = 0;
  double firstLoss = 0; ///< of the last run
  double worst = 0;     ///< share of its tolerance
  size_t compared = 0;
};

} // namespace

void ZooTest::agree(const std::string &adamwTarget, const std::string &sgdTarget) {
  ASSERT_NO_FATAL_FAILURE(train("adamw", {"--target", adamwTarget}));
  ASSERT_NO_FATAL_FAILURE(train("sgd", {"--gradients", "--target", sgdTarget}));
  mustStep({"gradients", folder / "sgd", "--data", entry.data(), "-o", folder / "gradients.safetensors",
            "--quiet"});
  mustStep({"predict", folder / "sgd", "--data", entry.data(), "--steps", "1", "-o", folder / "predict.npz",
            "--quiet"});
  auto gradients = loadValues(folder / "gradients.safetensors"),
       trained = loadValues(folder / "sgd.safetensors"), adamw = loadValues(folder / "adamw.safetensors"),
       predicted = loadValues(folder / "predict.npz");
  for (const auto &[key, values] : golden) {
    if (key.starts_with("grad/"))
      compare(key, gradients, 1e-4 * largestGradient);
    else if (key.starts_with("param/"))
      compare(key, trained, 1e-6);
    else if (key.starts_with("adamw/"))
      compare(key, adamw, 1e-6);
  }
  for (const auto &[name, values] : gradients)
    for (const char *kind : {"grad/", "param/", "adamw/"})
      EXPECT_TRUE(name == "loss" || golden.contains(kind + name))
          << name << " is trained and has no reference " << kind;
  ASSERT_EQ(valuesOf(gradients, "loss").data.size(), 1u);
  EXPECT_EQ(float(gradients["loss"].data[0]), float(firstLoss)); // metrics have so many digits
  ASSERT_TRUE(predicted.contains(entry.predict)) << "there is no prediction of '" << entry.predict << "'";
  const Shape &shape = golden["predict"].shape; // a scalar of one step is an array of one
  ASSERT_EQ(predicted[entry.predict].shape, shape.empty() ? Shape{1} : shape);
  compare("predict", predicted[entry.predict].data, 1e-6, 2e-4);
  EXPECT_EQ(compared, golden.size());
  std::printf("%s: %zu arrays, worst %.2f of its tolerance\n", GetParam().c_str(), compared, worst);
}

/// The widest level of this machine, and what every machine runs.
TEST_P(ZooTest, AgreesWithPyTorch) { agree("native", "x86-64"); }

/// The driver is that of $ORTC_CUDA_DRIVER, or of the machine's GPU.
class DeviceZooTest : public ZooTest {
protected:
  DeviceZooTest() { device = {"--device", "cuda"}; }
};

TEST_P(DeviceZooTest, AgreesWithPyTorch) { agree("sm_80", "sm_80"); }

/// Attention a head at a time on the CPU, and all heads at a time on the GPU, in one artifact; and a head of the model
/// in chunks.
class DeviceHeadsTest : public DeviceZooTest {};

TEST_P(DeviceHeadsTest, AgreesWithPyTorch) {
  more = {"--attention", "tiled", "--head-chunk", "16", "--target", "x86-64", "--dump-ir", folder / "ir"};
  ASSERT_NO_FATAL_FAILURE(agree("sm_80", "sm_80"));
  const std::string once = "nn.scan 1 recompute carry";
  EXPECT_NE(readFile(folder / "ir/2-simplify-gpu.mlir").find(once), std::string::npos);
  EXPECT_EQ(readFile(folder / "ir/2-simplify-cpu.mlir").find(once), std::string::npos);
  mustRun({"run", folder / "adamw", "--data", entry.data(), "--steps", std::to_string(entry.steps),
           "--no-shuffle", "--quiet", "--metrics", folder / "cpu.jsonl"});
  compare("loss/adamw", loadLosses(folder / "cpu.jsonl"), 1e-3, entry.tolerance.at("loss/adamw"));
}

TEST_P(ZooTest, GeneratedCodeAgreesWithTheEvaluator) {
  std::vector<std::string> arguments{"check",     entry.model(), "--against",
                                     "evaluator", "--data",      entry.data()};
  arguments.insert(arguments.end(), entry.flags.begin(), entry.flags.end());
  std::printf("%s: %s", GetParam().c_str(), mustRun(arguments).text.c_str());
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooTest, testing::ValuesIn(listEntries()),
                         [](const auto &info) { return caseName(info.param); });
INSTANTIATE_TEST_SUITE_P(Zoo, DeviceZooTest, testing::ValuesIn(listEntries()),
                         [](const auto &info) { return caseName(info.param); });
INSTANTIATE_TEST_SUITE_P(Zoo, DeviceHeadsTest,
                         testing::Values("gpt2-tiny", "llama-tiny", "bert-tiny", "roberta-tiny",
                                         "vit-tiny-slim"),
                         [](const auto &info) { return caseName(info.param); });
