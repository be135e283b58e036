// How products are cut for AMD's matrix cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/product/MatrixTile.h"

namespace ortc::gpu {

/// Bytes that a block can share.
inline constexpr int64_t kAmdSharedBytes = 64 << 10;

/// The tile that takes least on the processor with the parts that the shape has, whose sums do not depend on it.
MatrixTile chooseAmdTile(const ProductShape &shape, const MatrixCore &core, const MatrixFormat &format,
                         const Processor &processor);

} // namespace ortc::gpu
