// Convolutions and their gradients against the evaluator, on all targets, in f32 and f64.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/MatrixUnitFixture.h"
#include "test/compiler/backends/cpu/conv/ConvCheck.h"

using namespace mlir;
using namespace ortc::cpu;
using namespace ortc::emit;
using namespace ortc::cpu::test;

namespace {

TEST(ConvTest, SquareWindowsWithPadding) {
  check({2, {9, 9}, 16, {3, 3}, 32, {}, {1, 1}}, Coverage::All);
  check({1, {6, 11}, 64, {3, 3}, 64, {}, {1, 1}});
}

TEST(ConvTest, WithoutPaddingTheImageIsReadInPlace) {
  check({2, {12, 12}, 6, {5, 5}, 16});
  check({2, {7, 8}, 5, {3, 2}, 7});
}

TEST(ConvTest, FirstLayers) {
  check({2, {32, 32}, 3, {7, 7}, 64, {2, 2}, {3, 3}});
  check({2, {28, 28}, 1, {5, 5}, 6, {}, {2, 2}});
  check({2, {14, 17}, 2, {3, 5}, 13, {}, {1, 2}}); // pieces of a vector, behind a whole one
}

/// Of parts of the batch, by every kernel that makes filter gradients with vectors.
TEST(ConvTest, FilterGradientsInParts) {
  for (Conv c : {Conv{4, {9, 8}, 16, {3, 3}, 16, {}, {1, 1}},                 // Winograd
                 Conv{4, {9, 8}, 24, {3, 3}, 24, {2, 2}, {1, 1}, {}, {}, 24}, // depthwise
                 Conv{4, {9, 8}, 24, {3, 3}, 24, {}, {1, 1}, {}, {}, 2},      // groups
                 Conv{4, {9, 8}, 24, {1, 1}, 72},                             // points
                 Conv{4, {9, 8}, 24, {1, 1}, 40, {2, 2}},
                 Conv{4, {32, 30}, 3, {3, 3}, 16, {}, {1, 1}}, // a first layer
                 Conv{4, {9, 8}, 6, {5, 5}, 16, {}, {2, 2}}, Conv{4, {9, 8, 3}, 4, {3, 2, 2}, 5}}) {
    c = complete(c);
    double summed = double(c.batch);
    for (int64_t size : outputOf(c))
      summed *= double(size);
    c.parts = 2;
    compareWithEvaluator(programOf(c, Kind::FilterGrad, "f64"), generate, 2.3e-16 * (4 + summed),
                         Coverage::Widest);
    for (; c.parts <= 4; c.parts += 2)
      compareWithEvaluator(programOf(c, Kind::FilterGrad, "f32"), generate, 1.2e-7 * (4 + summed),
                           c.parts == 2 ? Coverage::Targets : Coverage::Widest);
  }
}

/// Chunks of rows and of columns with a narrow last vector, groups of several images, windows that reach out
/// of the image in every way.
TEST(ConvTest, FilterGradientsOfFirstLayers) {
  check({2, {50, 52}, 3, {3, 3}, 16, {}, {1, 1}}, Coverage::Widest, Kind::FilterGrad);
  check({3, {65, 64}, 3, {3, 3}, 40, {2, 2}, {1, 1}}, Coverage::Targets, Kind::FilterGrad);
}

TEST(ConvTest, Strides) {
  check({2, {11, 14}, 12, {3, 3}, 20, {2, 2}, {1, 1}}, Coverage::All);
  check({2, {13, 13}, 4, {3, 3}, 9, {3, 2}, {0, 1}});
  check({1, {9, 16}, 4, {2, 4}, 8, {2, 4}});
  // Positions that no window reads have no gradient.
  check({1, {10, 11}, 3, {1, 2}, 5, {3, 4}});
}

TEST(ConvTest, Dilations) {
  check({2, {13, 12}, 6, {3, 3}, 10, {}, {2, 2}, {}, {2, 2}});
  check({2, {15, 17}, 4, {3, 3}, 18, {2, 3}, {3, 1}, {}, {3, 2}});
}

TEST(ConvTest, UnequalPadding) {
  check({2, {8, 9}, 7, {3, 4}, 13, {}, {0, 2}, {2, 1}});
  check({2, {8, 9}, 7, {3, 3}, 13, {2, 2}, {0, 0}, {1, 2}});
}

TEST(ConvTest, Groups) {
  check({2, {7, 7}, 12, {3, 3}, 18, {}, {1, 1}, {}, {}, 3}, Coverage::All);
  check({2, {8, 8}, 64, {3, 3}, 64, {2, 2}, {1, 1}, {}, {}, 2});
}

TEST(ConvTest, Depthwise) {
  check({2, {9, 9}, 32, {3, 3}, 32, {}, {1, 1}, {}, {}, 32});
  check({2, {9, 10}, 70, {3, 3}, 70, {2, 2}, {1, 1}, {}, {}, 70});
  check({1, {12, 12}, 19, {7, 7}, 19, {}, {3, 3}, {}, {}, 19});
  check({1, {12, 12}, 5, {3, 3}, 5, {}, {2, 2}, {}, {2, 2}, 5}, Coverage::All);
}

/// Lines of several tiles with an inside, vectors that are not full, and windows that reach over more than one tile.
TEST(ConvTest, DepthwiseLines) {
  check({2, {5, 61}, 24, {3, 3}, 24, {}, {1, 1}, {}, {}, 24}, Coverage::All);
  check({1, {9, 58}, 40, {5, 5}, 40, {2, 2}, {2, 2}, {}, {}, 40});
  check({1, {7, 40}, 33, {3, 5}, 33, {1, 3}, {0, 3}, {2, 1}, {}, 33}, Coverage::Widest);
  check({2, {6, 37}, 16, {2, 4}, 16, {3, 4}, {1, 0}, {0, 2}, {}, 16}, Coverage::Widest);
}

/// Windows whose filter gradients are summed several lines of the filter at once: all, or half of them.
TEST(ConvTest, DepthwiseWindowLines) {
  check({2, {9, 21}, 20, {6, 3}, 20, {2, 1}, {3, 1}, {}, {}, 20}, Coverage::Widest, Kind::FilterGrad);
}

/// Operands larger than caches, which are fetched ahead: past their ends, too.
TEST(ConvTest, DepthwiseFetched) {
  check({2, {33, 65}, 136, {3, 3}, 136, {}, {1, 1}, {}, {}, 136}, Coverage::Widest);
  check({2, {33, 65}, 136, {3, 3}, 136, {2, 2}, {1, 1}, {}, {}, 136}, Coverage::Widest);
  check({2, {33, 65}, 136, {3, 3}, 136, {2, 2}, {2, 2}, {}, {2, 2}, 136}, Coverage::Widest);
}

/// Operands that fit in the second-level cache are not fetched, but when they are packed: fetching takes time, too.
TEST(ConvTest, OnlyLargeOperandsAreFetched) {
  auto fetches = [](Conv conv, Kind kind) {
    KernelModule m;
    m.context.loadDialect<ortc::nn::NnDialect>();
    auto source = parseSourceString<ModuleOp>(programOf(complete(std::move(conv)), kind, "f32"), &m.context);
    auto function = source->lookupSymbol<func::FuncOp>("k");
    SmallVector<KernelBuffer> buffers;
    auto add = [&](Type type, bool written) {
      buffers.push_back(
          {m.builder.getF32Type(), cast<RankedTensorType>(type).getNumElements(), written, true});
    };
    for (Type type : function.getArgumentTypes())
      add(type, false);
    add(function.getResultTypes()[0], true);
    EXPECT_TRUE(
        succeeded(generateConv(*m.module, function, buffers, *findTarget("x86-64-v3"), Numerics::Fast, {})));
    return StringRef(m.print()).count("memref.prefetch");
  };
  for (int64_t groups : {1, 32}) {
    Sizes window = groups > 1 ? Sizes{3, 3} : Sizes{1, 1}, border = groups > 1 ? Sizes{1, 1} : Sizes{0, 0};
    for (Kind kind : {Kind::Forward, Kind::InputGrad, Kind::FilterGrad}) {
      auto ofBatch = [&](int64_t batch) {
        return fetches({batch, {40, 20}, 32, window, 32, {}, border, {}, {}, groups}, kind);
      };
      EXPECT_GT(ofBatch(32), ofBatch(1));
    }
  }
}

/// Features whose number makes chunks of unequal size and a last vector that is not full.
TEST(ConvTest, DepthwiseChunks) {
  for (int64_t channels : {72, 100})
    check({2, {6, 7}, channels, {3, 3}, channels, {}, {1, 1}, {}, {}, channels}, Coverage::Widest,
          Doubles::All);
  check({3, {60, 31}, 32, {3, 3}, 32, {}, {1, 1}, {}, {}, 32}, Coverage::Widest);
}

TEST(ConvTest, NarrowGroups) {
  check({2, {7, 19}, 64, {3, 3}, 64, {}, {1, 1}, {}, {}, 16}, Coverage::All);
  check({2, {9, 8}, 32, {3, 3}, 32, {2, 2}, {1, 1}, {}, {}, 4});
  check({1, {6, 13}, 24, {5, 3}, 24, {}, {2, 1}, {}, {}, 12}, Coverage::Widest);
}

TEST(ConvTest, OneDimension) {
  check({3, {40}, 16, {3}, 24, {}, {1}});
  check({2, {41}, 5, {4}, 11, {3}, {2}, {0}});
  check({2, {50}, 8, {3}, 8, {}, {8}, {0}, {4}});
}

TEST(ConvTest, ThreeDimensions) {
  check({2, {5, 6, 7}, 4, {3, 3, 3}, 10, {}, {1, 1, 1}});
  check({1, {6, 7, 8}, 3, {2, 3, 2}, 5, {2, 1, 2}, {0, 1, 1}, {1, 1, 0}});
}

TEST(ConvTest, OddChannelCounts) {
  for (int64_t channels : {1, 17, 33})
    check({1, {5, 6}, channels, {2, 3}, 15, {}, {1, 1}}, Coverage::Widest, Doubles::All);
}

TEST(ConvTest, OnePoint) {
  check({4, {1, 1}, 10, {1, 1}, 20});
  check({3, {6, 6}, 20, {1, 1}, 33});
}

/// Larger images are cut into blocks of rows and into chunks.
TEST(ConvTest, SeveralBlocksAndChunks) {
  check({2, {70, 66}, 18, {3, 3}, 5, {}, {1, 1}}, Coverage::Widest, Doubles::All);
  Target target = runnableTargets().back();
  EXPECT_GT(
      EvaluatedKernel(programOf(complete({2, {70, 66}, 18, {3, 3}, 5, {}, {1, 1}}), Kind::Forward, "f32"),
                      generate, target, Numerics::Fast)
          .info.chunks,
      1);
}

/// Reductions that are cut by filter positions and by channels, groups of several images and parts of one.
TEST(ConvTest, BlocksOfTheReduction) {
  check({4, {7, 7}, 128, {3, 3}, 80, {}, {1, 1}}, Coverage::All);
  check({3, {6, 5}, 96, {3, 3}, 144, {2, 2}, {1, 0}, {0, 1}}, Coverage::Widest);
}

/// Even and odd sizes, tiles at every edge, groups of tiles with a rest, blocks of channels, chunks of columns, filters
/// that are transformed once and again for each group.
TEST(ConvTest, FewerProducts) {
  check({2, {8, 10}, 32, {3, 3}, 48, {}, {1, 1}}, Coverage::All);
  check({3, {7, 9}, 64, {3, 3}, 32});
  check({1, {5, 6}, 48, {3, 3}, 96, {}, {2, 1}, {1, 2}}, Coverage::Widest);
}

/// With stride 2: windows of 3 and 4, phases of one and two taps, phases of fewer results, blocks of channels.
TEST(ConvTest, FewerProductsOfStrides) {
  check({2, {16, 20}, 32, {4, 4}, 48, {2, 2}, {1, 1}}, Coverage::All);
  check({3, {12, 16}, 16, {3, 3}, 32, {2, 2}, {1, 1}}, Coverage::All);
  check({2, {17, 19}, 48, {4, 3}, 64, {2, 2}, {1, 1}});
}

/// Which of them are transformed: not results whose last tiles are half empty.
TEST(ConvTest, FewerProductsWhereTheyPay) {
  auto isTransformed = [](Conv given, Kind kind) {
    EvaluatedKernel kernel(programOf(complete(std::move(given)), kind, "f32"), generate,
                           runnableTargets().back(), Numerics::Fast);
    return llvm::StringRef(kernel.info.blocking.key).starts_with("winograd ");
  };
  for (Kind kind : {Kind::Forward, Kind::InputGrad, Kind::FilterGrad}) {
    EXPECT_TRUE(isTransformed({1, {16, 16}, 16, {3, 3}, 16, {2, 2}, {1, 1}}, kind));
    EXPECT_TRUE(isTransformed({1, {14, 14}, 16, {4, 4}, 16, {2, 2}, {1, 1}}, kind));
    EXPECT_FALSE(isTransformed({1, {14, 14}, 16, {3, 3}, 16, {2, 2}, {1, 1}}, kind));
  }
}

TEST(ConvTest, EpilogueOfTiles) {
  compareWithEvaluator(
      R"(func.func @k(%r: tensor<2x7x9x48xf32>, %x: tensor<2x7x9x32xf32>, %w: tensor<3x3x32x48xf32>, %b: tensor<48xf32>)
      -> (tensor<2x7x9x48xf32>, tensor<2x7x9x48xi1>) {
    %z = arith.constant dense<0.0> : tensor<2x7x9x48xf32>
    %c = nn.conv %x, %w strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<2x7x9x32xf32>, tensor<3x3x32x48xf32> -> tensor<2x7x9x48xf32>
    %s = nn.broadcast %b dims = [3] : tensor<48xf32> -> tensor<2x7x9x48xf32>
    %a = arith.addf %c, %s : tensor<2x7x9x48xf32>
    %t = arith.addf %a, %r : tensor<2x7x9x48xf32>
    %m = arith.cmpf ogt, %t, %z : tensor<2x7x9x48xf32>
    %y = arith.select %m, %t, %z : tensor<2x7x9x48xi1>, tensor<2x7x9x48xf32>
    return %y, %m : tensor<2x7x9x48xf32>, tensor<2x7x9x48xi1>
  })",
      generate, 5e-5);
}

