// How long attention takes, for the plan and the report.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/attention/AttentionTiles.h"

namespace ortc::gpu {

/// Cycles on the machine of `ReferenceGpu`, where two blocks reside: those of tensor cores, or of all instructions
/// where these are more, in every pass. `steps`: of keys that a block passes over, on average.
double estimateCycles(const AttentionForm &form, const AttentionLayout &layout, int64_t blocks, double steps);

} // namespace ortc::gpu
