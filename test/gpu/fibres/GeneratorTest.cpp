// The generators of GPU kernels with wavefronts of 64 and of 32 lanes, against the evaluator: loops, reductions,
// products, convolutions.
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

TEST(FibreGeneratorTest, Elementwise) {
  for (int64_t n : {1, 31, 64, 1000}) {
    std::string t = tensor({n}, "f32");
    check("func.func @k(%x: " + t + ", %y: " + t + ", %s: tensor<f32>) -> (" + t + ", " + tensor({n}, "i1") +
              ") {\n%b = nn.broadcast %s dims = [] : tensor<f32> -> " + t +
              "\n%p = arith.mulf %x, %b : " + t + "\n%q = arith.addf %p, %y : " + t +
              "\n%e = math.tanh %q : " + t + "\n%c = arith.cmpf ogt, %e, %x : " + t +
              "\nreturn %e, %c : " + t + ", " + tensor({n}, "i1") + "\n}",
          KernelKind::loop, 1e-6);
  }
}

TEST(FibreGeneratorTest, TransposedAndInDoublePrecision) {
  check(R"(func.func @k(%x: tensor<37x65xf64>, %b: tensor<37xf64>) -> tensor<65x37xf64> {
    %t = nn.transpose %x perm = [1, 0] : tensor<37x65xf64> -> tensor<65x37xf64>
    %s = nn.broadcast %b dims = [1] : tensor<37xf64> -> tensor<65x37xf64>
    %a = arith.addf %t, %s : tensor<65x37xf64>
    %e = math.exp %a : tensor<65x37xf64>
    return %e : tensor<65x37xf64>
  })",
        KernelKind::loop, 1e-14);
}

/// Neighbours that a thread has: with what does not change along them, in place, and of several widths.
TEST(FibreGeneratorTest, ElementwiseInRuns) {
  check(
      R"(func.func @k(%x: tensor<70x40x100xf32>, %b: tensor<100xf32>, %r: tensor<70xf32>) -> (tensor<70x40x100xf32>, tensor<70x40x100xi1>) attributes {plan.in_place = array<i64: 0, 0>} {
    %c = nn.broadcast %b dims = [2] : tensor<100xf32> -> tensor<70x40x100xf32>
    %d = nn.broadcast %r dims = [0] : tensor<70xf32> -> tensor<70x40x100xf32>
    %p = arith.mulf %x, %c : tensor<70x40x100xf32>
    %q = arith.addf %p, %d : tensor<70x40x100xf32>
    %g = arith.cmpf ogt, %q, %x : tensor<70x40x100xf32>
    return %q, %g : tensor<70x40x100xf32>, tensor<70x40x100xi1>
  })",
      KernelKind::loop, 1e-6);
}

TEST(FibreGeneratorTest, ElementwiseInRunsOfOtherWidths) {
  check(R"(func.func @k(%x: tensor<300x1000xbf16>, %y: tensor<300x1000xbf16>) -> tensor<300x1000xi1> {
    %c = arith.cmpf ogt, %x, %y : tensor<300x1000xbf16>
    return %c : tensor<300x1000xi1>
  })",
        KernelKind::loop, 0);
  check(R"(func.func @k(%x: tensor<50x1502xf64>, %y: tensor<50x1502xf32>) -> tensor<50x1502xf64> {
    %w = arith.extf %y : tensor<50x1502xf32> to tensor<50x1502xf64>
    %a = arith.addf %x, %w : tensor<50x1502xf64>
    return %a : tensor<50x1502xf64>
  })",
        KernelKind::loop, 1e-15);
}

