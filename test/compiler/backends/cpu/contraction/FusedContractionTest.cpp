// Dots with views before and elementwise operations behind them, against the evaluator, on all targets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/EvaluatorFixture.h"

#include "compiler/backends/cpu/contraction/FusedContraction.h"
#include "test/compiler/kernels/FormFixture.h"

using namespace mlir;
using namespace ortc;
using namespace ortc::cpu;
using namespace ortc::emit;
using namespace ortc::cpu::test;

namespace {

struct Program {
  explicit Program(llvm::StringRef text) {
    m.context.loadDialect<nn::NnDialect, plan::PlanDialect>();
    source = parseSourceString<ModuleOp>(text, &m.context);
    EXPECT_TRUE(source) << text.str();
    function = *source->getOps<func::FuncOp>().begin();
  }

  bool isAccepted(std::string &reason) {
    return kernels::test::isOneKernel(plan::KernelKind::contraction, function, reason);
  }

  KernelModule m;
  OwningOpRef<ModuleOp> source;
  func::FuncOp function;
};

FailureOr<KernelInfo> generate(ModuleOp module, func::FuncOp function, ArrayRef<KernelBuffer> buffers,
                               const Target &target, Numerics numerics) {
  std::string reason;
  EXPECT_TRUE(kernels::test::isOneKernel(plan::KernelKind::contraction, function, reason)) << reason;
  return generateFusedContraction(module, function, buffers, target, numerics);
}

/// On all targets, against the evaluator in double precision. Results lie where the arguments of `pairs` do.
void check(llvm::StringRef text, double tolerance, ArrayRef<int64_t> pairs = {}) {
  compareWithEvaluator(text, generate, tolerance, Coverage::All, pairs);
}

TEST(FusedContractionTest, BiasAndReluWithTheSumsKept) {
  check(
      R"(func.func @k(%x: tensor<33x129xf32>, %w: tensor<129x77xf32>, %b: tensor<77xf32>) -> (tensor<33x77xf32>, tensor<33x77xf32>) {
    %z = arith.constant dense<0.0> : tensor<33x77xf32>
    %d = nn.dot %x, %w batch = [] x [] contract = [1] x [0] : tensor<33x129xf32>, tensor<129x77xf32> -> tensor<33x77xf32>
    %s = nn.broadcast %b dims = [1] : tensor<77xf32> -> tensor<33x77xf32>
    %a = arith.addf %d, %s : tensor<33x77xf32>
    %c = arith.cmpf ugt, %a, %z : tensor<33x77xf32>
    %r = arith.select %c, %a, %z : tensor<33x77xi1>, tensor<33x77xf32>
    return %r, %a : tensor<33x77xf32>, tensor<33x77xf32>
  })",
      2e-5);
}

TEST(FusedContractionTest, LongEpilogueIsRolledAndSeveralBlocksOfDepth) {
  check(
      R"(func.func @k(%x: tensor<70x1100xf32>, %w: tensor<50x1100xf32>, %r: tensor<70x50xf32>) -> tensor<70x50xf32> {
    %h = arith.constant dense<0.5> : tensor<70x50xf32>
    %d = nn.dot %x, %w batch = [] x [] contract = [1] x [1] : tensor<70x1100xf32>, tensor<50x1100xf32> -> tensor<70x50xf32>
    %t = math.tanh %d : tensor<70x50xf32>
    %e = math.exp %t : tensor<70x50xf32>
    %m = arith.mulf %e, %h : tensor<70x50xf32>
    %a = arith.addf %m, %r : tensor<70x50xf32>
    return %a : tensor<70x50xf32>
  })",
      1e-4);
}

/// An update behind the product that makes its gradient, over several blocks of depth: what it writes lies
/// where it reads.
constexpr llvm::StringLiteral kUpdate =
    R"(func.func @k(%x: tensor<1100x70xf32>, %g: tensor<1100x50xf32>, %p: tensor<70x50xf32>, %m: tensor<70x50xf32>, %lr: tensor<f32>) -> (tensor<70x50xf32>, tensor<70x50xf32>) {
    %d = nn.dot %x, %g batch = [] x [] contract = [0] x [0] : tensor<1100x70xf32>, tensor<1100x50xf32> -> tensor<70x50xf32>
    %n = arith.addf %m, %d : tensor<70x50xf32>
    %b = nn.broadcast %lr dims = [] : tensor<f32> -> tensor<70x50xf32>
    %s = arith.mulf %n, %b : tensor<70x50xf32>
    %q = arith.subf %p, %s : tensor<70x50xf32>
    return %n, %q : tensor<70x50xf32>, tensor<70x50xf32>
  })";

