// The code that artifacts have for AMD's GPUs: what the loader of the driver reads of every kernel, and which kernels
// multiply on matrix cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "test/e2e/AttentionModel.h"
#include "test/e2e/DeviceCode.h"

using namespace ortc;
using namespace ortc::test;

namespace {

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

/// The kernels of a PTX text that have an instruction.
std::set<std::string> findInPtx(const std::string &text, const std::string &instruction) {
  const std::string begin = ".entry ";
  std::set<std::string> found;
  for (size_t at = text.find(begin), next; at != std::string::npos; at = next) {
    next = text.find(begin, at + 1);
    std::string body = text.substr(at + begin.size(), next - at - begin.size());
    if (body.find(instruction) != std::string::npos)
      found.insert(body.substr(0, body.find('(')));
  }
  return found;
}

/// The kernels that have instructions for products of matrices, in what llvm-objdump prints.
std::set<std::string> findMatrixKernels(const std::string &code) {
  std::set<std::string> found;
  std::istringstream lines(code);
  std::string kernel;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(">:"))
      kernel = line.substr(line.find('<') + 1, line.size() - line.find('<') - 3);
    if (line.find("v_mfma_f32") != std::string::npos || line.find("v_wmma_f32") != std::string::npos)
      found.insert(kernel);
  }
  return found;
}

const std::vector<std::string> kProcessors{"gfx90a", "gfx942", "gfx1100"};

class AmdCodeTest : public DeviceCodeTest {
protected:
  /// Makes a test skipped where a tool is missing.
  void SetUp() override {
    for (const char *tool : {"llvm-readelf-22", "llvm-objdump-22"})
      if (llvmTool(tool).empty())
        GTEST_SKIP() << "there is no " << tool << ": it comes with llvm-22";
  }
  static std::string llvmTool(const std::string &name) { return findTool(name, {"/usr/lib/llvm-22/bin"}); }

  /// Checks the images of an artifact for AMD's processors and for sm_80, whose products on tensor cores are those that
  /// have to be on matrix cores; returns them. `mostScalars`: scalar registers of a kernel that lie in the lanes of a
  /// vector register at most, which takes instructions and no memory.
  std::set<std::string> check(const std::vector<Image> &images, int mostScalars = 0);

private:
  void checkImage(const Image &image, int mostScalars);
  void checkKernels(const Image &image, const std::string &notes, int mostScalars);
  void checkSymbols(const Image &image, const std::string &table);
};

