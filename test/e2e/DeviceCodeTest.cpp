// The code that artifacts have for GPUs: what no kernel may contain, and what the vendors' tools say of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <regex>
#include <set>

#include "test/e2e/DeviceCode.h"

using namespace ortc;
using namespace ortc::test;

namespace {

class PtxCodeTest : public DeviceCodeTest, public testing::WithParamInterface<std::string> {};

/// No library of the device is called, nothing is approximate, no order is that of a schedule.
TEST_P(PtxCodeTest, HasNoForeignOrApproximateCode) {
  for (const Image &image : compileEntry(GetParam(), {"sm_80"})) {
    for (const char *word :
         {".extern .func", ".approx", "\tatom.", "\tred.", ".local", "fma.rn.bf16", "tf32"})
      EXPECT_EQ(image.bytes.find(word), std::string::npos) << word;
    std::set<std::string> entries;
    std::regex entry("\\.entry (\\w+)\\(");
    for (std::sregex_iterator at(image.bytes.begin(), image.bytes.end(), entry), end; at != end; ++at)
      entries.insert((*at)[1]);
    EXPECT_EQ(entries, std::set<std::string>(image.kernels.begin(), image.kernels.end()));
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, PtxCodeTest, testing::ValuesIn(listEntries()),
                         [](const auto &info) { return caseName(info.param); });

/// Commands that only store take code for any GPU.
TEST_F(DeviceCodeTest, AmdArtifactsAreExportedAsOthersAre) {
  compileEntry("mlp-digits", {"sm_80"});
  mustRun({"export", folder / "mlp-digits", "-o", folder / "nvidia.onnx"});
  compileEntry("mlp-digits", {"gfx90a"});
  mustRun({"export", folder / "mlp-digits", "-o", folder / "amd.onnx"});
  EXPECT_EQ(readFile(folder / "nvidia.onnx"), readFile(folder / "amd.onnx"));
}

/// The loader takes the last that a machine can run, whatever the order of the flags.
TEST_F(DeviceCodeTest, PtxOfTheNewestProcessorComesLast) {
  std::vector<std::string> found;
  for (const Image &image : compileEntry("mlp-digits", {"sm_90", "sm_80"}))
    found.push_back(image.target);
  EXPECT_EQ(found, (std::vector<std::string>{"sm_80", "sm_90"}));
}

} // namespace
