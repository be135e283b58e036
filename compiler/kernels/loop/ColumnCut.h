// How the rows of a reduction over leading dimensions are shared out on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/loop/LoopProgram.h"

namespace ortc::kernels {

/// Columns that lie beside each other, a group: a lane has one of them, and a warp a part of the rows.
inline constexpr int64_t kColumnGroup = 32;

struct ColumnCut {
  unsigned dim = 0;     ///< the reduced dimension that is cut
  int64_t partSize = 1; ///< of its indices, in all parts but the last
  int64_t warps = 1;    ///< of a block, a part each
  int64_t chunks = 1;   ///< blocks that have the same points; with several, a second launch adds their sums
};

/// The cut, which depends on the program alone, or nothing where a thread for each point does as well.
std::optional<ColumnCut> chooseColumnCut(const LoopProgram &program);

/// Bytes of the sums of a point, with at least one for each.
int64_t sumBytes(const LoopProgram &program);

} // namespace ortc::kernels