TEST(ConvTest, Points) {
  check({2, {9, 8}, 40, {1, 1}, 72}, Coverage::Widest, Doubles::All);
  // Blocks of the filter gradient that end inside of images.
  check({5, {7, 9}, 21, {1, 1}, 40}, Coverage::Widest);
  check({2, {9, 8}, 700, {1, 1}, 24, {2, 2}}, Coverage::Widest);
}

/// Filter gradients that the matrix unit computes where there is one.
TEST(ConvTest, PointsOnTheMatrixUnit) {
  MatrixUnit matrixUnit;
  const Target &target = matrixUnit.getTarget();
  for (int64_t parts : {1, 2}) {
    Conv c = complete({2 * parts, {24, 16}, 128, {1, 1}, 580});
    c.parts = parts;
    std::string text = programOf(c, Kind::FilterGrad, "f32");
    EvaluatedKernel unit(text, generate, target, Numerics::Fast);
    auto want = unit.evaluate();
    ASSERT_TRUE(succeeded(want));
    uint64_t before = matrixUnit.getProducts();
    unit.compare(unit.run(), *want, 1.2e-7 * (4 + 768));
    if (matrixUnit.isSoftware()) {
      EXPECT_GT(matrixUnit.getProducts(), before);
    }
    Target vectors = target;
    vectors.isa.set(Instruction::MatrixUnit, false);
    EvaluatedKernel other(text, generate, vectors, Numerics::Fast);
    EXPECT_GT(unit.info.workspaceBytesPerWorker, other.info.workspaceBytesPerWorker);
  }
}

