// Tiles and lanes of narrow groups.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/conv/narrow/NarrowGroups.h"

#include <tuple>

using namespace mlir;

namespace ortc::cpu {

using namespace emit;

using namespace kernels;

static LineTile makeTile(ArrayRef<Walk> phases, int64_t first, int64_t size, int64_t positions) {
  LineTile tile{first, size, {}};
  int64_t stride = phases.size();
  for (int64_t r = 0; r < size; ++r) {
    const Walk &walk = phases[(first + r) % stride];
    for (int64_t t = 0; t < walk.taps; ++t) {
      int64_t position = (first + r) / stride * walk.sourceStride + walk.base + t * walk.tapStep;
      if (position >= 0 && position < positions)
        tile.uses.push_back({position, r, walk.filterBase - t * walk.filterStep});
    }
  }
  llvm::sort(tile.uses, [](auto &a, auto &b) {
    return std::tie(a.position, a.result) < std::tie(b.position, b.result);
  });
  return tile;
}

SmallVector<LineTiles> tileLine(ArrayRef<Walk> phases, int64_t results, int64_t positions, int64_t period,
                                int64_t most) {
  SmallVector<LineTiles> runs;
  int64_t stride = phases.size(), first = 0;
  auto append = [&](int64_t size) {
    LineTile tile = makeTile(phases, first, size, positions);
    first += size;
    if (!runs.empty()) {
      LineTiles &run = runs.back();
      LineTile moved = run.tile;
      int64_t step = size / stride * phases.front().sourceStride;
      for (LineTile::Use &use : moved.uses)
        use.position += run.count * step;
      if (size == moved.size && size % period == 0 && moved.uses == tile.uses) {
        run.sourceStep = step;
        ++run.count;
        return;
      }
    }
    runs.push_back({tile, 1, 0});
  };
  int64_t periods = (results + period - 1) / period;
  for (auto [size, count] : evenTiles(periods, std::max<int64_t>(1, most / period)))
    for (int64_t i = 0; i < count; ++i)
      append(std::min(size * period, results - first));
  return runs;
}

SmallVector<int64_t> newLines(const Walk &walk) {
  SmallVector<int64_t> lines;
  for (int64_t t = 0; t < walk.taps && t * walk.tapStep < walk.sourceStride; ++t)
    lines.push_back(t * walk.tapStep);
  return lines;
}

Value LaneMap::sourceChannel(LoopBuilder &builder, Value channel) const {
  return results == summed && width >= results ? channel : builder.mul(builder.div(channel, results), summed);
}

Value LaneMap::spread(LoopBuilder &builder, Value source, int64_t i) const {
  if (results == 1 && summed == 1)
    return source;
  SmallVector<int64_t> lanes;
  for (int64_t lane = 0; lane < width; ++lane)
    lanes.push_back(lane / results * summed + i);
  return vector::ShuffleOp::create(builder, source, source, lanes);
}

} // namespace ortc::cpu