/// A run of neighbours is within what is put together, or without.
TEST(FibreGeneratorTest, PartsInRuns) {
  check(R"(func.func @k(%x: tensor<40x50x64xf32>, %z: tensor<f32>) -> tensor<41x53x88xf32> {
    %p = nn.pad %x, %z low = [1, 2, 8] high = [0, 1, 16] interior = [0, 0, 0]
        : tensor<40x50x64xf32>, tensor<f32> -> tensor<41x53x88xf32>
    %d = arith.mulf %p, %p : tensor<41x53x88xf32>
    return %d : tensor<41x53x88xf32>
  })",
        KernelKind::loop, 1e-6);
  check(R"(func.func @k(%a: tensor<400x96xf32>, %b: tensor<400x128xf32>, %c: tensor<400x140xf32>)
      -> tensor<400x364xf32> {
    %p = nn.concat %a, %b, %c axis = 1 : tensor<400x96xf32>, tensor<400x128xf32>, tensor<400x140xf32> -> tensor<400x364xf32>
    %d = arith.addf %p, %p : tensor<400x364xf32>
    return %d : tensor<400x364xf32>
  })",
        KernelKind::loop, 1e-6);
}

/// Loops of several sizes in one launch: less than a block, a whole one, more; with a sum of a few rows, two results of
/// one loop, and one that is no more than a copy.
TEST(FibreGeneratorTest, LoopsSideBySide) {
  check(R"(func.func @k(%s: tensor<f32>, %a: tensor<1xf32>, %b: tensor<256xf32>, %c: tensor<257xf32>,
                        %d: tensor<3x40xf32>, %e: tensor<1000xf32>)
      -> (tensor<1xf32>, tensor<256xf32>, tensor<257xf32>, tensor<257xf32>, tensor<40xf32>, tensor<1000xf32>) {
    %s1 = nn.broadcast %s dims = [] : tensor<f32> -> tensor<1xf32>
    %p = arith.mulf %a, %s1 : tensor<1xf32>
    %s2 = nn.broadcast %s dims = [] : tensor<f32> -> tensor<256xf32>
    %q = arith.subf %b, %s2 : tensor<256xf32>
    %s3 = nn.broadcast %s dims = [] : tensor<f32> -> tensor<257xf32>
    %r = arith.mulf %c, %s3 : tensor<257xf32>
    %r2 = arith.addf %r, %c : tensor<257xf32>
    %t = nn.reduce sum %d axes = [0] : tensor<3x40xf32> -> tensor<40xf32>
    return %p, %q, %r, %r2, %t, %e
        : tensor<1xf32>, tensor<256xf32>, tensor<257xf32>, tensor<257xf32>, tensor<40xf32>, tensor<1000xf32>
  })",
        KernelKind::joined, 5e-7);
}

/// An average that is written in its place, and the weight that is computed of what it was.
TEST(FibreGeneratorTest, LoopsSideBySideReadNothingThatAnotherWrites) {
  check(R"(func.func @k(%m: tensor<300xf32>, %s: tensor<f32>, %w: tensor<300xf32>, %r: tensor<f32>)
      -> (tensor<300xf32>, tensor<300xf32>, tensor<f32>) attributes {plan.in_place = array<i64: 0, 0, 2, 1>} {
    %a = nn.broadcast %s dims = [] : tensor<f32> -> tensor<300xf32>
    %p = arith.mulf %m, %a : tensor<300xf32>
    %b = nn.broadcast %r dims = [] : tensor<f32> -> tensor<300xf32>
    %c = arith.mulf %m, %b : tensor<300xf32>
    %q = arith.subf %w, %c : tensor<300xf32>
    %t = arith.addf %s, %r : tensor<f32>
    return %p, %q, %t : tensor<300xf32>, tensor<300xf32>, tensor<f32>
  })",
        KernelKind::joined, 5e-7);
}

