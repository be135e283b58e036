// How products are cut into tiles and parts of their depth.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/product/MatrixTile.h"
#include "compiler/backends/gpu/product/TiledProduct.h"
#include "compiler/kernels/SumOrder.h"

#include "mlir/IR/Builders.h"
#include "gtest/gtest.h"

using namespace ortc;
using namespace ortc::gpu;

namespace {

class ProductCutTest : public testing::Test {
protected:
  ProductShape shapeOf(int64_t rows, int64_t columns, int64_t depth, bool isDouble = false) {
    mlir::Builder builder(&context);
    mlir::Type element = isDouble ? mlir::Type(builder.getF64Type()) : mlir::Type(builder.getF32Type());
    return {1, rows, columns, depth, element};
  }
  /// "rows x columns / parts" of the tiles that the generator has.
  std::string cut(ProductShape shape, bool mayCutDepth = true) {
    auto tiles = listTiles(shape);
    ProductCut found = chooseCut(shape, tiles, mayCutDepth, kernels::kPartDepthUnit);
    shape.parts = found.parts;
    EXPECT_EQ(chooseTile(shape, tiles), found.tile)
        << "the launch takes the tile for which parts were chosen";
    return std::to_string(tiles[found.tile].rows) + "x" + std::to_string(tiles[found.tile].columns) + "/" +
           std::to_string(found.parts);
  }

