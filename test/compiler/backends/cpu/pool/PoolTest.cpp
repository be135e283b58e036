// Pooling and its gradients against the evaluator, on all targets, in f32 and f64.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/EvaluatorFixture.h"

#include "compiler/backends/cpu/pool/PoolKernel.h"
#include "compiler/backends/emit/PoolElement.h"

using namespace mlir;
using namespace ortc::cpu;
using namespace ortc::emit;
using namespace ortc::cpu::test;

namespace {

struct Pool {
  int64_t batch;
  Sizes input; ///< spatial
  int64_t channels;
  Sizes window;
  Sizes strides = {}, low = {}, high = {}, overhang = {},
        dilations = {}; ///< empty: as window, 0, as low, 0, 1
};

std::string tensor(int64_t batch, const Sizes &spatial, int64_t channels, const std::string &element) {
  std::string text = "tensor<" + std::to_string(batch) + "x";
  for (int64_t size : spatial)
    text += std::to_string(size) + "x";
  return text + std::to_string(channels) + "x" + element + ">";
}

FailureOr<KernelInfo> generate(ModuleOp module, func::FuncOp function, ArrayRef<KernelBuffer>,
                               const Target &target, Numerics) {
  Operation &op = function.getBody().front().front();
  EXPECT_TRUE(ortc::emit::isPool(&op));
  return generatePoolKernel(module, "kernel", &op, target);
}

/// Types and attributes of a pool as text.
struct Text {
  Text(Pool p, const std::string &element) {
    size_t rank = p.input.size();
    auto fill = [&](Sizes &sizes, const Sizes &values) {
      if (sizes.empty())
        sizes = values;
    };
    fill(p.strides, p.window);
    fill(p.low, Sizes(rank, 0));
    fill(p.high, p.low);
    fill(p.overhang, Sizes(rank, 0));
    fill(p.dilations, Sizes(rank, 1));
    Sizes output;
    for (size_t d = 0; d < rank; ++d)
      output.push_back(
          (p.input[d] + p.low[d] + p.high[d] + p.overhang[d] - p.dilations[d] * (p.window[d] - 1) - 1) /
              p.strides[d] +
          1);
    x = tensor(p.batch, p.input, p.channels, element);
    y = tensor(p.batch, output, p.channels, element);
    int64_t places = 1;
    for (int64_t size : p.window)
      places *= size;
    i = tensor(p.batch, output, p.channels, places > 128 ? "i32" : "i8");
    attributes = " window = " + list(p.window) + " strides = " + list(p.strides) +
                 " padding = " + list(p.low) + " to " + list(p.high) + " overhang = " + list(p.overhang) +
                 " dilations = " + list(p.dilations);
  }
  std::string x, y, i, attributes;
};

std::string maxPool(const Pool &pool, const std::string &element) {
  Text t(pool, element);
  return "func.func @k(%x: " + t.x + ") -> (" + t.y + ", " + t.i + ") {\n  %y, %i = nn.max_pool %x" +
         t.attributes + " : " + t.x + " -> " + t.y + ", " + t.i + "\n  return %y, %i : " + t.y + ", " + t.i +
         "\n}\n";
}

void checkMax(const Pool &pool) {
  for (const char *element : {"f32", "f64"}) {
    Coverage coverage = element[1] == '3' ? Coverage::Targets : Coverage::Widest;
    Text t(pool, element);
    compareWithEvaluator(maxPool(pool, element), generate, element[1] == '3' ? 1e-7 : 0, coverage);
    std::string inputs = "func.func @inputs(%x: " + t.x + ", %dy: " + t.y + ") -> (" + t.y + ", " + t.i +
                         ") {\n  %y, %i = nn.max_pool %x" + t.attributes + " : " + t.x + " -> " + t.y + ", " +
                         t.i + "\n  return %dy, %i : " + t.y + ", " + t.i + "\n}\n";
    std::string gradient = "func.func @k(%dy: " + t.y + ", %i: " + t.i + ") -> " + t.x +
                           " {\n  %dx = nn.max_pool_grad %dy, %i" + t.attributes + " : " + t.y + ", " + t.i +
                           " -> " + t.x + "\n  return %dx : " + t.x + "\n}\n";
    compareWithEvaluator(inputs + gradient, generate, element[1] == '3' ? 2e-6 : 1e-14, coverage);
  }
}

void checkAverage(const Pool &pool) {
  for (const char *element : {"f32", "f64"})
    for (const char *counted : {"", " count_include_pad"}) {
      Coverage coverage = element[1] == '3' ? Coverage::Targets : Coverage::Widest;
      Text t(pool, element);
      std::string forward = "func.func @k(%x: " + t.x + ") -> " + t.y + " {\n  %y = nn.avg_pool %x" +
                            t.attributes + counted + " : " + t.x + " -> " + t.y + "\n  return %y : " + t.y +
                            "\n}\n";
      compareWithEvaluator(forward, generate, element[1] == '3' ? 1e-6 : 1e-15, coverage);
      std::string gradient = "func.func @k(%dy: " + t.y + ") -> " + t.x + " {\n  %dx = nn.avg_pool_grad %dy" +
                             t.attributes + counted + " : " + t.y + " -> " + t.x + "\n  return %dx : " + t.x +
                             "\n}\n";
      compareWithEvaluator(gradient, generate, element[1] == '3' ? 2e-6 : 2e-15, coverage);
    }
}

const Pool kPools[] = {
    {2, {8, 8}, 16, {2, 2}},
    {0, {8, 8}, 16, {2, 2}},
    {2, {9, 11}, 7, {3, 3}, {2, 2}, {1, 1}},
    {1, {7, 7}, 33, {3, 3}, {1, 1}, {1, 1}},
    // Rounded up: the last window hangs over the padding.
    {2, {8, 7}, 5, {3, 3}, {2, 2}, {0, 0}, {0, 0}, {1, 0}},
    {1, {10, 10}, 3, {4, 3}, {4, 3}, {1, 0}, {1, 0}, {3, 2}},
    // Unequal padding, dilation.
    {1, {9, 8}, 18, {2, 3}, {2, 1}, {0, 2}, {1, 0}},
    {1, {12, 13}, 4, {3, 2}, {2, 1}, {1, 1}, {2, 0}, {}, {2, 3}},
    {1, {15}, 6, {4}, {3}, {2}, {1}},
    {2, {5, 6, 7}, 5, {2, 3, 2}, {2, 1, 2}, {1, 1, 0}, {0, 1, 1}},
    // The whole image; windows apart from each other.
    {3, {5, 4}, 20, {5, 4}},
    {1, {11, 11}, 2, {2, 2}, {3, 4}},
    // Windows with more places than a byte has numbers for.
    {2, {12, 13}, 9, {12, 11}, {1, 1}},
    {1, {17, 9}, 5, {16, 8}, {1, 1}},
    {1, {300}, 4, {129}, {85}},
    // More than one chunk.
    {2, {60, 50}, 40, {3, 3}, {1, 1}, {1, 1}},
};

TEST(PoolTest, LargestElementsAndTheirPlaces) {
  for (const Pool &pool : kPools) {
    checkMax(pool);
    if (HasFailure())
      return;
  }
}

TEST(PoolTest, AveragesWithAndWithoutPadding) {
  for (const Pool &pool : kPools) {
    checkAverage(pool);
    if (HasFailure())
      return;
  }
}

/// The first of equals, infinities and NaN: the evaluator's places and values, exactly.
TEST(PoolTest, TiesAndSpecialValues) {
  std::string text = R"(
  func.func @inputs(%x: tensor<2x6x6x5xf32>) -> tensor<2x6x6x5xf32> {
    %zero = arith.constant dense<0.0> : tensor<2x6x6x5xf32>
    %low = arith.constant dense<-0.6> : tensor<2x6x6x5xf32>
    %high = arith.constant dense<0.8> : tensor<2x6x6x5xf32>
    %infinity = arith.constant dense<0xFF800000> : tensor<2x6x6x5xf32>
    %nan = arith.constant dense<0x7FC00000> : tensor<2x6x6x5xf32>
    %a = arith.cmpf olt, %x, %low : tensor<2x6x6x5xf32>
    %b = arith.cmpf ogt, %x, %high : tensor<2x6x6x5xf32>
    %y = arith.select %a, %infinity, %zero : tensor<2x6x6x5xi1>, tensor<2x6x6x5xf32>
    %z = arith.select %b, %nan, %y : tensor<2x6x6x5xi1>, tensor<2x6x6x5xf32>
    return %z : tensor<2x6x6x5xf32>
  }
)" + maxPool({2, {6, 6}, 5, {2, 2}, {1, 1}, {1, 1}, {0, 1}}, "f32");
  compareWithEvaluator(text, generate, 0);
}

} // namespace