TEST(FusedContractionTest, UpdateInPlace) {
  check(kUpdate, 1e-4, {3, 0, 2, 1});
  check(kUpdate, 1e-4, {2, 0, 3, 1}); // written before the other result reads it
}

TEST(FusedContractionTest, PairsAreWhatIsReadWhereItIsWritten) {
  Program update(kUpdate);
  auto pairs = [](Program &p) { return kernels::test::pairsOf(plan::KernelKind::contraction, p.function); };
  EXPECT_EQ(pairs(update), (SmallVector<int64_t>{2, 0, 2, 1, 3, 0, 3, 1}));
  // Other tiles read an operand of the dot, other elements of the result what is transposed.
  Program residual(
      R"(func.func @k(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>, %r: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %d = nn.dot %x, %w batch = [] x [] contract = [1] x [0] : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %t = nn.transpose %r perm = [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
    %a = arith.addf %d, %x : tensor<64x64xf32>
    %b = arith.addf %a, %t : tensor<64x64xf32>
    return %b : tensor<64x64xf32>
  })");
  EXPECT_TRUE(pairs(residual).empty());
}

TEST(FusedContractionTest, ProjectionStoresHeadsApart) {
  check(
      R"(func.func @k(%x: tensor<48x64xf32>, %w: tensor<64x96xf32>, %b: tensor<96xf32>) -> tensor<2x4x24x24xf32> {
    %d = nn.dot %x, %w batch = [] x [] contract = [1] x [0] : tensor<48x64xf32>, tensor<64x96xf32> -> tensor<48x96xf32>
    %s = nn.broadcast %b dims = [1] : tensor<96xf32> -> tensor<48x96xf32>
    %a = arith.addf %d, %s : tensor<48x96xf32>
    %v = nn.reshape %a : tensor<48x96xf32> -> tensor<2x24x4x24xf32>
    %t = nn.transpose %v perm = [0, 2, 1, 3] : tensor<2x24x4x24xf32> -> tensor<2x4x24x24xf32>
    return %t : tensor<2x4x24x24xf32>
  })",
      2e-5);
}

TEST(FusedContractionTest, AttentionScoresOfTransposedHeads) {
  check(
      R"(func.func @k(%q: tensor<2x20x3x32xf32>, %k: tensor<2x20x3x32xf32>, %mask: tensor<20x20xf32>) -> tensor<2x3x20x20xf32> {
    %c = arith.constant dense<0.125> : tensor<2x3x20x20xf32>
    %qt = nn.transpose %q perm = [0, 2, 1, 3] : tensor<2x20x3x32xf32> -> tensor<2x3x20x32xf32>
    %kt = nn.transpose %k perm = [0, 2, 1, 3] : tensor<2x20x3x32xf32> -> tensor<2x3x20x32xf32>
    %d = nn.dot %qt, %kt batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<2x3x20x32xf32>, tensor<2x3x20x32xf32> -> tensor<2x3x20x20xf32>
    %s = arith.mulf %d, %c : tensor<2x3x20x20xf32>
    %m = nn.broadcast %mask dims = [2, 3] : tensor<20x20xf32> -> tensor<2x3x20x20xf32>
    %a = arith.addf %s, %m : tensor<2x3x20x20xf32>
    return %a : tensor<2x3x20x20xf32>
  })",
      2e-5);
}

TEST(FusedContractionTest, MatrixTimesVectorWithMask) {
  check(
      R"(func.func @k(%x: tensor<50x300xf32>, %w: tensor<300x1xf32>, %b: tensor<1xf32>) -> (tensor<50x1xf32>, tensor<50x1xi1>) {
    %z = arith.constant dense<0.0> : tensor<50x1xf32>
    %d = nn.dot %x, %w batch = [] x [] contract = [1] x [0] : tensor<50x300xf32>, tensor<300x1xf32> -> tensor<50x1xf32>
    %s = nn.broadcast %b dims = [1] : tensor<1xf32> -> tensor<50x1xf32>
    %a = arith.addf %d, %s : tensor<50x1xf32>
    %c = arith.cmpf ogt, %a, %z : tensor<50x1xf32>
    %l = math.tanh %a : tensor<50x1xf32>
    return %l, %c : tensor<50x1xf32>, tensor<50x1xi1>
  })",
      2e-5);
}

