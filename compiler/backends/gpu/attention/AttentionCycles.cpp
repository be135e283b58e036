// How long attention takes, for the plan and the report.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/attention/AttentionCycles.h"

#include "compiler/kernels/attention/OnlineSoftmax.h"

namespace ortc::gpu {

double estimateCycles(const AttentionForm &form, const AttentionLayout &layout, int64_t blocks,
                      double steps) {
  using Gpu = kernels::ReferenceGpu;
  constexpr double kLoop = 100, kPerElement = 2;
  constexpr int64_t kColumns = 8; // of an instruction
  auto productsOf = [](const MatrixFormat &format, int64_t columns, int64_t depth) {
    return static_cast<double>(columns / kColumns * (depth / kFragment)) *
           static_cast<double>(format.pairs().size());
  };
  auto passes = static_cast<double>(findOnlineSoftmax(form.program) ? 1 : form.program.passes);
  double products = 0;
  for (const AttentionLayout::Scores &scores : layout.scores)
    products += passes * productsOf(formatOf(scores.rows.shape), layout.keys, scores.rows.plan.tile.depth);
  for (const AttentionTile &mixed : layout.mixed)
    products += productsOf(formatOf(mixed.shape), mixed.plan.tile.columns, layout.keys);
  auto perElement = static_cast<double>(layout.keys / 2 * form.program.costPerPoint()) * kPerElement;
  double instructions = products * 1.5 + passes * (kLoop + perElement);
  double warps = static_cast<double>(layout.rows) / kFragment;
  double cycles = std::max(products * warps * Gpu::kProductCycles,
                           instructions * warps / Gpu::kSchedulers / Gpu::kIssueShare);
  return Gpu::kLaunchCycles +
         static_cast<double>(blocks) / static_cast<double>(Gpu::kProcessors) * steps * cycles;
}

} // namespace ortc::gpu
