// Products on AMD's matrix cores, of every number and layout that they have, against the evaluator's in f64.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/fibres/FibreKernel.h"

using namespace ortc;
using namespace ortc::fibres;
using plan::KernelKind;

namespace {

std::string tensor(std::vector<int64_t> sizes, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : sizes)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

/// An operand that is stored as `element` and multiplied as f32: its name in the code that is appended.
std::string widen(const std::string &name, const std::vector<int64_t> &sizes, const std::string &element,
                  std::string &code) {
  if (element == "f32")
    return name;
  code +=
      name + "w = arith.extf " + name + " : " + tensor(sizes, element) + " to " + tensor(sizes, "f32") + "\n";
  return name + "w";
}

/// Of operands below one: a sum of n steps is rounded n times by at most 2^-24 of a number that grows as a random walk;
/// CDNA 3 cuts each of a group of eight at 2^-24 of the largest, and RDNA 3 leaves out 2^-24 of a product of f32.
std::vector<Wanted> wanted(int64_t depth) {
  double rounded = 1.2e-7 * (4 + double(depth));
  return {{"gfx90a", rounded}, {"gfx942", 2 * rounded}, {"gfx1100", 2 * rounded}};
}

struct Operands {
  const char *first, *second; ///< types
};
void PrintTo(const Operands &operands, std::ostream *stream) {
  *stream << operands.first << " " << operands.second;
}

class FibreProductTest : public testing::TestWithParam<Operands> {
protected:
  void checkDot(std::vector<int64_t> a, std::vector<int64_t> b, std::vector<int64_t> c, int64_t depth,
                const std::string &how) {
    std::string code, first = GetParam().first, second = GetParam().second;
    std::string x = widen("%x", a, first, code), w = widen("%w", b, second, code), y = tensor(c, "f32");
    std::string given = "%x: " + tensor(a, first) + ", %w: " + tensor(b, second);
    checkProducts("func.func @k(" + given + ") -> " + y + " {\n" + code + "%d = nn.dot " + x + ", " + w +
                      " " + how + " : " + tensor(a, "f32") + ", " + tensor(b, "f32") + " -> " + y +
                      "\nreturn %d : " + y + "\n}",
                  KernelKind::contraction, wanted(depth));
  }
};

TEST_P(FibreProductTest, RowsAndColumnsAlongTheDepth) {
  checkDot({70, 96}, {100, 96}, {70, 100}, 96, "batch = [] x [] contract = [1] x [1]");
}
TEST_P(FibreProductTest, ColumnsAcrossTheDepth) {
  checkDot({64, 128}, {128, 72}, {64, 72}, 128, "batch = [] x [] contract = [1] x [0]");
}
TEST_P(FibreProductTest, BothAcrossTheDepth) {
  checkDot({80, 136}, {80, 64}, {136, 64}, 80, "batch = [] x [] contract = [0] x [0]");
}
/// No run of neighbours is longer than one element, and the last stage is not whole.
TEST_P(FibreProductTest, OddSizes) {
  checkDot({77, 101}, {101, 67}, {77, 67}, 101, "batch = [] x [] contract = [1] x [0]");
}
TEST_P(FibreProductTest, SeveralProducts) {
  checkDot({2, 66, 70}, {2, 70, 68}, {2, 66, 68}, 70, "batch = [0] x [0] contract = [2] x [1]");
}
TEST_P(FibreProductTest, PartsOfTheDepth) {
  checkDot({64, 2000}, {64, 2000}, {64, 64}, 2000, "batch = [] x [] contract = [1] x [1]");
}

/// A convolution of images of 8 x 8, and its gradients.
TEST_P(FibreProductTest, Convolutions) {
  const int64_t channels = 64, features = 72;
  std::string first = GetParam().first, second = GetParam().second;
  std::vector<int64_t> x{1, 8, 8, channels}, y{1, 8, 8, features}, w{3, 3, channels, features};
  auto program = [&](const std::string &op, const std::vector<int64_t> &a, const std::vector<int64_t> &b,
                     const std::vector<int64_t> &c) {
    std::string code, left = widen("%a", a, first, code), right = widen("%b", b, second, code),
                      r = tensor(c, "f32");
    return "func.func @k(%a: " + tensor(a, first) + ", %b: " + tensor(b, second) + ") -> " + r + " {\n" +
           code + "%r = nn." + op + " " + left + ", " + right +
           " strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : " +
           tensor(a, "f32") + ", " + tensor(b, "f32") + " -> " + r + "\nreturn %r : " + r + "\n}";
  };
  checkProducts(program("conv", x, w, y), KernelKind::conv, wanted(9 * channels));
  checkProducts(program("conv_input_grad", y, w, x), KernelKind::conv, wanted(9 * features));
  checkProducts(program("conv_filter_grad", x, y, w), KernelKind::conv, wanted(64));
}

INSTANTIATE_TEST_SUITE_P(Numbers, FibreProductTest,
                         testing::Values(Operands{"f32", "f32"}, Operands{"bf16", "bf16"},
                                         Operands{"f16", "f16"}, Operands{"f32", "bf16"},
                                         Operands{"f16", "bf16"}));

} // namespace