/// Loops whose threads have neighbours: as many as 16 bytes hold, fewer, and one.
TEST(FibreGeneratorTest, LargeLoopsSideBySide) {
  check(R"(func.func @k(%a: tensor<1000x200xf32>, %b: tensor<150x401xf32>, %c: tensor<151x402xf32>)
      -> (tensor<1000x200xf32>, tensor<150x401xf32>, tensor<402xf32>, tensor<151x402xf32>) {
    %p = arith.mulf %a, %a : tensor<1000x200xf32>
    %q = arith.addf %b, %b : tensor<150x401xf32>
    %d = nn.slice %c starts = [0, 0] strides = [1, 1] : tensor<151x402xf32> -> tensor<3x402xf32>
    %t = nn.reduce sum %d axes = [0] : tensor<3x402xf32> -> tensor<402xf32>
    %r = arith.mulf %c, %c : tensor<151x402xf32>
    return %p, %q, %t, %r : tensor<1000x200xf32>, tensor<150x401xf32>, tensor<402xf32>, tensor<151x402xf32>
  })",
        KernelKind::joined, 1e-6);
}

/// Columns whose blocks have all rows, in one launch: of several types, in place, and beside loops that have other
/// blocks. In portable order a sum has 65 roundings of numbers below 64, of 1.9e-6 each.
TEST(FibreGeneratorTest, ColumnsSideBySide) {
  check(
      R"(func.func @k(%x: tensor<1030x40xf32>, %y: tensor<1030x70xf32>, %w: tensor<70xf32>, %p: tensor<70xf32>)
      -> (tensor<40xf32>, tensor<40xi1>, tensor<70xf32>, tensor<70xf32>, tensor<70xf32>)
      attributes {plan.in_place = array<i64: 2, 2>} {
    %s = nn.reduce sum %x axes = [0] : tensor<1030x40xf32> -> tensor<40xf32>
    %z = arith.constant dense<0.999> : tensor<1030x40xf32>
    %c = arith.cmpf ogt, %x, %z : tensor<1030x40xf32>
    %any = nn.reduce max %c axes = [0] : tensor<1030x40xi1> -> tensor<40xi1>
    %t = nn.reduce sum %y axes = [0] : tensor<1030x70xf32> -> tensor<70xf32>
    %n = arith.subf %w, %t : tensor<70xf32>
    %m = nn.reduce max %y axes = [0] : tensor<1030x70xf32> -> tensor<70xf32>
    %q = arith.mulf %p, %p : tensor<70xf32>
    return %s, %any, %n, %m, %q : tensor<40xf32>, tensor<40xi1>, tensor<70xf32>, tensor<70xf32>, tensor<70xf32>
  })",
      KernelKind::joined, 1.3e-4);
}

/// Rows of a warp and of a block, whole and in parts, and columns.
TEST(FibreGeneratorTest, Reductions) {
  struct Case {
    int64_t outer, reduced, inner;
  };
  for (Case c :
       {Case{5, 7, 1}, {33, 100, 1}, {3, 1029, 1}, {1, 20011, 1}, {1, 300, 70}, {9, 90, 15}, {1, 7, 3}})
    for (const char *kind : {"sum", "max"}) {
      std::string in = tensor({c.outer, c.reduced, c.inner}, "f32"),
                  result = tensor({c.outer, c.inner}, "f32");
      // Sums of n terms in a tree: the error of one path, of sums below n.
      check("func.func @k(%x: " + in + ") -> " + result + " {\n%s = arith.mulf %x, %x : " + in +
                "\n%r = nn.reduce " + kind + " %s axes = [1] : " + in + " -> " + result +
                "\nreturn %r : " + result + "\n}",
            KernelKind::loop, 1.2e-7 * (4 + double(c.reduced)));
    }
}

TEST(FibreGeneratorTest, ReductionsInDoublePrecisionAndOfIntegers) {
  check(R"(func.func @k(%x: tensor<6x5x37xf64>) -> tensor<5xf64> {
    %r = nn.reduce sum %x axes = [0, 2] : tensor<6x5x37xf64> -> tensor<5xf64>
    return %r : tensor<5xf64>
  })",
        KernelKind::loop, 1e-13);
  check(R"(func.func @inputs(%x: tensor<4x50xf32>) -> tensor<4x50xi64> {
    %h = arith.constant dense<100.0> : tensor<4x50xf32>
    %m = arith.mulf %x, %h : tensor<4x50xf32>
    %i = arith.fptosi %m : tensor<4x50xf32> to tensor<4x50xi64>
    return %i : tensor<4x50xi64>
  }
  func.func @k(%x: tensor<4x50xi64>) -> tensor<4xi64> {
    %r = nn.reduce sum %x axes = [1] : tensor<4x50xi64> -> tensor<4xi64>
    return %r : tensor<4xi64>
  })",
        KernelKind::loop, 0);
}

