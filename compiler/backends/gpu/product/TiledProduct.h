// Products tile by tile: operands go through shared memory, sums stay in registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/product/ProductCut.h"

namespace ortc::gpu {

/// How a product is cut. A block of kTileThreads threads makes `rows` x `columns` results.
struct ProductTile {
  int64_t rows = 64, columns = 64, depth = 16;
  int64_t resident = 0; ///< blocks for which a multiprocessor must have registers; 0: as it comes
};
inline constexpr int64_t kTileThreads = 256;

/// Whether results are so few in a row or a column that a thread each does as well.
bool isNarrow(const ProductShape &shape);

/// The tiles that a block can make, with what they take.
llvm::SmallVector<TileCandidate> listTiles(const ProductShape &shape);

/// Emits the work of the block of this number. `store`: of a finished sum, by the number of its part.
void emitTile(KernelBuilder &kernel, ThreadBuilder &b, const ProductShape &shape, const ProductTile &tile,
              ProductAccess &access, const MathOptions &options,
              llvm::function_ref<void(mlir::Value part, mlir::Value product, mlir::Value row,
                                      mlir::Value column, mlir::Value sum)>
                  store);

} // namespace ortc::gpu
