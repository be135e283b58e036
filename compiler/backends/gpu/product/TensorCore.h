// Instructions of NVIDIA's tensor cores, and the copies that feed them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All lanes of a warp make them together: none may stand under a condition that lanes decide differently. LLVM does not
// know this of products (their intrinsics are not convergent).
#pragma once

#include "compiler/backends/gpu/ThreadBuilder.h"

namespace ortc::gpu {

/// Elements of a product of one instruction: kCoreRows x kCoreDepth times kCoreDepth x kCoreColumns.
inline constexpr int64_t kCoreRows = 16, kCoreColumns = 8, kCoreDepth = 16;

/// Four matrices of 8 x 8 elements of 16 bits. Lane 8m + r gives the address of row r of matrix m, 16 bytes in shared
/// memory; it gets two neighbours of a row of each matrix (`transposed`: of a column), in a register each (i32).
llvm::SmallVector<mlir::Value> loadMatrices(ThreadBuilder &b, mlir::Value pointer, bool transposed);

/// rows * columns + sums, as PTX numbers their registers: 4 and 2 of 16-bit floats, 4 of f32. `isHalf`: these are f16,
/// else bf16.
llvm::SmallVector<mlir::Value> multiplyMatrices(ThreadBuilder &b, bool isHalf, mlir::ValueRange rows,
                                                mlir::ValueRange columns, mlir::ValueRange sums);

/// Two f32 values, rounded to bf16, in a register; `low` is in its lower half.
mlir::Value roundPair(ThreadBuilder &b, mlir::Value low, mlir::Value high);
/// Those two as f32.
std::pair<mlir::Value, mlir::Value> extendPair(ThreadBuilder &b, mlir::Value pair);

/// Begins to copy 16 bytes of a buffer to shared memory, or zeros where the condition does not hold (null: it always
/// does). Copies since the last `closeCopies` are a group.
void copyAsync(ThreadBuilder &b, mlir::Value shared, mlir::Value source, mlir::Value isThere);
void closeCopies(ThreadBuilder &b);
/// Waits for all groups of the thread but the last `pending`.
void waitForCopies(ThreadBuilder &b, int64_t pending);

} // namespace ortc::gpu
