// Blocks of the source of a convolution, in a worker's workspace.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/conv/SourceBlock.h"

#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::cpu {

using namespace kernels;

/// Bytes that a block and its border may take in the second-level cache.
static constexpr int64_t kBlockBytes = 256 << 10;

int64_t SourceBlock::elements() const { return nn::elementCount(sizes) * channels; }

void SourceBlock::limitPoints(int64_t most, int64_t points) {
  int64_t span = sizes[0] - (blockPoints - 1) * rowStep;
  blocks = (points + most - 1) / most;
  blockPoints = (points + blocks - 1) / blocks; // even blocks
  blocks = (points + blockPoints - 1) / blockPoints;
  if (copied)
    sizes[0] = (blockPoints - 1) * rowStep + span;
}

SourceBlock planSource(ArrayRef<SmallVector<Walk, 3>> walks, ArrayRef<int64_t> image, int64_t channels,
                       int64_t elementBytes) {
  int64_t rank = image.size();
  SmallVector<int64_t, 3> lowest(rank, 0), highest(rank, 0);
  int64_t points = 1, reach = 0;
  bool any = false;
  for (ArrayRef<Walk> phase : walks) {
    points = std::max(points, phase[0].count);
    if (llvm::any_of(phase, [](const Walk &walk) { return walk.isEmpty(); }))
      continue;
    for (int64_t d = 0; d < rank; ++d) {
      lowest[d] = any ? std::min(lowest[d], phase[d].lowest()) : phase[d].lowest();
      highest[d] = any ? std::max(highest[d], phase[d].highest()) : phase[d].highest();
    }
    reach = std::max(reach, phase[0].base + (phase[0].taps - 1) * phase[0].tapStep);
    any = true;
  }
  SourceBlock block;
  block.image.assign(image.begin(), image.end());
  block.channels = channels;
  block.rowStep = walks.front()[0].sourceStride;
  block.copied = false;
  for (int64_t d = 0; d < rank; ++d)
    block.copied |= lowest[d] < 0 || highest[d] >= image[d];
  if (!block.copied) {
    block.sizes = block.image;
    block.origin.assign(rank, 0);
  } else {
    for (int64_t d = 0; d < rank; ++d) {
      int64_t before = std::max<int64_t>(0, -lowest[d]),
              after = std::max<int64_t>(0, highest[d] + 1 - image[d]);
      block.origin.push_back(before);
      block.sizes.push_back(before + image[d] + after);
    }
    block.origin[0] = -lowest[0]; // block rows begin at the lowest row a block needs, inside the image or not
  }
  int64_t span = reach - lowest[0] + 1;
  int64_t rowBytes =
      std::max<int64_t>(1, nn::elementCount(ArrayRef(block.sizes).drop_front()) * channels * elementBytes);
  int64_t rows = std::max<int64_t>(span, kBlockBytes / rowBytes);
  block.blockPoints = 1;
  if (block.copied)
    block.sizes[0] = span;
  block.limitPoints(std::clamp<int64_t>((rows - span) / block.rowStep + 1, 1, points), points);
  return block;
}

} // namespace ortc::cpu