/// Points of images larger than caches: the next tile or block is fetched, past the last one, too.
TEST(ConvTest, PointsFetched) {
  for (Kind kind : {Kind::Forward, Kind::InputGrad}) {
    check({3, {37, 41}, 140, {1, 1}, 30}, Coverage::Widest, kind);
    check({3, {37, 41}, 30, {1, 1}, 140}, Coverage::Widest, kind);
  }
  check({3, {37, 41}, 40, {1, 1}, 150}, Coverage::Widest, Kind::FilterGrad);
}

TEST(ConvTest, EpilogueBehindBlocksOfTheReduction) {
  compareWithEvaluator(
      R"(func.func @k(%r: tensor<2x8x7x37xf32>, %x: tensor<2x8x7x128xf32>, %w: tensor<3x3x128x37xf32>, %b: tensor<37xf32>)
      -> (tensor<2x8x7x37xf32>, tensor<2x8x7x37xi1>) {
    %z = arith.constant dense<0.0> : tensor<2x8x7x37xf32>
    %c = nn.conv %x, %w strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<2x8x7x128xf32>, tensor<3x3x128x37xf32> -> tensor<2x8x7x37xf32>
    %s = nn.broadcast %b dims = [3] : tensor<37xf32> -> tensor<2x8x7x37xf32>
    %a = arith.addf %c, %s : tensor<2x8x7x37xf32>
    %t = arith.addf %a, %r : tensor<2x8x7x37xf32>
    %m = arith.cmpf ogt, %t, %z : tensor<2x8x7x37xf32>
    %y = arith.select %m, %t, %z : tensor<2x8x7x37xi1>, tensor<2x8x7x37xf32>
    return %y, %m : tensor<2x8x7x37xf32>, tensor<2x8x7x37xi1>
  })",
      generate, 2e-4);
}

