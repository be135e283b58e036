// Machine code by NVIDIA's assembler, which --ptxas names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <regex>
#include <sys/stat.h>

#include "test/e2e/DeviceImages.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

class CubinTest : public testing::TestWithParam<std::string> {
protected:
  Outcome compile(const std::string &name, std::vector<std::string> extra) {
    ZooEntry entry(name);
    extra.insert(extra.begin(), {"train", entry.model(), "-o", folder / name, "--optimizer",
                                 entry.optimizers.at("adamw"), "--gradients", "--quiet"});
    extra.insert(extra.end(), entry.flags.begin(), entry.flags.end());
    return runTool(extra);
  }

  std::string writeProgram(const std::string &name, const std::string &command) {
    std::string path = folder.write(name, "#!/bin/sh\n" + command + "\n");
    EXPECT_EQ(chmod(path.c_str(), 0700), 0);
    return path;
  }

  TemporaryFolder folder;
  const std::string ptxas = findTool("ptxas", {"/usr/local/cuda/bin"});
};

/// Every kernel of an entry, without spilling and without local memory: for one processor, which is another for the
/// next entry, or for all with ORTC_ALL_TARGETS=1.
TEST_P(CubinTest, PtxasTakesEveryKernel) {
  if (ptxas.empty())
    GTEST_SKIP() << "there is no ptxas: it comes with the CUDA toolkit";
  const std::vector<std::string> all{"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"};
  std::vector<std::string> entries = listEntries(), targets = all;
  if (!std::getenv("ORTC_ALL_TARGETS"))
    targets = {
        all[size_t(std::find(entries.begin(), entries.end(), GetParam()) - entries.begin()) % all.size()]};
  std::vector<std::string> flags;
  for (const std::string &target : targets)
    flags.insert(flags.end(), {"--target", target});
  Outcome outcome = compile(GetParam(), flags);
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  std::vector<Image> images = imagesOf(folder / GetParam() + "/model.ortc");
  ASSERT_EQ(images.size(), targets.size());
  for (const Image &image : images) {
    SCOPED_TRACE(image.target);
    ASSERT_TRUE(image.bytes.starts_with("//"));
    // without its NUL
    std::string file = folder.write("image.ptx", image.bytes.substr(0, image.bytes.size() - 1));
    auto [status, text] = runShell(ptxas + " -v -arch=" + image.target + " -o /dev/null " + file);
    EXPECT_EQ(status, 0) << text;
    std::regex frames("(\\d+) bytes stack frame, (\\d+) bytes spill stores, (\\d+) bytes spill loads");
    size_t kernels = 0;
    for (std::sregex_iterator at(text.begin(), text.end(), frames), end; at != end; ++at, ++kernels)
      EXPECT_TRUE((*at)[1] == "0" && (*at)[2] == "0" && (*at)[3] == "0") << (*at)[0] << "\n" << text;
    EXPECT_GE(kernels, image.kernels.size());
  }
}

TEST_F(CubinTest, MachineCodeStandsBehindThePtxOfEachNvidiaTarget) {
  if (ptxas.empty())
    GTEST_SKIP() << "there is no ptxas: it comes with the CUDA toolkit";
  Outcome outcome = compile(
      "mlp-digits", {"--target", "sm_80", "--target", "x86-64", "--target", "sm_90", "--ptxas", ptxas});
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  std::vector<std::pair<std::string, uint32_t>> found;
  for (const Image &image : imagesOf(folder / "mlp-digits/model.ortc")) {
    found.push_back({image.target, image.kind});
    EXPECT_TRUE(image.bytes.starts_with(image.kind == ORTC_IMAGE_CUBIN ? "\x7f"
                                                                         "ELF"
                                                                       : "//"));
  }
  const std::vector<std::pair<std::string, uint32_t>> wanted{{"sm_80", ORTC_IMAGE_PTX},
                                                             {"sm_80", ORTC_IMAGE_CUBIN},
                                                             {"sm_90", ORTC_IMAGE_PTX},
                                                             {"sm_90", ORTC_IMAGE_CUBIN}};
  EXPECT_EQ(found, wanted);
}

TEST_F(CubinTest, AnAssemblerThatFailsIsNamed) {
  // ptxas -arch=... -o OUTPUT INPUT
  std::string text = writeProgram("text", "echo CUBIN >\"$3\""),
              fifo = writeProgram("fifo", "rm \"$3\"; mkfifo \"$3\"");
  struct {
    std::vector<std::string> flags;
    std::string message;
  } cases[] = {
      {{"--target", "sm_80", "--ptxas", "/bin/false"},
       "code for sm_80: /bin/false fails: exit status 1; take a newer one"},
      {{"--target", "sm_80", "--ptxas", "/bin/true"}, "code for sm_80: /bin/true wrote no code for sm_80"},
      {{"--target", "sm_80", "--ptxas", text}, "/text wrote no code for sm_80"},
      {{"--target", "sm_80", "--ptxas", fifo}, "/fifo wrote something else than a file of code"},
      {{"--target", "sm_80", "--ptxas", "/nowhere/ptxas"}, "--ptxas: '/nowhere/ptxas' is no program"},
      {{"--target", "sm_80", "--ptxas", "no-such-ptxas"}, "--ptxas: 'no-such-ptxas' is no program"},
      {{"--target", "x86-64", "--ptxas", "/bin/true"},
       "--ptxas assembles code for NVIDIA GPUs, and no --target names one"},
  };
  for (const auto &[flags, message] : cases) {
    Outcome outcome = compile("mlp-digits", flags);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.errors.find(message), std::string::npos) << outcome.errors;
    EXPECT_FALSE(std::filesystem::exists(folder / "mlp-digits"));
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, CubinTest, testing::ValuesIn(listEntries()),
                         [](const auto &info) { return caseName(info.param); });

} // namespace
