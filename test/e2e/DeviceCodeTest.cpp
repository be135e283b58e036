// The code that artifacts have for GPUs: what no kernel may contain, and what the vendors' tools say of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <regex>
#include <set>
#include <sstream>

#include "test/e2e/DeviceImages.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

class DeviceCodeTest : public testing::Test {
protected:
  std::vector<Image> compile(const std::string &name, const std::vector<std::string> &targets) {
    ZooEntry entry(name);
    std::string out = folder / name;
    std::vector<std::string> arguments{"train",       entry.model(), "-o",
                                       out,           "--optimizer", entry.optimizers.at("adamw"),
                                       "--gradients", "--quiet"};
    arguments.insert(arguments.end(), entry.flags.begin(), entry.flags.end());
    for (const std::string &target : targets)
      arguments.insert(arguments.end(), {"--target", target});
    mustRun(arguments);
    return imagesOf(out + "/model.ortc");
  }
  std::string write(const Image &image) {
    std::string path = folder / ("image-" + image.target);
    bool isText = image.bytes.starts_with("//"); // with a NUL behind it
    std::ofstream(path, std::ios::binary) << image.bytes.substr(0, image.bytes.size() - isText);
    return path;
  }

  TemporaryFolder folder;
};

class PtxCodeTest : public DeviceCodeTest, public testing::WithParamInterface<std::string> {};