void refuse(llvm::StringRef text, llvm::StringRef want) {
  Program p(text);
  std::string reason;
  EXPECT_FALSE(p.isAccepted(reason)) << text.str();
  EXPECT_EQ(reason, want.str());
}

/// Products that give one number, which has no dimension for what follows: a batch of one and one feature.
TEST(FusedContractionTest, SingleNumber) {
  check(R"(func.func @k(%x: tensor<1x65xf32>, %w: tensor<65x1xf32>, %b: tensor<f32>) -> tensor<1x1xf32> {
    %d = nn.dot %x, %w batch = [] x [] contract = [1] x [0] : tensor<1x65xf32>, tensor<65x1xf32> -> tensor<1x1xf32>
    %s = nn.broadcast %b dims = [] : tensor<f32> -> tensor<1x1xf32>
    %a = arith.addf %d, %s : tensor<1x1xf32>
    return %a : tensor<1x1xf32>
  })",
        1e-5);
  check(R"(func.func @k(%x: tensor<5x13xf32>, %w: tensor<5x13xf32>) -> tensor<f32> {
    %d = nn.dot %x, %w batch = [] x [] contract = [0, 1] x [0, 1] : tensor<5x13xf32>, tensor<5x13xf32> -> tensor<f32>
    %n = arith.negf %d : tensor<f32>
    return %n : tensor<f32>
  })",
        1e-5);
}

TEST(FusedContractionTest, RefusesReductionsOfTheResult) {
  refuse(R"(func.func @k(%x: tensor<32x64xf32>, %w: tensor<64x32xf32>) -> tensor<32xf32> {
    %d = nn.dot %x, %w batch = [] x [] contract = [1] x [0] : tensor<32x64xf32>, tensor<64x32xf32> -> tensor<32x32xf32>
    %s = nn.reduce sum %d axes = [1] : tensor<32x32xf32> -> tensor<32xf32>
    return %s : tensor<32xf32>
  })",
         "what follows is not elementwise on the result");
}

TEST(FusedContractionTest, RefusesTwoPlacesOfTheResult) {
  refuse(R"(func.func @k(%x: tensor<32x64xf32>, %w: tensor<64x32xf32>) -> tensor<32x32xf32> {
    %d = nn.dot %x, %w batch = [] x [] contract = [1] x [0] : tensor<32x64xf32>, tensor<64x32xf32> -> tensor<32x32xf32>
    %t = nn.transpose %d perm = [1, 0] : tensor<32x32xf32> -> tensor<32x32xf32>
    %s = arith.addf %d, %t : tensor<32x32xf32>
    return %s : tensor<32x32xf32>
  })",
         "what follows is not elementwise on the result");
}

TEST(FusedContractionTest, RefusesScatteredVectors) {
  refuse(
      R"(func.func @k(%x: tensor<32x64xf32>, %w: tensor<64x32xf32>, %r: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %d = nn.dot %x, %w batch = [] x [] contract = [1] x [0] : tensor<32x64xf32>, tensor<64x32xf32> -> tensor<32x32xf32>
    %t = nn.transpose %r perm = [1, 0] : tensor<32x32xf32> -> tensor<32x32xf32>
    %s = arith.addf %d, %t : tensor<32x32xf32>
    return %s : tensor<32x32xf32>
  })",
      "vectors of the result would be scattered");
}

TEST(FusedContractionTest, RefusesElementwiseOperands) {
  refuse(R"(func.func @k(%x: tensor<32x64xf32>, %w: tensor<64x32xf32>) -> tensor<32x32xf32> {
    %n = arith.negf %x : tensor<32x64xf32>
    %d = nn.dot %n, %w batch = [] x [] contract = [1] x [0] : tensor<32x64xf32>, tensor<64x32xf32> -> tensor<32x32xf32>
    return %d : tensor<32x32xf32>
  })",
         "an operand of the dot is more than a strided view of an input");
}

} // namespace
