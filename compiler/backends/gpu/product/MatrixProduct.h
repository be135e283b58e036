// Products on tensor cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/product/MatrixTile.h"

namespace ortc::gpu {

/// Emits the work of the block of this number. `store`: of a finished sum, by the number of its part.
void emitMatrixTile(KernelBuilder &kernel, ThreadBuilder &b, const ProductShape &shape,
                    const MatrixPlan &plan, ProductAccess &access,
                    llvm::function_ref<void(mlir::Value part, mlir::Value product, mlir::Value row,
                                            mlir::Value column, mlir::Value sum)>
                        store);

} // namespace ortc::gpu