/// Columns whose rows are cut into parts: for the warps of a block, and for more blocks.
TEST(FibreGeneratorTest, SumsOfColumns) {
  struct Case {
    int64_t outer, reduced, inner;
  };
  for (Case c : {Case{1, 1000, 33}, {2, 513, 40}, {1, 4100, 70}, {3, 2049, 5}, {1, 100, 2048}})
    for (const char *kind : {"sum", "max"}) {
      std::string in = tensor({c.outer, c.reduced, c.inner}, "f32"),
                  result = tensor({c.outer, c.inner}, "f32");
      // In portable order a random walk of n / 16 roundings of sums up to n / 3: 3.5e-4 for 4,100, times six.
      check("func.func @k(%x: " + in + ") -> " + result + " {\n%s = arith.mulf %x, %x : " + in +
                "\n%r = nn.reduce " + kind + " %s axes = [1] : " + in + " -> " + result +
                "\nreturn %r : " + result + "\n}",
            KernelKind::loop, 5e-7 * double(c.reduced));
    }
}

/// A second pass that stores every element, results of columns in place, and several types of sums.
TEST(FibreGeneratorTest, SumsOfColumnsThatAreRead) {
  for (int64_t n : {77, 3000}) {
    std::string t = tensor({n, 37}, "f32"), row = tensor({37}, "f32");
    check("func.func @k(%x: " + t + ", %p: " + row + ") -> (" + row + ", " + t +
              ") attributes {plan.in_place = array<i64: 1, 0>} {\n%s = nn.reduce sum %x axes = [0] : " + t +
              " -> " + row + "\n%c = nn.broadcast %s dims = [1] : " + row + " -> " + t +
              "\n%b = nn.broadcast %p dims = [1] : " + row + " -> " + t + "\n%m = arith.mulf %x, %b : " + t +
              "\n%d = arith.mulf %m, %c : " + t + "\nreturn %s, %d : " + row + ", " + t + "\n}",
          KernelKind::loop, 1.2e-7 * (4 + double(n)));
  }
  check(R"(func.func @k(%x: tensor<4000x7x9xf32>) -> (tensor<7xi1>, tensor<7xf64>, tensor<7xf32>) {
    %z = arith.constant dense<0.999> : tensor<4000x7x9xf32>
    %c = arith.cmpf ogt, %x, %z : tensor<4000x7x9xf32>
    %any = nn.reduce max %c axes = [0, 2] : tensor<4000x7x9xi1> -> tensor<7xi1>
    %d = arith.extf %x : tensor<4000x7x9xf32> to tensor<4000x7x9xf64>
    %s = nn.reduce sum %d axes = [0, 2] : tensor<4000x7x9xf64> -> tensor<7xf64>
    %m = nn.reduce min %x axes = [0, 2] : tensor<4000x7x9xf32> -> tensor<7xf32>
    return %any, %s, %m : tensor<7xi1>, tensor<7xf64>, tensor<7xf32>
  })",
        KernelKind::loop, 1e-12);
  check(R"(func.func @k(%x: tensor<40x7x90x3xf32>) -> (tensor<7x3xi1>, tensor<7x3xf64>, tensor<7x3xf32>) {
    %z = arith.constant dense<0.999> : tensor<40x7x90x3xf32>
    %c = arith.cmpf ogt, %x, %z : tensor<40x7x90x3xf32>
    %any = nn.reduce max %c axes = [0, 2] : tensor<40x7x90x3xi1> -> tensor<7x3xi1>
    %d = arith.extf %x : tensor<40x7x90x3xf32> to tensor<40x7x90x3xf64>
    %s = nn.reduce sum %d axes = [0, 2] : tensor<40x7x90x3xf64> -> tensor<7x3xf64>
    %m = nn.reduce min %x axes = [0, 2] : tensor<40x7x90x3xf32> -> tensor<7x3xf32>
    return %any, %s, %m : tensor<7x3xi1>, tensor<7x3xf64>, tensor<7x3xf32>
  })",
        KernelKind::loop, 1e-12);
}

