// How a product is cut for tensor cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/product/MatrixTile.h"

#include "compiler/backends/gpu/product/AmdTile.h"
#include "compiler/backends/gpu/product/ProductCut.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::gpu {

/// Shorter sides and sums leave most of a tensor core's products unused.
static constexpr int64_t kLeastSide = 64, kLeastDepth = 64;

MatrixFormat formatOf(const ProductShape &shape) {
  auto isHalf = [](Type type) { return type && type.isF16(); };
  if (isHalf(shape.row.narrow) && isHalf(shape.column.narrow))
    return {MatrixNumber::f16, 1, 1};
  auto partsOf = [](Type narrow) -> int64_t {
    bool isExact = narrow && (narrow.isBF16() || narrow.isInteger(8));
    return isExact ? 1 : kWideParts;
  };
  return {MatrixNumber::bf16, partsOf(shape.row.narrow), partsOf(shape.column.narrow)};
}

MatrixFormat formatOf(const ProductShape &shape, const MatrixCore &core) {
  MatrixFormat format = formatOf(shape);
  bool isLossless = format.isExact() && (format.number != MatrixNumber::f16 || core.hasHalf);
  return isLossless || !core.hasFull ? format : MatrixFormat{MatrixNumber::f32, 1, 1};
}

/// Whether copies bring a side to shared memory as it is stored, 16 bytes at a time.
static bool isCopied(const ProductShape &shape, Side side) {
  const OperandLayout &layout = shape.layoutOf(side);
  return layout.narrow && (layout.narrow.isBF16() || layout.narrow.isF16()) && layout.run >= 8;
}

SmallVector<std::pair<int64_t, int64_t>> MatrixFormat::pairs() const {
  SmallVector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t both = kWideParts - 1; both >= 0; --both)
    for (int64_t row = 0; row <= both; ++row)
      if (row < rowParts && both - row < columnParts)
        pairs.push_back({row, both - row});
  return pairs;
}

/// A tile, and registers that a thread needs at most where nothing is split, loaded or gathered.
struct KnownTile {
  MatrixTile tile;
  int64_t registers;
};
/// The first ones are for all formats: with parts of f32 numbers a warp has registers for 64 x 32 results. A block of
/// four warps may have 160 registers, which leaves three of them: with 128 ptxas 13 moves 20 sums in each step.
static constexpr KnownTile kTiles[] = {
    {{128, 128, 64, 32}, 128}, {{128, 64, 64, 32}, 160},  {{64, 128, 64, 32}, 160}, {{64, 64, 32, 32}, 128},
    {{128, 128, 64, 64}, 255}, {{128, 256, 64, 64}, 255}, {{256, 128, 64, 64}, 255}};
static constexpr size_t kTilesOfParts = 4;
/// For processors with products of groups, where both sides are copied. A step is as deep as lines of 128 bytes.
static constexpr KnownTile kGroupTiles[] = {{{128, 256, 16, 256, 64, 4, true, true}, 255},
                                            {{256, 128, 32, 128, 64, 4, true, true}, 255},
                                            {{128, 128, 16, 128, 64, 3, true, true}, 128}};

SmallVector<MatrixTile> listGroupTiles() {
  return llvm::map_to_vector(kGroupTiles, [](const KnownTile &known) { return known.tile; });
}

/// Blocks of a multiprocessor with 65,536 registers, of so many a thread, and with 227 KiB of shared memory, which
/// stages of groups fill with numbers of 16 bits.
static int64_t blocksWith(const MatrixTile &tile, int64_t registers) {
  int64_t blocks = (int64_t(64) << 10) / (registers * tile.threads(kWarp));
  if (tile.isGrouped)
    blocks = std::min(blocks, (int64_t(227) << 10) / (tile.stages * tile.stageBytes(MatrixFormat())));
  return std::max<int64_t>(blocks, 1);
}