/// `notes`: what llvm-readelf prints of the notes.
void AmdCodeTest::checkKernels(const Image &image, const std::string &notes, int mostScalars) {
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
    EXPECT_LE(numberOf(kernel, "sgpr_spill_count"), mostScalars);
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

void AmdCodeTest::checkImage(const Image &image, int mostScalars) {
  std::string file = write(image);
  auto [status, text] = runShell(llvmTool("llvm-readelf-22") + " --file-header --notes " + file);
  ASSERT_EQ(status, 0) << text;
  // Of version 5, which every HIP 6 knows; for the processor in any mode.
  EXPECT_NE(text.find("ABI Version:                       3\n"), std::string::npos) << text.substr(0, 2000);
  EXPECT_NE(text.find("amdhsa.target:   amdgcn-amd-amdhsa--" + image.target + "\n"), std::string::npos);
  checkKernels(image, text, mostScalars);
  checkSymbols(image, runShell(llvmTool("llvm-readelf-22") + " --symbols " + file).second);
}

std::set<std::string> AmdCodeTest::check(const std::vector<Image> &images, int mostScalars) {
  std::set<std::string> products;
  for (const Image &image : images)
    if (image.target == "sm_80")
      products = findInPtx(image.bytes, "mma.sync");
  for (const Image &image : images) {
    SCOPED_TRACE(image.target);
    if (image.target == "sm_80")
      continue;
    checkImage(image, mostScalars);
    std::string code = runShell(llvmTool("llvm-objdump-22") + " -d " + write(image)).second;
    EXPECT_EQ(findMatrixKernels(code), products);
  }
  return products;
}

/// Of one entry of the zoo: for one processor, which is another for the next entry, or for all with ORTC_ALL_TARGETS=1.
class AmdZooTest : public AmdCodeTest, public testing::WithParamInterface<std::string> {
protected:
  std::vector<std::string> targets() const {
    std::vector<std::string> entries = listEntries();
    if (getenv("ORTC_ALL_TARGETS"))
      return kProcessors;
    auto place = size_t(std::find(entries.begin(), entries.end(), GetParam()) - entries.begin());
    return {kProcessors[place % kProcessors.size()]};
  }
};

TEST_P(AmdZooTest, KernelsAreAsTheLaunchesAndTheirProductsOnMatrixCores) {
  std::vector<std::string> wanted = targets();
  wanted.push_back("sm_80");
  for (const char *precision : {"f32", "bf16"}) {
    SCOPED_TRACE(precision);
    std::vector<Image> images = compileEntry(GetParam(), wanted, {"--precision", precision});
    EXPECT_EQ(images.size(), wanted.size());
    if (check(images).empty())
      break; // other numbers have no products on matrix cores either
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, AmdZooTest, testing::ValuesIn(listEntries()),
                         [](const auto &info) { return caseName(info.param); });

/// Products of all tiles, whole ones and not, in runs of neighbours and of one number.
TEST_F(AmdCodeTest, ProductsOfAllSizesAreOnMatrixCores) {
  struct Sizes {
    int64_t rows, columns, depth;
  };
  const Sizes sizes[] = {{4096, 4096, 4096}, {64, 72, 64},    {4096, 64, 512},
                         {64, 4096, 512},    {301, 4097, 99}, {64, 64, 16384}};
  proto::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto *graph = model.mutable_graph();
  graph->set_name("g");
  for (const auto &[rows, columns, depth] : sizes)
    for (const char *turn : {"none", "a", "b"}) { // as they are, across the depth, along the depth
      std::string name = std::to_string(graph->node_size());
      bool isFirst = *turn == 'a', isSecond = *turn == 'b';
      describe(graph->add_input(), "a" + name, proto::TensorProto::FLOAT,
               isFirst ? std::vector{depth, rows} : std::vector{rows, depth});
      describe(graph->add_input(), "b" + name, proto::TensorProto::FLOAT,
               isSecond ? std::vector{columns, depth} : std::vector{depth, columns});
      describe(graph->add_output(), "c" + name, proto::TensorProto::FLOAT, {rows, columns});
      auto *node = graph->add_node();
      node->set_op_type("Gemm");
      node->add_input("a" + name), node->add_input("b" + name), node->add_output("c" + name);
      for (auto [attribute, isTurned] : {std::pair("transA", isFirst), std::pair("transB", isSecond)}) {
        auto *flag = node->add_attribute();
        flag->set_name(attribute), flag->set_type(proto::AttributeProto::INT), flag->set_i(isTurned);
      }
    }
  std::string file = folder.write("model.onnx", model.SerializeAsString());
  std::vector<std::string> targets = kProcessors;
  targets.push_back("sm_80");
  for (const char *precision : {"f32", "bf16", "f16"}) {
    SCOPED_TRACE(precision);
    std::set<std::string> products = check(
        compile({"train", file, "--loss", "none", "--precision", precision}, folder / precision, targets));
    EXPECT_GE(products.size(), size_t(graph->node_size()));
  }
}

/// Attention and its gradients, with heads of the most elements that kernels take; two cases, or all with
/// ORTC_ALL_TARGETS=1.
TEST_F(AmdCodeTest, AttentionIsOnMatrixCores) {
  struct Case {
    const char *precision;
    AttentionSizes sizes;
  };
  const Case cases[] = {
      {"f32", {1, 2, 2, 192, 192, 64, 64, true, false}},
      {"f16", {1, 4, 1, 70, 66, 64, 64, false, true}},
      {"f32", {2, 1, 1, 100, 90, 40, 24, false, true}},
      {"f32", {1, 4, 2, 96, 128, 32, 32, true, true}},
      {"f32", {1, 2, 2, 100, 200, 64, 64, false, false}},
      {"bf16", {1, 1, 1, 128, 128, 128, 96, true, false}},
      {"bf16", {1, 4, 1, 130, 70, 128, 128, false, true}},
      {"bf16", {4, 12, 12, 512, 512, 64, 64, true, false}},
  };
  std::vector<std::string> targets = kProcessors;
  targets.push_back("sm_80");
  for (size_t i = 0; i < (getenv("ORTC_ALL_TARGETS") ? std::size(cases) : 2); ++i) {
    const auto &[precision, s] = cases[i];
    std::string number = std::to_string(i);
    SCOPED_TRACE(number);
    AttentionNumbers numbers{std::vector<float>(s.batch * s.heads * s.rows * s.depth),
                             std::vector<float>(s.batch * s.keyHeads * s.keys * s.depth),
                             std::vector<float>(s.batch * s.keyHeads * s.keys * s.columns)};
    std::string file = folder.write(number + ".onnx", makeAttentionModel(s, numbers));
    std::vector<std::string> arguments{"train", file, "--loss", "mse", "--precision", precision};
    std::vector<std::string> shown = arguments;
    shown.insert(shown.end(), {"--target", "gfx1100", "--quiet", "--compile-to", "fuse"});
    EXPECT_GE(count(mustRun(shown).text, "plan.kernel  attention"), 3u)
        << "forward, and the gradients of queries and of keys and values";
    check(compile(arguments, folder / number, targets), /*mostScalars=*/24);
  }
}

} // namespace
