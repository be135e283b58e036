// Products of bf16 and f16 operands that are extended to f32, against the evaluator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/EvaluatorFixture.h"

#include "compiler/backends/cpu/contraction/FusedContraction.h"

using namespace mlir;
using namespace ortc;
using namespace ortc::cpu;
using namespace ortc::emit;
using namespace ortc::cpu::test;

namespace {

FailureOr<KernelInfo> generate(ModuleOp module, func::FuncOp function, ArrayRef<KernelBuffer> buffers,
                               const Target &target, Numerics numerics) {
  return generateFusedContraction(module, function, buffers, target, numerics);
}

std::string shaped(const Sizes &sizes, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : sizes)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

/// m x k times k x n of operands that lie transposed or not, stored as `a` and `b` (f32, bf16 or f16).
std::string productOf(int64_t m, int64_t n, int64_t k, bool isATransposed, bool isBTransposed,
                      const std::string &a, const std::string &b) {
  Sizes x = isATransposed ? Sizes{k, m} : Sizes{m, k}, w = isBTransposed ? Sizes{n, k} : Sizes{k, n};
  std::string text =
      "func.func @k(%a: " + shaped(x, a) + ", %b: " + shaped(w, b) + ") -> " + shaped({m, n}, "f32") + " {\n";
  auto extended = [&](const std::string &name, const Sizes &sizes, const std::string &type) {
    if (type == "f32")
      return "%" + name;
    text += "  %" + name + "32 = arith.extf %" + name + " : " + shaped(sizes, type) + " to " +
            shaped(sizes, "f32") + "\n";
    return "%" + name + "32";
  };
  std::string lhs = extended("a", x, a), rhs = extended("b", w, b);
  return text + "  %d = nn.dot " + lhs + ", " + rhs + " batch = [] x [] contract = [" +
         (isATransposed ? "0" : "1") + "] x [" + (isBTransposed ? "1" : "0") + "] : " + shaped(x, "f32") +
         ", " + shaped(w, "f32") + " -> " + shaped({m, n}, "f32") +
         "\n  return %d : " + shaped({m, n}, "f32") + "\n}";
}

struct Size {
  int64_t m, n, k;
};

class NarrowContractionTest : public testing::TestWithParam<Size> {};

/// Rows and panels are extended once, or where they are read; both ways round, with remainders of everything.
TEST_P(NarrowContractionTest, AgreesWithTheEvaluator) {
  auto [m, n, k] = GetParam();
  for (bool isATransposed : {false, true})
    for (bool isBTransposed : {false, true}) {
      double tolerance = 1.2e-7 * (4 + double(k));
      compareWithEvaluator(productOf(m, n, k, isATransposed, isBTransposed, "bf16", "bf16"), generate,
                           tolerance, Coverage::Targets);
      bool isFirst = isATransposed == isBTransposed;
      compareWithEvaluator(
          productOf(m, n, k, isATransposed, isBTransposed, isFirst ? "f16" : "f32", isFirst ? "f32" : "f16"),
          generate, tolerance, Coverage::Widest);
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, NarrowContractionTest,
                         testing::Values(Size{33, 77, 129}, Size{100, 64, 32}, Size{7, 40, 50},
                                         Size{3, 200, 64}, Size{64, 2, 100}, Size{70, 50, 1100},
                                         Size{130, 258, 33}));

/// Narrow results whose last vector has one lane: LLVM 22.1 would store 32 bits of it, over the next row.
TEST(NarrowContractionTest, NothingIsStoredBesideALastLane) {
  for (const char *type : {"bf16", "f16"})
    for (int64_t n : {17, 33, 49, 65, 81, 97, 129, 193}) {
      std::string wide = shaped({24, n}, "f32"), narrow = shaped({24, n}, type);
      compareWithEvaluator(
          "func.func @k(%a: tensor<24x3xf32>, %b: " + shaped({3, n}, "f32") + ") -> " + narrow +
              " {\n  %d = nn.dot %a, %b batch = [] x [] contract = [1] x [0] : tensor<24x3xf32>, " +
              shaped({3, n}, "f32") + " -> " + wide + "\n  %r = arith.truncf %d : " + wide + " to " + narrow +
              "\n  return %r : " + narrow + "\n}",
          generate, 0.04, Coverage::All); // a unit in the last place of numbers up to 8
    }
}

/// Heads that lie apart, and a rounded result behind an epilogue that reads a narrow tensor.
TEST(NarrowContractionTest, HeadsAndEpilogue) {
  compareWithEvaluator(
      R"(func.func @k(%q: tensor<2x20x3x32xbf16>, %k: tensor<2x20x3x32xbf16>, %m: tensor<20x20xbf16>) -> tensor<2x3x20x20xf32> {
    %x = arith.extf %q : tensor<2x20x3x32xbf16> to tensor<2x20x3x32xf32>
    %w = arith.extf %k : tensor<2x20x3x32xbf16> to tensor<2x20x3x32xf32>
    %d = nn.dot %x, %w batch = [0, 2] x [0, 2] contract = [3] x [3] : tensor<2x20x3x32xf32>, tensor<2x20x3x32xf32> -> tensor<2x3x20x20xf32>
    %e = arith.extf %m : tensor<20x20xbf16> to tensor<20x20xf32>
    %b = nn.broadcast %e dims = [2, 3] : tensor<20x20xf32> -> tensor<2x3x20x20xf32>
    %s = arith.addf %d, %b : tensor<2x3x20x20xf32>
    %r = arith.truncf %s : tensor<2x3x20x20xf32> to tensor<2x3x20x20xbf16>
    %f = arith.extf %r : tensor<2x3x20x20xbf16> to tensor<2x3x20x20xf32>
    return %f : tensor<2x3x20x20xf32>
  })",
      generate, 0.07, Coverage::All); // a unit in the last place of numbers up to 16
}

} // namespace