/// No library of the device is called, nothing is approximate, no order is that of a schedule.
TEST_P(PtxCodeTest, HasNoForeignOrApproximateCode) {
  for (const Image &image : compile(GetParam(), {"sm_80"})) {
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

/// Of one entry of the zoo, what the loader of AMD's driver reads of every kernel: for one processor, which is another
/// for the next entry, or for all with ORTC_ALL_TARGETS=1.
class AmdCodeTest : public DeviceCodeTest, public testing::WithParamInterface<std::string> {
protected:
  std::vector<std::string> targets() const {
    std::vector<std::string> all{"gfx90a", "gfx942", "gfx1100"}, entries = listEntries();
    if (getenv("ORTC_ALL_TARGETS"))
      return all;
    auto place = size_t(std::find(entries.begin(), entries.end(), GetParam()) - entries.begin());
    return {all[place % all.size()]};
  }
  void checkKernels(const Image &image, const std::string &notes);
  void checkSymbols(const Image &image, const std::string &table);
};

/// The number behind a key in the description of a kernel; -1 without.
int numberOf(const std::string &kernel, const std::string &key) {
  size_t found = kernel.find("." + key + ":");
  return found == std::string::npos ? -1 : std::atoi(kernel.c_str() + kernel.find(':', found) + 1);
}

size_t count(const std::string &text, const std::string &word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

/// The descriptions of kernels in what llvm-readelf prints of notes, by name.
std::map<std::string, std::string> describeKernels(const std::string &notes) {
  const std::string begin = "\n  - ", symbol = ".symbol: ";
  std::map<std::string, std::string> kernels;
  for (size_t at = notes.find(begin), next; at != std::string::npos; at = next) {
    next = notes.find(begin, at + 1);
    std::string text = notes.substr(at, next - at);
    size_t name = text.find(symbol);
    if (name == std::string::npos)
      continue;
    name = text.find_first_not_of(' ', name + symbol.size());
    kernels[text.substr(name, text.find(".kd\n", name) - name)] = text;
  }
  return kernels;
}

/// `notes`: what llvm-readelf prints of the notes.
void AmdCodeTest::checkKernels(const Image &image, const std::string &notes) {
  std::map<std::string, std::string> kernels = describeKernels(notes);
  EXPECT_EQ(kernels.size(), image.kernels.size());
  for (size_t i = 0; i < image.kernels.size(); ++i) {
    const std::string &kernel = kernels[image.kernels[i]];
    SCOPED_TRACE(image.kernels[i] + "\n" + kernel);
    int arguments = static_cast<int>(image.rows[i].arguments);
    EXPECT_EQ(numberOf(kernel, "kernarg_segment_size"), 8 * arguments);
    EXPECT_EQ(count(kernel, ".value_kind:"), image.rows[i].arguments) << "hidden arguments";
    EXPECT_EQ(count(kernel, " global_buffer\n"), image.rows[i].arguments);
    EXPECT_EQ(numberOf(kernel, "max_flat_workgroup_size"), static_cast<int>(image.rows[i].threads));
    EXPECT_EQ(numberOf(kernel, "wavefront_size"), image.target == "gfx1100" ? 32 : 64);
    EXPECT_EQ(numberOf(kernel, "private_segment_fixed_size"), 0);
    EXPECT_EQ(numberOf(kernel, "vgpr_spill_count"), 0);
    EXPECT_EQ(numberOf(kernel, "sgpr_spill_count"), 0);
    EXPECT_NE(kernel.find(".uses_dynamic_stack: false"), std::string::npos);
    EXPECT_LE(numberOf(kernel, "group_segment_fixed_size") + static_cast<int>(image.rows[i].shared), 65536);
  }
}

/// Every kernel is a function with a descriptor of 64 bytes, and nothing is undefined. `table`: of symbols.
void AmdCodeTest::checkSymbols(const Image &image, const std::string &table) {
  std::set<std::string> functions, descriptors;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, value, size, type, binding, visibility, section, name;
    if (!(words >> number >> value >> size >> type >> binding >> visibility >> section >> name))
      continue;
    EXPECT_NE(section, "UND") << name;
    if (type == "FUNC" && binding == "GLOBAL")
      functions.insert(name);
    if (type == "OBJECT" && binding == "GLOBAL" && size == "64")
      descriptors.insert(name);
  }
  for (const std::string &kernel : image.kernels)
    EXPECT_TRUE(functions.count(kernel) && descriptors.count(kernel + ".kd")) << kernel;
}

TEST_P(AmdCodeTest, DescriptorsAgreeWithTheLaunches) {
  std::string readelf = findTool("llvm-readelf-22", {"/usr/lib/llvm-22/bin"});
  if (readelf.empty())
    GTEST_SKIP() << "there is no llvm-readelf-22: it comes with llvm-22";
  std::vector<Image> images = compile(GetParam(), targets());
  EXPECT_EQ(images.size(), targets().size());
  for (const Image &image : images) {
    SCOPED_TRACE(image.target);
    auto [status, text] = runShell(readelf + " --file-header --notes " + write(image));
    ASSERT_EQ(status, 0) << text;
    // Of version 5, which every HIP 6 knows; for the processor in any mode.
    EXPECT_NE(text.find("ABI Version:                       3\n"), std::string::npos) << text.substr(0, 2000);
    EXPECT_NE(text.find("amdhsa.target:   amdgcn-amd-amdhsa--" + image.target + "\n"), std::string::npos);
    checkKernels(image, text);
    checkSymbols(image, runShell(readelf + " --symbols " + write(image)).second);
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, AmdCodeTest, testing::ValuesIn(listEntries()),
                         [](const auto &info) { return caseName(info.param); });

/// Commands that only store take code for any GPU.
TEST_F(DeviceCodeTest, AmdArtifactsAreExportedAsOthersAre) {
  compile("mlp-digits", {"sm_80"});
  mustRun({"export", folder / "mlp-digits", "-o", folder / "nvidia.onnx"});
  compile("mlp-digits", {"gfx90a"});
  mustRun({"export", folder / "mlp-digits", "-o", folder / "amd.onnx"});
  EXPECT_EQ(readFile(folder / "nvidia.onnx"), readFile(folder / "amd.onnx"));
}

/// The loader takes the last that a machine can run, whatever the order of the flags.
TEST_F(DeviceCodeTest, PtxOfTheNewestProcessorComesLast) {
  std::vector<std::string> found;
  for (const Image &image : compile("mlp-digits", {"sm_90", "sm_80"}))
    found.push_back(image.target);
  EXPECT_EQ(found, (std::vector<std::string>{"sm_80", "sm_90"}));
}

} // namespace