TEST(ConvTest, EpilogueOfPoints) {
  compareWithEvaluator(
      R"(func.func @k(%r: tensor<2x5x6x24xf32>, %x: tensor<2x5x6x8xf32>, %w: tensor<1x1x8x24xf32>) -> tensor<2x5x6x24xf32> {
    %c = nn.conv %x, %w strides = [1, 1] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1 : tensor<2x5x6x8xf32>, tensor<1x1x8x24xf32> -> tensor<2x5x6x24xf32>
    %a = arith.addf %c, %r : tensor<2x5x6x24xf32>
    return %a : tensor<2x5x6x24xf32>
  })",
      generate, 1e-5);
  // A bias for each image: no one stride over all points.
  compareWithEvaluator(
      R"(func.func @k(%x: tensor<2x5x6x8xf32>, %w: tensor<1x1x8x24xf32>, %b: tensor<2xf32>) -> tensor<2x5x6x24xf32> {
    %c = nn.conv %x, %w strides = [1, 1] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1 : tensor<2x5x6x8xf32>, tensor<1x1x8x24xf32> -> tensor<2x5x6x24xf32>
    %s = nn.broadcast %b dims = [0] : tensor<2xf32> -> tensor<2x5x6x24xf32>
    %a = arith.addf %c, %s : tensor<2x5x6x24xf32>
    return %a : tensor<2x5x6x24xf32>
  })",
      generate, 1e-5);
}

TEST(ConvTest, EpilogueOfBiasReluAndResidual) {
  compareWithEvaluator(
      R"(func.func @k(%r: tensor<2x9x10x37xf32>, %x: tensor<2x9x10x5xf32>, %w: tensor<3x3x5x37xf32>, %b: tensor<37xf32>)
      -> (tensor<2x9x10x37xf32>, tensor<2x9x10x37xi1>) {
    %z = arith.constant dense<0.0> : tensor<2x9x10x37xf32>
    %c = nn.conv %x, %w strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<2x9x10x5xf32>, tensor<3x3x5x37xf32> -> tensor<2x9x10x37xf32>
    %s = nn.broadcast %b dims = [3] : tensor<37xf32> -> tensor<2x9x10x37xf32>
    %a = arith.addf %c, %s : tensor<2x9x10x37xf32>
    %t = arith.addf %a, %r : tensor<2x9x10x37xf32>
    %m = arith.cmpf ogt, %t, %z : tensor<2x9x10x37xf32>
    %y = arith.select %m, %t, %z : tensor<2x9x10x37xi1>, tensor<2x9x10x37xf32>
    return %y, %m : tensor<2x9x10x37xf32>, tensor<2x9x10x37xi1>
  })",
      generate, 1e-5);
}

