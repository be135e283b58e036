// How products are cut for AMD's matrix cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nothing here was measured: figures of machines are AMD's (data sheets of MI250X, MI300X and RX 7900 XTX; cycles of
// instructions by the Matrix Instruction Calculator), counts of instructions are LLVM 22's for gfx90a and gfx1100.
#include "compiler/backends/gpu/product/AmdTile.h"

#include "compiler/backends/gpu/product/ProductCut.h"
#include "compiler/kernels/SumOrder.h"

using namespace mlir;

namespace ortc::gpu {

namespace {

struct Machine {
  llvm::StringLiteral name;
  int64_t units;      ///< compute units; of an MI250X those of one die
  int64_t simds;      ///< of a unit
  int64_t registers;  ///< of a SIMD, for each lane
  double issueCycles; ///< of an instruction of a wavefront
  struct Product {
    double cycles; ///< of a fragment's
    bool isBeside; ///< other instructions run beside it
  } narrow, full;  ///< of numbers of 16 bits, of f32
};
constexpr Machine kMachines[] = {
    {"gfx90a", 110, 4, 512, 4, {32, true}, {128, true}},
    {"gfx942", 304, 4, 512, 4, {16, true}, {128, false}},
    {"gfx1100", 96, 2, 1536, 1, {32, false}, {}},
};

/// Tiles for wavefronts of 64 lanes, which have registers for 64 x 64 sums; of 32 lanes; and of 32 lanes with parts of
/// f32 numbers, whose fragments take 96 registers.
constexpr MatrixTile kWideTiles[] = {
    {128, 128, 64, 64}, {128, 64, 64, 32}, {64, 128, 32, 64}, {64, 64, 32, 32}};
constexpr MatrixTile kTiles[] = {{128, 128, 64, 32}, {128, 64, 64, 32}, {64, 128, 64, 32}, {64, 64, 32, 32}};
constexpr MatrixTile kTilesOfParts[] = {
    {128, 128, 32, 32}, {128, 64, 32, 32}, {64, 128, 32, 32}, {64, 64, 32, 32}};

ArrayRef<MatrixTile> tilesOf(const MatrixCore &core, const MatrixFormat &format) {
  if (core.lanes == 64)
    return kWideTiles;
  return format.isExact() ? ArrayRef(kTiles) : ArrayRef(kTilesOfParts);
}

/// Registers of a lane: sums, the fragments of a step, what is loaded for the next stage, and places.
int64_t estimateRegisters(const MatrixTile &tile, const MatrixFormat &format, int64_t lanes) {
  constexpr int64_t kPlaces = 64;
  int64_t sums = tile.warpRows * tile.warpColumns / lanes;
  int64_t fragments =
      (tile.warpRows * format.rowParts + tile.warpColumns * format.columnParts) / kFragment * 8;
  int64_t loaded = (tile.rows + tile.columns) * tile.depth / tile.threads(lanes);
  return sums + fragments + loaded + kPlaces;
}

TileCandidate estimateAmdTile(const MatrixTile &tile, const ProductShape &shape, const MatrixFormat &format,
                              int64_t lanes, const Machine &machine) {
  // Instructions: of a loop, of a number that is copied, loaded by itself, or split; of a sum, and cycles of the ends.
  constexpr double kLoop = 60, kCopied = 2, kSingle = 6, kSplit = 22, kStored = 20, kEnds = 2500;
  constexpr double kCachedBytes = 32; // a cycle: half of what a unit's path to the second-level cache has
  auto waves = static_cast<double>(tile.warps()) / static_cast<double>(machine.simds);
  auto threads = static_cast<double>(tile.threads(lanes));
  double fragments = static_cast<double>(tile.warpRows / kFragment * (tile.warpColumns / kFragment));
  double products = fragments * static_cast<double>(tile.depth / kFragment * int64_t(format.pairs().size()));
  const Machine::Product &product = format.number == MatrixNumber::f32 ? machine.full : machine.narrow;
  double multiplied = products * product.cycles;
  auto staged = [&](Side side) {
    double numbers = static_cast<double>(tile.extentOf(side) * tile.depth) / threads;
    return numbers * (format.partsOf(side) > 1 ? kSplit : shape.layoutOf(side).run == 1 ? kSingle : kCopied);
  };
  double promoted = format.isExact() ? 0 : fragments * static_cast<double>(kFragment * kFragment / lanes);
  double others = (kLoop + staged(Side::row) + staged(Side::column) + promoted) * machine.issueCycles;
  double busy = product.isBeside ? std::max(multiplied, others) : multiplied + others;
  double bytes = static_cast<double>((tile.rows + tile.columns) * tile.depth * bytesOf(format.number));
  int64_t byShared = kAmdSharedBytes / (tile.stageBytes(format) * tile.stages);
  int64_t byRegisters =
      machine.registers * machine.simds / (estimateRegisters(tile, format, lanes) * tile.warps());
  double stored = kStored * static_cast<double>(tile.rows * tile.columns) / threads;
  return {tile.rows,
          tile.columns,
          tile.depth,
          std::max(busy * waves / kernels::ReferenceGpu::kIssueShare, bytes / kCachedBytes),
          kernels::ReferenceGpu::kStepLatency / 2,
          kEnds + stored * waves * machine.issueCycles,
          std::max<int64_t>(std::min(byShared, byRegisters), 1)};
}

} // namespace

MatrixTile chooseAmdTile(const ProductShape &shape, const MatrixCore &core, const MatrixFormat &format,
                         const Processor &processor) {
  const Machine *machine = llvm::find_if(kMachines, [&](auto &each) { return each.name == processor.name; });
  assert(machine != std::end(kMachines) && "every processor with a core is known");
  SmallVector<MatrixTile> tiles(tilesOf(core, format));
  SmallVector<TileCandidate> candidates;
  for (MatrixTile &tile : tiles) {
    tile.depth = 32 * 2 / bytesOf(format.number);
    tile.stages = format.isExact() ? 2 : 1; // two of all parts of f32 numbers have no room
    candidates.push_back(estimateAmdTile(tile, shape, format, core.lanes, *machine));
  }
  return tiles[chooseTile(shape, candidates, machine->units)];
}

} // namespace ortc::gpu
