//===- ConvKernel.h - convolution and its gradients -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/codegen/KernelFunction.h"
#include "compiler/codegen/Target.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace ortc::codegen {

/// Whether one convolution kernel computes `outputs` from `inputs`, with everything between defined by operations outside
/// of any plan.kernel: exactly one convolution, on inputs as they are; behind it elementwise operations on every element of
/// the result once (FusedEpilogue.h), whose operands lie along the features as the result does or do not change with them.
/// A conv_filter_grad takes some only where its algorithm has whole sums before it stores any (Winograd.h). `reason` says
/// what stands against it.
bool isFusedConv(mlir::ValueRange inputs, mlir::ValueRange outputs, std::string &reason);

/// Pairs of an input and an output that may share memory in that kernel (FusedEpilogue::inPlacePairs).
llvm::SmallVector<int64_t> convInPlacePairs(mlir::ValueRange inputs, mlir::ValueRange outputs);

/// Creates the kernel of a tensor program that `isFusedConv` accepts. `buffers` are the function's arguments, then its
/// results. Implicit GEMM: no im2col buffer; blocks of images are copied into the worker's workspace where the window
/// leaves the image or the reduction is cut, panels of the filter always. An element of conv and conv_input_grad is summed
/// in blocks of channels, in these over the taps in order of source position, channels innermost; one of
/// conv_filter_grad in blocks of rows, image after image; towards few channels a point's share is summed over features, then
/// added to its window's (ScatteredInputGrad.cpp): bits depend on the shape alone. Points are products of matrices
/// (Contraction.h), dense ones with small windows have an algorithm with fewer products (Winograd.h). Workspace: the block,
/// the panels, sums between blocks of the reduction.
mlir::FailureOr<KernelInfo> generateConv(mlir::ModuleOp module, mlir::func::FuncOp function,
                                         llvm::ArrayRef<KernelBuffer> buffers, const Target &target,
                                         Numerics numerics, const KernelChoices *choices = nullptr);

} // namespace ortc::codegen