TEST(ConvTest, LongEpilogueIsRolled) {
  compareWithEvaluator(
      R"(func.func @k(%x: tensor<2x20x8xf32>, %w: tensor<3x8x40xf32>) -> tensor<2x20x40xf32> {
    %c = nn.conv %x, %w strides = [1] padding = [1] to [1] dilations = [1] groups = 1 : tensor<2x20x8xf32>, tensor<3x8x40xf32> -> tensor<2x20x40xf32>
    %t = math.tanh %c : tensor<2x20x40xf32>
    %e = math.exp %t : tensor<2x20x40xf32>
    return %e : tensor<2x20x40xf32>
  })",
      generate, 2e-5);
}

/// Few channels: one, whose neighbouring windows share what they read, and a long epilogue in tiles at the border.
TEST(ConvTest, ForwardOfFirstLayers) {
  check({2, {9, 30}, 1, {3, 3}, 32, {}, {1, 1}}, Coverage::Targets, Kind::Forward);
  check({1, {12, 29}, 3, {5, 5}, 24, {}, {2, 2}}, Coverage::Widest, Kind::Forward);
  compareWithEvaluator(
      R"(func.func @k(%x: tensor<2x7x30x3xf32>, %w: tensor<3x3x3x40xf32>) -> tensor<2x7x30x40xf32> {
    %c = nn.conv %x, %w strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<2x7x30x3xf32>, tensor<3x3x3x40xf32> -> tensor<2x7x30x40xf32>
    %t = math.tanh %c : tensor<2x7x30x40xf32>
    %e = math.exp %t : tensor<2x7x30x40xf32>
    return %e : tensor<2x7x30x40xf32>
  })",
      generate, 2e-5);
  // Dilated lines, and windows of nothing but padding.
  check({2, {11, 14}, 3, {3, 3}, 16, {2, 1}, {2, 1}, {1, 0}, {2, 1}}, Coverage::Widest, Kind::Forward);
  check({1, {5, 6}, 3, {2, 2}, 8, {}, {3, 3}, {4, 4}}, Coverage::Widest, Kind::Forward);
  // Groups of several images.
  check({6, {8, 8}, 3, {3, 3}, 16, {}, {1, 1}}, Coverage::Widest);
}

TEST(ConvTest, EpiloguesOfDepthwise) {
  compareWithEvaluator(
      R"(func.func @k(%r: tensor<2x9x10x37xf32>, %x: tensor<2x9x10x37xf32>, %w: tensor<3x3x1x37xf32>, %b: tensor<37xf32>)
      -> (tensor<2x9x10x37xf32>, tensor<2x9x10x37xi1>) {
    %z = arith.constant dense<0.0> : tensor<2x9x10x37xf32>
    %c = nn.conv %x, %w strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 37 : tensor<2x9x10x37xf32>, tensor<3x3x1x37xf32> -> tensor<2x9x10x37xf32>
    %s = nn.broadcast %b dims = [3] : tensor<37xf32> -> tensor<2x9x10x37xf32>
    %a = arith.addf %c, %s : tensor<2x9x10x37xf32>
    %t = arith.addf %a, %r : tensor<2x9x10x37xf32>
    %m = arith.cmpf ogt, %t, %z : tensor<2x9x10x37xf32>
    %y = arith.select %m, %t, %z : tensor<2x9x10x37xi1>, tensor<2x9x10x37xf32>
    return %y, %m : tensor<2x9x10x37xf32>, tensor<2x9x10x37xi1>
  })",
      generate, 1e-5);
  compareWithEvaluator(
      R"(func.func @k(%x: tensor<2x20x40xf32>, %w: tensor<3x1x40xf32>) -> tensor<2x20x40xf32> {
    %c = nn.conv %x, %w strides = [1] padding = [1] to [1] dilations = [1] groups = 40 : tensor<2x20x40xf32>, tensor<3x1x40xf32> -> tensor<2x20x40xf32>
    %t = math.tanh %c : tensor<2x20x40xf32>
    %e = math.exp %t : tensor<2x20x40xf32>
    return %e : tensor<2x20x40xf32>
  })",
      generate, 2e-5);
  compareWithEvaluator(
      R"(func.func @k(%dy: tensor<2x5x4x20xf32>, %w: tensor<3x3x1x20xf32>, %v: tensor<2x9x8x20xf32>) -> tensor<2x9x8x20xf32> {
    %z = arith.constant dense<0.0> : tensor<2x9x8x20xf32>
    %g = nn.conv_input_grad %dy, %w strides = [2, 2] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 20 : tensor<2x5x4x20xf32>, tensor<3x3x1x20xf32> -> tensor<2x9x8x20xf32>
    %m = arith.cmpf ogt, %v, %z : tensor<2x9x8x20xf32>
    %y = arith.select %m, %g, %z : tensor<2x9x8x20xi1>, tensor<2x9x8x20xf32>
    return %y : tensor<2x9x8x20xf32>
  })",
      generate, 1e-5);
}

