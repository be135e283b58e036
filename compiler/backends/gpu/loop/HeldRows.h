// Rows whose elements stay in registers from pass to pass.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/loop/LoopProgram.h"

namespace ortc::gpu {

/// Whether a thread should hold what one pass over its `count` elements of a row leaves to later ones, rather than load
/// and compute it again: there is something to hold, and registers suffice.
bool holdsRows(const kernels::LoopProgram &program, int64_t count);

} // namespace ortc::gpu
