// Products of bf16, f16 and TF32 numbers on a device train as near to other ways of computing as their digits allow.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: e2e-device-narrow [gtest flags]; the driver is that of $ORTC_CUDA_DRIVER.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "test/e2e/DeviceImages.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

constexpr int kSteps = 5;
/// Of a loss: some units in the last place of f16 and TF32, 1e-3, lie in a sum with both signs. One of bf16, 8e-3,
/// is rounded alike on all machines.
constexpr double kTolerance = 1e-3;

/// Norms of small batches make much of a rounding: losses of one way to round are off those of another as they are off
/// those of float64.
const std::vector<std::string> kUnsteady{"mobilenetv2-tiny", "resnet-tiny"};

bool contains(const std::vector<std::string> &names, const std::string &name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

using Case = std::tuple<std::string, std::string>; // entry, precision

class DeviceNarrowTest : public testing::TestWithParam<Case> {
protected:
  void compile(const std::string &kind, const std::string &rounded, const std::vector<std::string> &targets) {
    std::vector<std::string> flags{
        "train",       entry.model(), "-o",          folder / "artifact",      "--quiet",
        "--precision", rounded,       "--optimizer", entry.optimizers.at(kind)};
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    for (const std::string &target : targets)
      flags.insert(flags.end(), {"--target", target});
    mustRun(flags);
  }

  std::vector<double> lossesOn(const std::string &device) {
    std::string file = folder / (device + ".jsonl");
    mustRun({"run", folder / "artifact", "--data", entry.data(), "--steps", std::to_string(kSteps),
             "--no-shuffle", "--quiet", "--device", device, "--metrics", file});
    std::vector<double> losses = loadLosses(file);
    EXPECT_EQ(losses.size(), size_t(kSteps));
    losses.resize(kSteps, NAN);
    return losses;
  }

  /// Of PyTorch in float64.
  std::vector<double> exactLosses(const std::string &kind) {
    std::vector<double> losses = valuesOf(golden, "loss/" + kind).data;
    EXPECT_GE(losses.size(), size_t(kSteps));
    losses.resize(kSteps, NAN);
    return losses;
  }

  void expectNear(const std::vector<double> &losses, const std::vector<double> &wanted, double off,
                  const std::string &kind) {
    for (int i = 0; i < kSteps; ++i)
      EXPECT_NEAR(losses[i], wanted[i], kTolerance * std::fabs(wanted[i]) + off) << kind << ", step " << i;
  }

  /// What rounding makes of the losses of an unsteady model.
  double offFrom(const std::vector<double> &exact, const std::vector<double> &rounded) const {
    double off = 0;
    for (int i = 0; i < kSteps && contains(kUnsteady, entryName); ++i)
      off = std::max(off, std::fabs(rounded[i] - exact[i]));
    return off;
  }

  std::string entryName = std::get<0>(GetParam()), precision = std::get<1>(GetParam());
  ZooEntry entry{entryName};
  std::map<std::string, Values> golden = loadValues(entry.folder + "/golden.npz");
  TemporaryFolder folder;
};

/// What is stored narrow depends on a family's kernels, so losses are near those of a processor, not equal.
TEST_P(DeviceNarrowTest, LossesAreNearThoseOfProcessors) {
  for (const auto &[kind, optimizer] : entry.optimizers) {
    compile(kind, precision, {"x86-64", "sm_80"});
    std::vector<double> wanted = lossesOn("cpu");
    expectNear(lossesOn("cuda"), wanted, offFrom(exactLosses(kind), wanted), kind);
  }
}

/// What has sides and depths of 64, from where on products run on tensor cores.
const std::vector<std::string> kWithProducts{"mlp-digits", "resnet-tiny"};

/// Processors have no TF32, whose numbers have the digits of f16.
class DeviceTf32Test : public DeviceNarrowTest {};

TEST_P(DeviceTf32Test, LossesAreNearThoseOfDoublePrecision) {
  for (const auto &[kind, optimizer] : entry.optimizers) {
    std::vector<double> exact = exactLosses(kind);
    double off = 0;
    if (contains(kUnsteady, entryName)) {
      compile(kind, "f16", {"x86-64"});
      off = offFrom(exact, lossesOn("cpu"));
    }
    compile(kind, "tf32", {"sm_80"});
    expectNear(lossesOn("cuda"), exact, off, kind);
    const std::string code = imagesOf(folder / "artifact/model.ortc").front().bytes;
    EXPECT_EQ(code.find(".f32.tf32.tf32.f32") != std::string::npos, contains(kWithProducts, entryName));
  }
}

const std::vector<std::string> kFew{"lenet", "gpt2-tiny", "gru-forecast"},
    kFewTf32{"mlp-digits", "gpt2-tiny"};

std::vector<std::string> othersThan(const std::vector<std::string> &few) {
  std::vector<std::string> others = listEntries();
  std::erase_if(others, [&](const std::string &name) { return contains(few, name); });
  return others;
}

std::string nameOf(const testing::TestParamInfo<Case> &info) {
  return caseName(std::get<0>(info.param) + "_" + std::get<1>(info.param));
}

const auto kNarrow = testing::Values("bf16", "f16");
const auto kTf32 = testing::Values("tf32");

INSTANTIATE_TEST_SUITE_P(Few, DeviceNarrowTest, testing::Combine(testing::ValuesIn(kFew), kNarrow), nameOf);
INSTANTIATE_TEST_SUITE_P(Others, DeviceNarrowTest,
                         testing::Combine(testing::ValuesIn(othersThan(kFew)), kNarrow), nameOf);
INSTANTIATE_TEST_SUITE_P(Few, DeviceTf32Test, testing::Combine(testing::ValuesIn(kFewTf32), kTf32), nameOf);
INSTANTIATE_TEST_SUITE_P(Others, DeviceTf32Test,
                         testing::Combine(testing::ValuesIn(othersThan(kFewTf32)), kTf32), nameOf);

} // namespace