TEST(ConvTest, InputGradientsOfFewChannels) {
  check({3, {13, 17}, 3, {4, 4}, 20, {2, 2}, {1, 1}}, Coverage::All, Kind::InputGrad);
  check({2, {14, 14}, 6, {5, 5}, 16}, Coverage::Targets, Kind::InputGrad);
  check({2, {21, 20}, 3, {7, 7}, 9, {2, 2}, {3, 3}}, Coverage::Targets, Kind::InputGrad);
  check({2, {12, 11}, 1, {10, 4}, 16, {2, 2}, {4, 1}, {5, 2}}, Coverage::Targets, Kind::InputGrad);
  check({2, {9, 40}, 7, {2, 3}, 8, {3, 3}, {0, 2}, {1, 3}});
}

/// Stride 2: every phase of the gradient finds its own place in the mask.
TEST(ConvTest, EpilogueOfInputGradient) {
  compareWithEvaluator(
      R"(func.func @k(%dy: tensor<2x5x4x12xf32>, %w: tensor<3x3x20x12xf32>, %v: tensor<2x9x8x20xf32>) -> tensor<2x9x8x20xf32> {
    %z = arith.constant dense<0.0> : tensor<2x9x8x20xf32>
    %g = nn.conv_input_grad %dy, %w strides = [2, 2] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<2x5x4x12xf32>, tensor<3x3x20x12xf32> -> tensor<2x9x8x20xf32>
    %m = arith.cmpf ogt, %v, %z : tensor<2x9x8x20xf32>
    %y = arith.select %m, %g, %z : tensor<2x9x8x20xi1>, tensor<2x9x8x20xf32>
    return %y : tensor<2x9x8x20xf32>
  })",
      generate, 1e-5);
  compareWithEvaluator(
      R"(func.func @k(%dy: tensor<2x5x4x12xf32>, %w: tensor<3x3x5x12xf32>, %b: tensor<5xf32>) -> tensor<2x9x8x5xf32> {
    %z = arith.constant dense<0.0> : tensor<2x9x8x5xf32>
    %g = nn.conv_input_grad %dy, %w strides = [2, 2] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<2x5x4x12xf32>, tensor<3x3x5x12xf32> -> tensor<2x9x8x5xf32>
    %c = nn.broadcast %b dims = [3] : tensor<5xf32> -> tensor<2x9x8x5xf32>
    %s = arith.addf %g, %c : tensor<2x9x8x5xf32>
    %m = arith.cmpf ogt, %s, %z : tensor<2x9x8x5xf32>
    %y = arith.select %m, %s, %z : tensor<2x9x8x5xi1>, tensor<2x9x8x5xf32>
    return %y : tensor<2x9x8x5xf32>
  })",
      generate, 1e-5);
}

/// Momentum behind a transformed filter gradient: groups of tiles, two chunks of columns; phases with taps of
/// their own.
const char *const kUpdate =
    R"(func.func @k(%x: tensor<2x20x21x48xf32>, %g: tensor<2x20x21x144xf32>, %p: tensor<3x3x48x144xf32>, %m: tensor<3x3x48x144xf32>, %r: tensor<f32>)
      -> (tensor<3x3x48x144xf32>, tensor<3x3x48x144xf32>) {
    %d = nn.conv_filter_grad %x, %g strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<2x20x21x48xf32>, tensor<2x20x21x144xf32> -> tensor<3x3x48x144xf32>
    %n = arith.addf %m, %d : tensor<3x3x48x144xf32>
    %b = nn.broadcast %r dims = [] : tensor<f32> -> tensor<3x3x48x144xf32>
    %s = arith.mulf %n, %b : tensor<3x3x48x144xf32>
    %q = arith.subf %p, %s : tensor<3x3x48x144xf32>
    return %n, %q : tensor<3x3x48x144xf32>, tensor<3x3x48x144xf32>
  })";
const char *const kStridedUpdate =
    R"(func.func @k(%x: tensor<2x17x19x48xf32>, %g: tensor<2x8x10x64xf32>, %p: tensor<4x3x48x64xf32>) -> tensor<4x3x48x64xf32> {
    %d = nn.conv_filter_grad %x, %g strides = [2, 2] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<2x17x19x48xf32>, tensor<2x8x10x64xf32> -> tensor<4x3x48x64xf32>
    %q = arith.subf %p, %d : tensor<4x3x48x64xf32>
    return %q : tensor<4x3x48x64xf32>
  })";

