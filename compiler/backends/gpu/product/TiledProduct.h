// Products tile by tile: operands go through shared memory, sums stay in registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/product/Product.h"

#include <optional>

namespace ortc::gpu {

/// How a product is cut. A block of kTileThreads threads makes `rows` x `columns` results.
struct ProductTile {
  int64_t rows = 64, columns = 64, depth = 16;
};
inline constexpr int64_t kTileThreads = 256;
/// Blocks that fill a device: smaller tiles where larger ones would be fewer.
inline constexpr int64_t kFewBlocks = 128;

/// The tile, or nothing where results are so few in a row or a column that a thread each does as well.
std::optional<ProductTile> chooseTile(const ProductShape &shape);

/// Blocks that make all results of one part.
int64_t countTiles(const ProductShape &shape, const ProductTile &tile);

/// What the block of this number does. `store`: of a finished sum, by the number of its part.
void emitTile(KernelBuilder &kernel, ThreadBuilder &b, const ProductShape &shape, const ProductTile &tile,
              ProductAccess &access, const MathOptions &options,
              llvm::function_ref<void(mlir::Value part, mlir::Value product, mlir::Value row,
                                      mlir::Value column, mlir::Value sum)>
                  store);

} // namespace ortc::gpu
