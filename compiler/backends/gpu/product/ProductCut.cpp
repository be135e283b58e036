// How a product is cut: the tile that a block makes, and the parts of the depth that are summed side by side.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A multiprocessor has as many blocks as fit; when one ends, the next one comes. Blocks that reside together share its
// cycles, and each waits while others work. All blocks are equal, so they come in waves, and the last wave may have
// few.
#include "compiler/backends/gpu/product/ProductCut.h"

#include "compiler/kernels/SumOrder.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using Gpu = ortc::kernels::ReferenceGpu;

namespace ortc::gpu {

/// Cycles of a wave with `resident` blocks on the fullest multiprocessor.
static double waveCycles(const TileCandidate &tile, int64_t steps, int64_t resident) {
  double stepCycles = std::max(static_cast<double>(resident) * tile.cycles, tile.cycles + tile.latency);
  return static_cast<double>(steps) * stepCycles + tile.overhead;
}

double estimateCycles(const ProductShape &shape, const TileCandidate &tile, int64_t parts,
                      int64_t processors) {
  int64_t blocks = parts * shape.countTiles(tile.rows, tile.columns);
  int64_t steps = llvm::divideCeilSigned(llvm::divideCeilSigned(shape.depth, parts), tile.depth);
  int64_t wave = processors * tile.resident, rest = blocks % wave;
  double cycles =
      Gpu::kLaunchCycles + static_cast<double>(blocks / wave) * waveCycles(tile, steps, tile.resident);
  if (rest > 0)
    cycles += waveCycles(tile, steps, llvm::divideCeilSigned(rest, processors));
  if (parts == 1)
    return cycles;
  double elements = static_cast<double>(parts) * static_cast<double>(shape.results());
  double bytes = 2 * elements * (shape.element.getIntOrFloatBitWidth() / 8);
  return cycles + Gpu::kLaunchCycles + bytes / Gpu::kBytesPerCycle +
         static_cast<double>(parts) * Gpu::kJoinLatency;
}

/// The parts that there are when each has the same depth but the last one.
static int64_t wholeParts(int64_t depth, int64_t parts, int64_t unit) {
  return llvm::divideCeilSigned(depth, llvm::alignTo(llvm::divideCeilSigned(depth, parts), unit));
}

static std::pair<size_t, double> findFastest(const ProductShape &shape, llvm::ArrayRef<TileCandidate> tiles,
                                             int64_t parts, int64_t processors = Gpu::kProcessors) {
  std::pair<size_t, double> best{0, std::numeric_limits<double>::infinity()};
  for (auto [i, tile] : llvm::enumerate(tiles))
    if (double cycles = estimateCycles(shape, tile, parts, processors); cycles < best.second)
      best = {i, cycles};
  return best;
}

size_t chooseTile(const ProductShape &shape, llvm::ArrayRef<TileCandidate> tiles, int64_t processors) {
  return findFastest(shape, tiles, shape.parts, processors).first;
}

ProductCut chooseCut(const ProductShape &shape, llvm::ArrayRef<TileCandidate> tiles, bool mayCutDepth,
                     int64_t depthUnit) {
  using namespace kernels;
  int64_t most = mayCutDepth ? std::min(kMostDepthParts, shape.depth / kLeastPartDepth) : 1;
  struct Choice {
    ProductCut cut;
    double cycles;
  };
  llvm::SmallVector<Choice> choices;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t parts = 1; parts <= std::max<int64_t>(most, 1); ++parts) {
    if (wholeParts(shape.depth, parts, depthUnit) != parts)
      continue;
    auto [tile, cycles] = findFastest(shape, tiles, parts);
    choices.push_back({{tile, parts}, cycles});
    least = std::min(least, cycles);
  }
  // Partial sums take memory.
  for (const Choice &choice : choices)
    if (choice.cycles <= least * kWorthwhileParts)
      return choice.cut;
  return {};
}

} // namespace ortc::gpu
