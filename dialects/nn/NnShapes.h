// Result shapes of nn operations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function per shape rule, shared by the verifiers and by TensorBuilder.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace ortc::nn {

using Shape = llvm::SmallVector<int64_t, 6>;

/// Whether `axes` are strictly increasing and lie in [0, rank).
bool areSortedAxes(llvm::ArrayRef<int64_t> axes, int64_t rank);
/// The dimensions of `shape` that are not in `axes` (sorted).
Shape dropAxes(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> axes);
/// result[i] = shape[permutation[i]].
Shape permuteShape(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> permutation);
/// The permutation that undoes `permutation`.
Shape invertPermutation(llvm::ArrayRef<int64_t> permutation);
/// `shape` with dimension `axis` replaced by `inner`.
Shape replaceAxis(llvm::ArrayRef<int64_t> shape, int64_t axis, llvm::ArrayRef<int64_t> inner);
/// The dimensions of a side of a dot that are neither batch nor contracted.
Shape freeDimensions(int64_t rank, llvm::ArrayRef<int64_t> batch, llvm::ArrayRef<int64_t> contract);
/// floor((input + padding - dilation * (window - 1) - 1) / stride) + 1; below 1 when the window does not fit.
int64_t windowedSize(int64_t input, int64_t padding, int64_t window, int64_t stride, int64_t dilation);
/// How many elements a step along each dimension passes in row-major order.
Shape rowMajorStrides(llvm::ArrayRef<int64_t> shape);
/// Product of the dimensions.
int64_t elementCount(llvm::ArrayRef<int64_t> shape);
/// The type of max_pool's taps: i8 for windows of at most 128 places, i32 for larger ones.
mlir::Type tapType(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> window);

} // namespace ortc::nn