/// Adam's, in double precision: vectors of half the lanes, a long epilogue, a factor for each feature.
const char *const kAdamUpdate =
    R"(func.func @k(%x: tensor<1x9x10x32xf64>, %g: tensor<1x9x10x48xf64>, %p: tensor<3x3x32x48xf64>, %m: tensor<3x3x32x48xf64>, %v: tensor<3x3x32x48xf64>, %r: tensor<48xf64>)
      -> (tensor<3x3x32x48xf64>, tensor<3x3x32x48xf64>, tensor<3x3x32x48xf64>) {
    %one = arith.constant dense<1.5> : tensor<3x3x32x48xf64>
    %d = nn.conv_filter_grad %x, %g strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<1x9x10x32xf64>, tensor<1x9x10x48xf64> -> tensor<3x3x32x48xf64>
    %n = arith.addf %m, %d : tensor<3x3x32x48xf64>
    %dd = arith.mulf %d, %d : tensor<3x3x32x48xf64>
    %w = arith.addf %v, %dd : tensor<3x3x32x48xf64>
    %s = arith.addf %w, %one : tensor<3x3x32x48xf64>
    %a = math.absf %s : tensor<3x3x32x48xf64>
    %sq = math.sqrt %a : tensor<3x3x32x48xf64>
    %den = arith.addf %sq, %one : tensor<3x3x32x48xf64>
    %q = arith.divf %n, %den : tensor<3x3x32x48xf64>
    %b = nn.broadcast %r dims = [3] : tensor<48xf64> -> tensor<3x3x32x48xf64>
    %u = arith.mulf %q, %b : tensor<3x3x32x48xf64>
    %z = arith.subf %p, %u : tensor<3x3x32x48xf64>
    return %n, %w, %z : tensor<3x3x32x48xf64>, tensor<3x3x32x48xf64>, tensor<3x3x32x48xf64>
  })";

TEST(ConvTest, UpdateOfFilters) {
  compareWithEvaluator(kAdamUpdate, generate, 1e-12, Coverage::Targets, {3, 0, 4, 1, 2, 2});
  compareWithEvaluator(kUpdate, generate, 2e-4);
  compareWithEvaluator(kUpdate, generate, 2e-4, Coverage::Targets, {3, 0, 2, 1});
  compareWithEvaluator(kUpdate, generate, 2e-4, Coverage::Targets, {2, 0, 3, 1});
  compareWithEvaluator(kStridedUpdate, generate, 5e-5);
  compareWithEvaluator(kStridedUpdate, generate, 5e-5, Coverage::Targets, {2, 0});
}

/// In place: what the epilogue reads where it writes, not what the convolution reads, if as something else again.
TEST(ConvTest, PairsAreWhatIsReadWhereItIsWritten) {
  auto pairsOf = [](llvm::StringRef text) {
    KernelModule m;
    m.context.loadDialect<ortc::nn::NnDialect>();
    auto source = parseSourceString<ModuleOp>(text, &m.context);
    auto function = *source->getOps<func::FuncOp>().begin();
    return ortc::kernels::test::pairsOf(ortc::plan::KernelKind::conv, function);
  };
  EXPECT_EQ(pairsOf(kUpdate), (SmallVector<int64_t>{2, 0, 2, 1, 3, 0, 3, 1}));
  EXPECT_EQ(pairsOf(kStridedUpdate), (SmallVector<int64_t>{2, 0}));
  EXPECT_TRUE(pairsOf(R"(func.func @k(%x: tensor<2x9x8xf32>, %w: tensor<3x8x8xf32>) -> tensor<2x9x8xf32> {
    %c = nn.conv %x, %w strides = [1] padding = [1] to [1] dilations = [1] groups = 1 : tensor<2x9x8xf32>, tensor<3x8x8xf32> -> tensor<2x9x8xf32>
    %s = arith.addf %c, %x : tensor<2x9x8xf32>
    return %s : tensor<2x9x8xf32>
  })")
                  .empty());
  EXPECT_TRUE(
      pairsOf(R"(func.func @k(%x: tensor<3x3x16x16xf32>, %w: tensor<3x3x16x16xf32>) -> tensor<3x3x16x16xf32> {
    %c = nn.conv %x, %w strides = [1, 1] padding = [1, 1] to [1, 1] dilations = [1, 1] groups = 1 : tensor<3x3x16x16xf32>, tensor<3x3x16x16xf32> -> tensor<3x3x16x16xf32>
    %s = arith.addf %c, %w : tensor<3x3x16x16xf32>
    return %s : tensor<3x3x16x16xf32>
  })")
          .empty());
}

/// The result of a convolution, or of its input's gradient, over what it is added to; `isLong`: behind more
/// work than that.
void checkInPlace(Conv given, Kind kind, bool isLong = false) {
  Conv c = complete(std::move(given));
  std::string program = programOf(c, kind, "f32");
  Sizes spatial = kind == Kind::Forward ? outputOf(c) : c.input;
  std::string type = tensor({c.batch}, spatial, {kind == Kind::Forward ? c.features : c.channels}, "f32");
  auto insertBefore = [&](const std::string &place, const std::string &text) {
    program.insert(program.rfind(place), text);
  };
  program.insert(program.find(") ->"), ", %p: " + type);
  std::string sum = isLong ? "  %t = math.tanh %r : " + type + "\n  %e = math.exp %t : " + type + "\n" : "";
  insertBefore("  return", sum + "  %s = arith.addf " + (isLong ? "%e" : "%r") + ", %p : " + type + "\n");
  program.replace(program.rfind("%r :"), 2, "%s");
  compareWithEvaluator(program, generate, 2e-4, Coverage::Widest, {2, 0});
}

