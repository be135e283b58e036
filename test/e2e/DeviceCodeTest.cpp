// The code that artifacts have for GPUs: what no kernel may contain, and what the vendors' tools say of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <regex>
#include <set>

#include "compiler/artifact/ArtifactReader.h"
#include "ortc/device.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

/// An image of a code section, with its kernels.
struct Image {
  std::string target, bytes;
  std::vector<std::string> kernels;
  std::vector<ortc_device_kernel> rows;
};

template <typename Row> Row rowAt(const artifact::Bytes &bytes, uint64_t at) {
  Row row{};
  EXPECT_LE(at + sizeof row, bytes.size());
  std::memcpy(&row, bytes.data() + at, sizeof row);
  return row;
}

std::vector<Image> imagesOf(const std::string &file) {
  std::string text = readFile(file);
  auto read = artifact::readArtifact(artifact::Bytes(text.begin(), text.end()));
  EXPECT_TRUE(read) << read.getStatus().getMessage();
  std::vector<Image> images;
  for (const artifact::Code &code : read ? read->artifact.codes : std::vector<artifact::Code>()) {
    auto head = rowAt<ortc_blob>(code.bytes, 0);
    auto device =
        rowAt<ortc_device_code>(code.bytes, (sizeof head + head.count * head.entry_bytes + 7) / 8 * 8);
    EXPECT_EQ(device.image_count, 1u);
    auto image = rowAt<ortc_device_image>(code.bytes, device.images);
    Image result{
        code.name,
        std::string(code.bytes.begin() + image.offset, code.bytes.begin() + image.offset + image.bytes),
        {},
        {}};
    for (uint32_t i = 0; i < device.kernel_count; ++i) {
      result.rows.push_back(rowAt<ortc_device_kernel>(code.bytes, device.kernels + i * device.kernel_bytes));
      result.kernels.push_back(reinterpret_cast<const char *>(code.bytes.data() + result.rows.back().name));
    }
    images.push_back(std::move(result));
  }
  return images;
}

/// What a command prints, and its exit status.
std::pair<int, std::string> shell(const std::string &command) {
  std::string text;
  FILE *pipe = popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  while (size_t count = pipe ? fread(buffer, 1, sizeof buffer, pipe) : 0)
    text.append(buffer, count);
  return {pipe ? pclose(pipe) : -1, text};
}

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

/// No library of the device is called, nothing is approximate, no order is that of a schedule.
TEST_F(DeviceCodeTest, PtxHasNoForeignOrApproximateCode) {
  for (const std::string &name : listEntries())
    for (const Image &image : compile(name, {"sm_80"})) {
      SCOPED_TRACE(name);
      for (const char *word : {".extern", ".approx", "\tatom.", "\tred.", ".local", "fma.rn.bf16", "tf32"})
        EXPECT_EQ(image.bytes.find(word), std::string::npos) << word;
      std::set<std::string> entries;
      std::regex entry("\\.entry (\\w+)\\(");
      for (std::sregex_iterator at(image.bytes.begin(), image.bytes.end(), entry), end; at != end; ++at)
        entries.insert((*at)[1]);
      EXPECT_EQ(entries, std::set<std::string>(image.kernels.begin(), image.kernels.end()));
    }
}

std::string findTool(const std::string &name, const std::vector<std::string> &places) {
  for (const std::string &place : places)
    if (FILE *file = fopen((place + "/" + name).c_str(), "r"))
      return fclose(file), place + "/" + name;
  return shell("command -v " + name).first == 0 ? name : "";
}

/// NVIDIA's assembler takes every kernel, without spilling: for one processor, or for all with ORTC_ALL_TARGETS=1.
TEST_F(DeviceCodeTest, PtxasTakesEveryKernel) {
  std::string ptxas = findTool("ptxas", {"/usr/local/cuda/bin"});
  if (ptxas.empty())
    GTEST_SKIP() << "there is no ptxas: it comes with the CUDA toolkit";
  std::vector<std::string> targets{"sm_80"};
  if (getenv("ORTC_ALL_TARGETS"))
    targets = {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};
  for (const std::string &name : listEntries())
    for (const Image &image : compile(name, targets)) {
      SCOPED_TRACE(name + " for " + image.target);
      auto [status, text] = shell(ptxas + " -v -arch=" + image.target + " -o /dev/null " + write(image));
      EXPECT_EQ(status, 0) << text;
      std::regex frames("(\\d+) bytes stack frame, (\\d+) bytes spill stores, (\\d+) bytes spill loads");
      size_t kernels = 0;
      for (std::sregex_iterator at(text.begin(), text.end(), frames), end; at != end; ++at, ++kernels)
        EXPECT_TRUE((*at)[1] == "0" && (*at)[2] == "0" && (*at)[3] == "0") << (*at)[0] << "\n" << text;
      EXPECT_GE(kernels, image.kernels.size());
    }
}

/// What the loader of AMD's driver reads of every kernel: wavefront, arguments, block size, no spills. Of
/// two models, or
/// of all with ORTC_ALL_TARGETS=1.
TEST_F(DeviceCodeTest, AmdDescriptorsAgreeWithTheLaunches) {
  std::string readelf = findTool("llvm-readelf-22", {"/usr/lib/llvm-22/bin"});
  if (readelf.empty())
    GTEST_SKIP() << "there is no llvm-readelf-22: it comes with llvm-22";
  const std::map<std::string, std::string> wavefronts{{"gfx90a", "64"}, {"gfx942", "64"}, {"gfx1100", "32"}};
  std::vector<std::string> entries{"mlp-digits", "lenet"};
  if (getenv("ORTC_ALL_TARGETS"))
    entries = listEntries();
  for (const std::string &name : entries)
    for (const Image &image : compile(name, {"gfx90a", "gfx942", "gfx1100"})) {
      SCOPED_TRACE(name + " for " + image.target);
      auto [status, text] = shell(readelf + " --notes --symbols " + write(image));
      ASSERT_EQ(status, 0) << text;
      EXPECT_FALSE(std::regex_search(text, std::regex(" UND [^\\s]"))) << "an undefined symbol";
      for (size_t i = 0; i < image.kernels.size(); ++i) {
        size_t at = text.find(".symbol:         " + image.kernels[i] + ".kd\n");
        ASSERT_NE(at, std::string::npos) << image.kernels[i];
        size_t begin = text.rfind("- .agpr_count", at), other = text.rfind("- .args:", at);
        if (begin == std::string::npos || (other != std::string::npos && other > begin))
          begin = other;
        std::string block = text.substr(begin, text.find(".wavefront_size:", at) + 24 - begin);
        auto field = [&](const std::string &key) {
          size_t found = block.find(key);
          return found == std::string::npos
                     ? ""
                     : block.substr(found + key.size(), block.find('\n', found) - found - key.size());
        };
        auto number = [&](const std::string &key) {
          std::string value = field(key);
          return std::atoi(value.substr(std::min(value.size(), value.find_first_not_of(' '))).c_str());
        };
        EXPECT_EQ(number(".kernarg_segment_size:"), static_cast<int>(8 * image.rows[i].arguments)) << block;
        EXPECT_EQ(number(".max_flat_workgroup_size:"), static_cast<int>(image.rows[i].threads)) << block;
        EXPECT_EQ(number(".vgpr_spill_count:"), 0) << block;
        EXPECT_EQ(number(".sgpr_spill_count:"), 0) << block;
        EXPECT_EQ(number(".private_segment_fixed_size:"), 0) << block;
        EXPECT_EQ(std::to_string(number(".wavefront_size:")), wavefronts.at(image.target)) << block;
      }
    }
}

} // namespace