  mlir::MLIRContext context;
};

TEST_F(ProductCutTest, LayersOfAModel) {
  // 96 tiles of 128 x 128 leave 36 multiprocessors without work.
  EXPECT_EQ(cut(shapeOf(2048, 768, 768)), "64x64/1");
  // The gradient by the input of gpt2's head, 256 rows at a time: 24 tiles x 11 parts are two blocks for each.
  EXPECT_EQ(cut(shapeOf(256, 768, 50257)), "64x128/11");
  EXPECT_EQ(cut(shapeOf(256, 50257, 768)), "128x128/1");
  // Too small to be worth a second launch.
  EXPECT_EQ(cut(shapeOf(128, 10, 64)), "16x16/1");
}

TEST_F(ProductCutTest, FilterGradientsOfResNet) {
  auto gathered = [&](int64_t rows, int64_t columns, int64_t depth) {
    ProductShape shape = shapeOf(rows, columns, depth);
    shape.isGathered = true;
    return cut(shape);
  };
  EXPECT_EQ(gathered(576, 64, 100352), "64x64/42");
  EXPECT_EQ(gathered(1152, 128, 25088), "64x128/14");
  EXPECT_EQ(gathered(2304, 256, 6272), "64x128/7");
  EXPECT_EQ(gathered(4608, 512, 1568), "64x64/2");
}

TEST_F(ProductCutTest, DepthThatMayNotBeCut) {
  EXPECT_EQ(cut(shapeOf(256, 768, 50257), /*mayCutDepth=*/false), "16x32/1");
}

TEST_F(ProductCutTest, DoublesHaveNoTilesOf128) {
  for (const TileCandidate &tile : listTiles(shapeOf(4096, 4096, 4096, /*isDouble=*/true)))
    EXPECT_LE(std::max(tile.rows, tile.columns), 64);
}

TEST_F(ProductCutTest, PartsAreNotEmptyAndHaveEnough) {
  for (int64_t depth : {255, 511, 512, 1000, 4097, 50257, 1000003}) {
    ProductShape shape = shapeOf(64, 64, depth);
    shape.parts = chooseCut(shape, listTiles(shape), /*mayCutDepth=*/true, kernels::kPartDepthUnit).parts;
    EXPECT_LE(shape.parts, std::max<int64_t>(1, depth / kernels::kLeastPartDepth)) << depth;
    EXPECT_LE(shape.parts, kernels::kMostDepthParts) << depth;
    EXPECT_LT((shape.parts - 1) * shape.partDepth(), depth) << depth;
    EXPECT_GE(shape.parts * shape.partDepth(), depth) << depth;
  }
}

/// Tiles of any kind: cycles decide, then waves of the blocks that reside together.
TEST_F(ProductCutTest, CandidatesOfOtherGenerators) {
  ProductShape shape = shapeOf(1024, 1024, 1024);
  TileCandidate slow{128, 128, 32, 4000, 0, 0, 2}, fast{128, 128, 32, 1000, 0, 0, 2};
  EXPECT_EQ(chooseCut(shape, {slow, fast}, /*mayCutDepth=*/false, 32).tile, 1u);
  EXPECT_EQ(chooseCut(shape, {fast, slow}, /*mayCutDepth=*/false, 32).tile, 0u);
  // 16 blocks of 256 x 256 take four times as long as 64 of a quarter, all at once.
  TileCandidate large{256, 256, 32, 4000, 0, 0, 1};
  EXPECT_EQ(chooseCut(shape, {large, fast}, /*mayCutDepth=*/false, 32).tile, 1u);
  // One step of a wave: three blocks for the fullest of 132 multiprocessors.
  ProductShape wide = shapeOf(128, 128 * 300, 32);
  EXPECT_EQ(estimateCycles(wide, {128, 128, 32, 1000, 500, 70, 4}, 1),
            kernels::ReferenceGpu::kLaunchCycles + 3 * 1000 + 70);
  // Alone, a block waits.
  EXPECT_EQ(estimateCycles(shapeOf(128, 128, 64), {128, 128, 32, 1000, 500, 70, 4}, 1),
            kernels::ReferenceGpu::kLaunchCycles + 2 * 1500 + 70);
}

/// Large products have large tiles, others as small ones as give every compute unit work. Parts of the depth are those
/// of NVIDIA's.
TEST_F(ProductCutTest, MatrixCoresOfAmd) {
  auto tileOf = [&](const char *processor, int64_t rows, int64_t columns, int64_t depth, bool isNarrow) {
    ProductShape shape = shapeOf(rows, columns, depth);
    if (isNarrow)
      shape.row.narrow = shape.column.narrow = mlir::BFloat16Type::get(&context);
    auto plan = planMatrix(shape, *findProcessor(processor), /*usesTf32=*/false);
    auto nvidia = planMatrix(shape, *findProcessor("sm_80"), /*usesTf32=*/false);
    EXPECT_TRUE(plan && nvidia && plan->parts == nvidia->parts);
    return std::to_string(plan->tile.rows) + "x" + std::to_string(plan->tile.columns);
  };
  // A unit of RDNA 3 has registers for one block of 128 x 128, or for three of 128 x 64.
  for (auto [processor, large] :
       {std::pair("gfx90a", "128x128"), std::pair("gfx942", "128x128"), std::pair("gfx1100", "128x64")}) {
    SCOPED_TRACE(processor);
    EXPECT_EQ(tileOf(processor, 8192, 8192, 8192, /*isNarrow=*/true), large);
    EXPECT_EQ(tileOf(processor, 512, 512, 512, /*isNarrow=*/true), "64x64");
    EXPECT_EQ(tileOf(processor, 512, 512, 512, /*isNarrow=*/false), "64x64");
  }
}

/// A warp that makes few products of a step takes a deeper one, with as many stages as shared memory has room for.
TEST_F(ProductCutTest, CopiesOfSmallTilesAreDeep) {
  auto stagesOf = [&](const char *processor, int64_t depth, int64_t gatheredRun = 0) {
    ProductShape shape = shapeOf(2048, 768, depth);
    shape.row = shape.column = {.isAlongDepth = true, .run = 8, .narrow = mlir::BFloat16Type::get(&context)};
    shape.isGathered = gatheredRun > 0, shape.gatheredRun = gatheredRun;
    auto plan = planMatrix(shape, *findProcessor(processor), /*usesTf32=*/false);
    EXPECT_TRUE(plan && plan->tile.isAsync);
    EXPECT_TRUE(gatheredRun > 0 || plan->tile.rows * plan->tile.columns == 64 * 64);
    return std::to_string(plan->tile.depth) + "/" + std::to_string(plan->tile.stages);
  };
  EXPECT_EQ(stagesOf("sm_90", 768), "64/3");
  EXPECT_EQ(stagesOf("sm_80", 768), "64/2"); // of four blocks
  EXPECT_EQ(stagesOf("sm_86", 768), "64/2"); // of three, where registers suffice for four
  EXPECT_EQ(stagesOf("sm_90", 736), "32/3"); // no multiple of 64
  EXPECT_EQ(stagesOf("sm_90", 768, /*gatheredRun=*/256), "64/3"); // of 128 x 64 results
  EXPECT_EQ(stagesOf("sm_90", 768, /*gatheredRun=*/96), "32/3");  // a stage would have two taps
}

} // namespace