/// By all kernels: each stores an element once.
TEST(ConvTest, ResidualInPlace) {
  for (Kind kind : {Kind::Forward, Kind::InputGrad}) {
    bool isForward = kind == Kind::Forward;
    for (int64_t channels : {5, 32, 80}) {
      checkInPlace({2, {9, 10}, channels, {3, 3}, channels, {}, {1, 1}}, kind);
      checkInPlace({2, {9, 10}, channels, {1, 1}, channels}, kind);
    }
    checkInPlace({2, {13, 17}, isForward ? 3 : 20, {3, 3}, isForward ? 20 : 3, {}, {1, 1}}, kind);
    checkInPlace({2, {13, 17}, 3, {4, 4}, 24, {2, 2}, {1, 1}}, kind); // few channels on one side
    checkInPlace({2, {17, 19}, 48, {4, 3}, 64, {2, 2}, {1, 1}}, kind);
    checkInPlace({2, {10, 11}, 24, {5, 5}, 40, {2, 2}, {2, 2}}, kind);
    checkInPlace({1, {1100}, 16, {3}, 24, {}, {1}}, kind);
    for (int64_t channels : {20, 33}) { // depthwise, the last vector in part
      Conv depthwise{2, {9, 10}, channels, {3, 3}, channels, {}, {1, 1}};
      depthwise.groups = channels;
      checkInPlace(depthwise, kind);
      checkInPlace(depthwise, kind, /*isLong=*/true);
    }
    Conv narrow{2, {9, 10}, 12, {3, 3}, 12, {}, {1, 1}}, wide{2, {9, 10}, 40, {3, 3}, 60, {}, {1, 1}};
    narrow.groups = 6;
    wide.groups = 2;
    checkInPlace(narrow, kind);
    checkInPlace(wide, kind);
    checkInPlace({2, {9, 10}, 24, {3, 3}, 24, {2, 2}, {1, 1}}, kind, /*isLong=*/true);
  }
}

void refuse(llvm::StringRef text, llvm::StringRef want) {
  KernelModule m;
  m.context.loadDialect<ortc::nn::NnDialect>();
  auto source = parseSourceString<ModuleOp>(text, &m.context);
  ASSERT_TRUE(source) << text.str();
  auto function = *source->getOps<func::FuncOp>().begin();
  std::string reason;
  EXPECT_FALSE(ortc::kernels::test::isOneKernel(ortc::plan::KernelKind::conv, function, reason))
      << text.str();
  EXPECT_EQ(reason, want.str());
}

TEST(ConvTest, RefusesWhatIsNotElementwise) {
  refuse(R"(func.func @k(%x: tensor<2x9x8xf32>, %w: tensor<1x8x4xf32>) -> tensor<2x4xf32> {
    %c = nn.conv %x, %w strides = [2] padding = [0] to [0] dilations = [1] groups = 1 : tensor<2x9x8xf32>, tensor<1x8x4xf32> -> tensor<2x5x4xf32>
    %s = nn.reduce sum %c axes = [1] : tensor<2x5x4xf32> -> tensor<2x4xf32>
    return %s : tensor<2x4xf32>
  })",
         "what follows is not elementwise on the result");
}

TEST(ConvTest, RefusesEpiloguesOfFilterGradientsThatAreSummedInMemory) {
  refuse(
      R"(func.func @k(%x: tensor<2x9x8xf32>, %g: tensor<2x5x4xf32>, %p: tensor<1x8x4xf32>) -> tensor<1x8x4xf32> {
    %d = nn.conv_filter_grad %x, %g strides = [2] padding = [0] to [0] dilations = [1] groups = 1 : tensor<2x9x8xf32>, tensor<2x5x4xf32> -> tensor<1x8x4xf32>
    %q = arith.subf %p, %d : tensor<1x8x4xf32>
    return %q : tensor<1x8x4xf32>
  })",
      "this filter gradient is stored as it is");
}

TEST(ConvTest, RefusesTransposedResults) {
  refuse(R"(func.func @k(%x: tensor<2x9x8xf32>, %w: tensor<1x8x4xf32>) -> tensor<2x4x5xf32> {
    %c = nn.conv %x, %w strides = [2] padding = [0] to [0] dilations = [1] groups = 1 : tensor<2x9x8xf32>, tensor<1x8x4xf32> -> tensor<2x5x4xf32>
    %t = nn.transpose %c perm = [0, 2, 1] : tensor<2x5x4xf32> -> tensor<2x4x5xf32>
    return %t : tensor<2x4x5xf32>
  })",
         "vectors of the result would be scattered");
}

} // namespace