/// Products of a warp in a step of a tile that is copied, at least: barriers, addresses and the stage take as many
/// instructions in a deeper step. Where places are gathered there are more of these.
static constexpr int64_t kLeastProducts = 32, kLeastGatheredProducts = 64;
/// Stages of copies: as many as are on their way, and the one that is read.
static constexpr int64_t kStages = 3, kFewStages = 2;

/// A tile whose copies run ahead. Its step is twice as deep where that is wanted and possible: with three stages where
/// shared memory has room for those of all blocks that registers suffice for, with two for half of them.
static MatrixTile withCopies(const KnownTile &known, const ProductShape &shape, int64_t registers,
                             const Processor &processor) {
  constexpr int64_t kOfABlock = 1 << 10; // beside its own
  MatrixTile tile = known.tile;
  tile.stages = kStages, tile.isAsync = true;
  const int64_t products = tile.warpRows / 16 * (tile.warpColumns / 8) * (tile.depth / 16);
  const bool isCut = shape.gatheredRun % tile.depth == 0 && shape.gatheredRun % (2 * tile.depth) != 0;
  if (products >= (shape.isGathered ? kLeastGatheredProducts : kLeastProducts) || isCut ||
      shape.depth % (2 * tile.depth) != 0)
    return tile;
  const int64_t stageBytes =
      2 * tile.stageBytes(MatrixFormat()); // of the deeper step, with numbers of 16 bits
  auto fit = [&](int64_t blocks, int64_t stages) {
    return blocks * (stages * stageBytes + kOfABlock) <= processor.sharedBytes;
  };
  const int64_t blocks = blocksWith(tile, registers);
  if (fit(blocks, kStages))
    tile.depth *= 2;
  else if (fit(llvm::divideCeilSigned(blocks, 2), kFewStages))
    tile.depth *= 2, tile.stages = kFewStages;
  return tile;
}

/// Registers of a thread. `isLean`: places are not computed for each element, and numbers are copied without
/// registers.
static int64_t registersOf(const KnownTile &known, const MatrixFormat &format, bool isLean) {
  if (!format.isExact() || format.number == MatrixNumber::f32)
    return 255;
  return isLean ? known.registers : std::max<int64_t>(known.registers, 168);
}

/// The cost of a tile on the machine of `ReferenceGpu`. A step takes the most of the cycles of the tensor cores, of all
/// instructions, and of the cache that operands come from. Products of groups reach 95 % of the data sheet's rate
/// (arXiv 2402.13499). Other instructions, as ptxas 13 makes them: an addition for each sum that is promoted, 5.5 to
/// load and split a f32 number, 2.5 to load and round one, 1 for a number of 16 bits, 4 for a number that is loaded by
/// itself. `isAsync`: copies run ahead; else only the next step is loaded. `areSingle`: numbers of at
/// least one side are loaded one by one.
static TileCandidate estimateMatrixTile(const KnownTile &known, const ProductShape &shape,
                                        const MatrixFormat &format, bool isAsync, bool areSingle) {
  const MatrixTile &tile = known.tile;
  using Gpu = kernels::ReferenceGpu;
  constexpr double kSplit = 5.5, kRounded = 2.5, kCopied = 1, kSingle = 4, kLoop = 50, kEnds = 2500,
                   kStored = 20, kGroupRate = 0.95 * 2048;
  auto warps = static_cast<double>(tile.warps());
  auto products = static_cast<double>(tile.warpRows / 16 * (tile.warpColumns / 8));
  const bool isFull = format.number == MatrixNumber::f32; // with half the depth an instruction
  double alongDepth = static_cast<double>(tile.depth / (isFull ? 8 : 16));
  double multiplied = tile.isGrouped ? 0 : products * alongDepth * static_cast<double>(format.pairs().size());
  double productCycles = tile.isGrouped
                             ? static_cast<double>(tile.rows * tile.columns * tile.depth) / kGroupRate
                             : multiplied * warps * Gpu::kProductCycles;
  auto cyclesOf = [&](double instructions) {
    return instructions * warps / Gpu::kSchedulers / Gpu::kIssueShare;
  };
  auto staged = [&](Side side) {
    auto elements =
        static_cast<double>(tile.extentOf(side) * tile.depth) / static_cast<double>(tile.threads(kWarp));
    double once = areSingle ? kSingle : isFull ? kRounded : kCopied;
    return elements * (format.partsOf(side) > 1 ? kSplit : once);
  };
  double others = kLoop + staged(Side::row) + staged(Side::column) + (format.isExact() ? 0 : products * 4);
  auto bytes = [&](Side side) {
    Type narrow = shape.layoutOf(side).narrow;
    unsigned bits = (narrow ? narrow : shape.element).getIntOrFloatBitWidth();
    return static_cast<double>(tile.extentOf(side) * tile.depth * bits / 8);
  };
  double cycles = std::max({productCycles, cyclesOf(multiplied * 1.2 + others),
                            (bytes(Side::row) + bytes(Side::column)) / Gpu::kCachedBytesPerCycle});
  double stored = static_cast<double>(tile.rows * tile.columns) / static_cast<double>(tile.threads(kWarp));
  return {tile.rows,
          tile.columns,
          tile.depth,
          cycles,
          Gpu::kStepLatency / (isAsync ? 4 : 2),
          kEnds + cyclesOf(kStored * stored),
          blocksWith(tile, registersOf(known, format, isAsync && !shape.isGathered))};
}

