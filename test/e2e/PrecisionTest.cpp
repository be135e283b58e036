// --precision f64: everything in float64, numbers as exact as the references are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <gtest/gtest.h>

#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

class PrecisionTest : public testing::TestWithParam<const char *> {};

/// The goldens are float64, from the same float32 weights: what is left is the order of sums.
TEST_P(PrecisionTest, AgreesWithTheReferenceInFloat64) {
  ZooEntry entry(GetParam());
  TemporaryFolder folder;
  std::string artifact = folder / "a", saved = folder / "a.safetensors", metrics = folder / "a.jsonl";
  std::vector<std::string> flags{"train",       entry.model(), "-o",          artifact,
                                 "--precision", "f64",         "--optimizer", entry.optimizers["adamw"],
                                 "--target",    "native",      "--quiet"};
  flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
  mustRun(flags);
  mustRun({"run", artifact, "--data", entry.data(), "--no-shuffle", "--steps", std::to_string(entry.steps),
           "--metrics", metrics, "--save", saved, "--quiet"});
  std::vector<double> losses = loadLosses(metrics),
                      wanted = loadValues(entry.folder + "/golden.npz")["loss/adamw"].data;
  ASSERT_EQ(losses.size(), wanted.size());
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(losses[i], wanted[i], 1e-9 * std::fabs(wanted[i])) << "step " << i;
  // Resumed, predicted and exported like any other.
  mustRun({"run", artifact, "--data", entry.data(), "--load", saved, "--steps", "1", "--quiet"});
  mustRun({"predict", artifact, "--data", entry.data(), "-o", folder / "p.npz", "--quiet"});
  mustRun({"export", artifact, "--load", saved, "-o", folder / "e.onnx", "--quiet"});
  flags[1] = folder / "e.onnx"; // float32 weights again
  mustRun(flags);
}

INSTANTIATE_TEST_SUITE_P(Zoo, PrecisionTest, testing::Values("mlp-digits", "lenet", "gpt2-tiny"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
