// How the rows of a reduction over leading dimensions are shared out on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/loop/ColumnCut.h"

#include "compiler/kernels/SumOrder.h"
#include "llvm/Support/MathExtras.h"

namespace ortc::kernels {

/// Bytes of sums that a block shares at most.
static constexpr int64_t kSharedSums = 48 << 10;

int64_t sumBytes(const LoopProgram &program) {
  int64_t bytes = 0;
  for (const LoopReduction &reduction : program.reductions) {
    bool isNarrow = reduction.element.isF16() || reduction.element.isBF16(); // summed in f32
    bytes += isNarrow ? 4 : std::max(8u, reduction.element.getIntOrFloatBitWidth()) / 8;
  }
  return bytes;
}

/// Whether all there is to store are results of points, after one walk over the rows.
static bool isPlainSum(const LoopProgram &program) {
  return program.passes == 1 &&
         llvm::all_of(program.outputs, [](const LoopOutput &output) { return output.perRow; });
}

std::optional<ColumnCut> chooseColumnCut(const LoopProgram &program) {
  if (program.lanesReduced() || program.reductions.empty())
    return std::nullopt;
  ColumnCut cut;
  for (auto [d, dim] : llvm::enumerate(program.dims))
    if (dim.reduced && (!program.dims[cut.dim].reduced || dim.size > program.dims[cut.dim].size))
      cut.dim = d;
  int64_t size = program.dims[cut.dim].size, rows = program.elements(/*reduced=*/true);
  int64_t groups = llvm::divideCeilSigned(program.elements(/*reduced=*/false), kColumnGroup);
  int64_t parts = std::min(llvm::divideCeilSigned(kColumnParts, groups), rows / kLeastColumnRows);
  bool mayHaveChunks = isPlainSum(program) && rows > kBlockRows && groups < kBusyColumnGroups;
  if (!mayHaveChunks)
    parts = std::min(parts, kMostColumnWarps);
  int64_t unit = rows == size ? kReductionBlock : 1;
  cut.partSize = llvm::alignTo(llvm::divideCeilSigned(size, std::max<int64_t>(parts, 1)), unit);
  parts = llvm::divideCeilSigned(size, cut.partSize);
  cut.warps = std::min(parts, mayHaveChunks ? kChunkWarps : kMostColumnWarps);
  cut.chunks = llvm::divideCeilSigned(parts, cut.warps);
  if (parts <= 1 || program.passes * cut.warps * kColumnGroup * sumBytes(program) > kSharedSums)
    return std::nullopt;
  return cut;
}

} // namespace ortc::kernels