std::optional<MatrixPlan> planMatrix(const ProductShape &shape, const Processor &processor, bool usesTf32) {
  MatrixPlan plan;
  plan.core = findMatrixCore(processor);
  if (!plan.core || !shape.element.isF32())
    return std::nullopt;
  if (std::min(shape.rows, shape.columns) < kLeastSide || shape.depth < kLeastDepth)
    return std::nullopt;
  plan.format = formatOf(shape);
  const bool isNarrow = plan.format.isExact();
  if (const MatrixCore *rounding = usesTf32 && !isNarrow ? findTf32Core(processor) : nullptr) {
    plan.core = rounding;
    plan.format = {MatrixNumber::f32, 1, 1};
  }
  plan.readsAcross = plan.core->readsAcrossDepth;
  SmallVector<KnownTile> tiles(ArrayRef(kTiles).take_front(isNarrow ? std::size(kTiles) : kTilesOfParts));
  auto listCandidates = [&](bool isAsync, bool areSingle) {
    SmallVector<TileCandidate> candidates;
    for (const KnownTile &known : tiles)
      candidates.push_back(estimateMatrixTile(known, shape, plan.format, isAsync, areSingle));
    return candidates;
  };
  // Bits depend on the parts, and whether numbers are copied depends on how the plan places them.
  ProductShape cut = shape;
  cut.parts = plan.parts =
      chooseCut(shape, listCandidates(isNarrow, false), shape.mayCutDepth, kMatrixPartUnit).parts;
  bool isAsync = plan.core->copies && isNarrow && isCopied(shape, Side::row) && isCopied(shape, Side::column);
  bool areSingle = std::min(shape.row.run, shape.column.run) == 1;
  auto registersWith = [&](const KnownTile &known) {
    return registersOf(known, plan.format, isAsync && !shape.isGathered);
  };
  if (isAsync && processor.isNvidia())
    for (KnownTile &known : tiles)
      known.tile = withCopies(known, shape, registersWith(known), processor);
  if (isAsync && processor.hasGroupProducts)
    llvm::append_range(tiles, kGroupTiles);
  auto candidates = listCandidates(isAsync, areSingle);
  size_t number = chooseTile(cut, candidates);
  // On the reference machine, whose tile this is, for every vendor.
  plan.cycles = estimateCycles(cut, candidates[number], plan.parts);
  if (processor.isNvidia()) {
    plan.tile = tiles[number].tile;
    plan.resident = blocksWith(plan.tile, registersWith(tiles[number]));
  } else {
    plan.format = formatOf(shape, *plan.core);
    plan.tile = chooseAmdTile(cut, *plan.core, plan.format, processor);
  }
  return plan;
}

} // namespace ortc::gpu