/// Reductions that feed further passes over the row: one that a warp or a block reads again, and one that it holds.
TEST(FibreGeneratorTest, SoftmaxOfRows) {
  for (int64_t n : {10, 77, 96, 1500, 2100, 2304}) {
    std::string t = tensor({9, n}, "f32"), row = tensor({9}, "f32");
    check("func.func @k(%x: " + t + ") -> " + t + " {\n%m = nn.reduce max %x axes = [1] : " + t + " -> " +
              row + "\n%b = nn.broadcast %m dims = [0] : " + row + " -> " + t +
              "\n%d = arith.subf %x, %b : " + t + "\n%e = math.exp %d : " + t +
              "\n%s = nn.reduce sum %e axes = [1] : " + t + " -> " + row +
              "\n%c = nn.broadcast %s dims = [0] : " + row + " -> " + t + "\n%r = arith.divf %e, %c : " + t +
              "\nreturn %r : " + t + "\n}",
          KernelKind::loop, 1e-6);
  }
}

/// What a row's first lane stores for all lies where the others have read, who must be through: the last pass is the
/// first to read it.
TEST(FibreGeneratorTest, ResultsOfRowsInPlace) {
  for (int64_t n : {77, 96, 2000, 2048}) {
    std::string t = tensor({9, n}, "f32"), row = tensor({9}, "f32");
    check("func.func @k(%x: " + t + ", %p: " + row + ") -> (" + row + ", " + t +
              ") attributes {plan.in_place = array<i64: 1, 0>} {\n%s = nn.reduce sum %x axes = [1] : " + t +
              " -> " + row + "\n%c = nn.broadcast %s dims = [0] : " + row + " -> " + t +
              "\n%b = nn.broadcast %p dims = [0] : " + row + " -> " + t + "\n%m = arith.mulf %x, %b : " + t +
              "\n%d = arith.mulf %m, %c : " + t + "\nreturn %s, %d : " + row + ", " + t + "\n}",
          KernelKind::loop, 1.2e-7 * (4 + double(n)));
  }
}

std::string product(std::vector<int64_t> a, std::vector<int64_t> b, std::vector<int64_t> c,
                    const std::string &how, const std::string &element = "f32") {
  std::string x = tensor(std::move(a), element), w = tensor(std::move(b), element),
              y = tensor(std::move(c), element);
  return "func.func @k(%x: " + x + ", %w: " + w + ") -> " + y + " {\n%d = nn.dot %x, %w " + how + " : " + x +
         ", " + w + " -> " + y + "\nreturn %d : " + y + "\n}";
}

TEST(FibreGeneratorTest, Products) {
  // Rounding errors of k products below one.
  check(product({33, 129}, {129, 77}, {33, 77}, "batch = [] x [] contract = [1] x [0]"),
        KernelKind::contraction, 1.2e-7 * 133);
  check(product({70, 40}, {50, 40}, {70, 50}, "batch = [] x [] contract = [1] x [1]"),
        KernelKind::contraction, 1.2e-7 * 44);
  check(product({90, 17}, {90, 66}, {17, 66}, "batch = [] x [] contract = [0] x [0]"),
        KernelKind::contraction, 1.2e-7 * 94);
  check(product({3, 20, 33}, {3, 33, 18}, {3, 20, 18}, "batch = [0] x [0] contract = [2] x [1]"),
        KernelKind::contraction, 1.2e-7 * 37);
  check(product({1, 200}, {200, 3}, {1, 3}, "batch = [] x [] contract = [1] x [0]"), KernelKind::contraction,
        1.2e-7 * 204);
  check(product({33, 40}, {40, 35}, {33, 35}, "batch = [] x [] contract = [1] x [0]", "f64"),
        KernelKind::contraction, 2.3e-16 * 44);
}

