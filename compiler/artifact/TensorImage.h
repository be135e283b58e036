// Tensors as the artifact stores them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/artifact/Image.h"
#include "dialects/train/TrainDialect.h"

#include <cstdint>
#include <vector>

namespace ortc::artifact {

/// ONNX's number (TensorProto.DataType) of the element type of what an operation declares: that of its `train.dtype`
/// where it has one, as integers of the program are signless, else `element`.
uint8_t onnxDataType(mlir::Operation *declaration, mlir::Type element);

/// Strides in bytes, by dimension of the tensor as the ONNX file has it.
std::vector<int64_t> storedStrides(train::TensorOp tensor);
/// The same for elements of another type in its layout.
std::vector<int64_t> storedStrides(train::TensorOp tensor, mlir::Type element);
/// The same for a dense array of shape `stored` whose dimension i is dimension permutation[i] of the tensor.
std::vector<int64_t> stridesOf(llvm::ArrayRef<int64_t> stored, llvm::ArrayRef<int64_t> permutation,
                               int64_t elementBytes);

/// Adds the tensor's initial value, in its stored layout, to `image`; nothing when it starts as zero. The image views
/// what the attribute has: the module's context outlives it. False when the attribute's data cannot be read.
bool addInitial(train::TensorOp tensor, uint64_t offset, Image &image);

} // namespace ortc::artifact