TEST(FibreGeneratorTest, ProductWithBiasAndRelu) {
  check(
      R"(func.func @k(%x: tensor<33x65xf32>, %w: tensor<65x77xf32>, %b: tensor<77xf32>) -> (tensor<33x77xf32>, tensor<33x77xf32>) {
    %z = arith.constant dense<0.0> : tensor<33x77xf32>
    %d = nn.dot %x, %w batch = [] x [] contract = [1] x [0] : tensor<33x65xf32>, tensor<65x77xf32> -> tensor<33x77xf32>
    %s = nn.broadcast %b dims = [1] : tensor<77xf32> -> tensor<33x77xf32>
    %a = arith.addf %d, %s : tensor<33x77xf32>
    %c = arith.cmpf ugt, %a, %z : tensor<33x77xf32>
    %r = arith.select %c, %a, %z : tensor<33x77xi1>, tensor<33x77xf32>
    return %r, %a : tensor<33x77xf32>, tensor<33x77xf32>
  })",
      KernelKind::contraction, 1.2e-7 * 70);
}

/// A convolution of 2 images of 9 x 8, and its gradients.
void checkConv(int64_t channels, int64_t features, int64_t window, int64_t stride, int64_t dilation,
               int64_t groups) {
  int64_t padding = dilation * (window / 2);
  auto sizeOf = [&](int64_t size) { return (size + 2 * padding - dilation * (window - 1) - 1) / stride + 1; };
  auto both = [](int64_t value) { return "[" + std::to_string(value) + ", " + std::to_string(value) + "]"; };
  std::string x = tensor({2, 9, 8, channels}, "f32"), y = tensor({2, sizeOf(9), sizeOf(8), features}, "f32"),
              w = tensor({window, window, channels / groups, features}, "f32");
  std::string how = " strides = " + both(stride) + " padding = " + both(padding) + " to " + both(padding) +
                    " dilations = " + both(dilation) + " groups = " + std::to_string(groups);
  auto program = [&](const std::string &op, const std::string &a, const std::string &b,
                     const std::string &r) {
    return "func.func @k(%a: " + a + ", %b: " + b + ") -> " + r + " {\n%r = nn." + op + " %a, %b" + how +
           " : " + a + ", " + b + " -> " + r + "\nreturn %r : " + r + "\n}";
  };
  // Rounding errors of sums of products below one.
  double filter = double(window * window);
  check(program("conv", x, w, y), KernelKind::conv, 1.2e-7 * (4 + filter * double(channels / groups)));
  check(program("conv_input_grad", y, w, x), KernelKind::conv,
        1.2e-7 * (4 + filter * double(features / groups)));
  check(program("conv_filter_grad", x, y, w), KernelKind::conv,
        1.2e-7 * (4 + 2 * double(sizeOf(9) * sizeOf(8))));
}

TEST(FibreGeneratorTest, Convolutions) { checkConv(5, 18, 3, 1, 1, 1); }
TEST(FibreGeneratorTest, ConvolutionsWithStrides) { checkConv(3, 7, 3, 2, 1, 1); }
TEST(FibreGeneratorTest, ConvolutionsOfPoints) { checkConv(20, 35, 1, 1, 1, 1); }
TEST(FibreGeneratorTest, ConvolutionsInGroups) { checkConv(6, 10, 3, 1, 1, 2); }
TEST(FibreGeneratorTest, ConvolutionsOfEachChannelWithDilation) { checkConv(12, 12, 3, 1, 2, 12); }

} // namespace
