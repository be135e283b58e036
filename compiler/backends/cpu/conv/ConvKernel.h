// Convolution and its gradients.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/cpu/Target.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ortc::cpu {

/// Creates the kernel of a tensor program that is a ConvForm. `buffers` are the function's arguments, then its
/// results. Implicit GEMM: no im2col buffer; blocks of images are copied into the worker's workspace where the window
/// leaves the image or the reduction is cut, panels of the filter always. An element of conv and
/// conv_input_grad is summed in blocks of channels, in these over the taps in order of source position,
/// channels innermost; one of conv_filter_grad in blocks of rows, image after image; towards few channels a
/// point's share is summed over features, then added to its window's (shallow/InputGrad.cpp): bits depend on
/// the shape alone. Points are products of matrices (Contraction.h), dense ones with small windows have an
/// algorithm with fewer products (Winograd.h). Workspace: the block, the panels, sums between blocks of the
/// reduction.
mlir::FailureOr<KernelInfo> generateConv(mlir::ModuleOp module, mlir::func::FuncOp function,
                                         llvm::ArrayRef<emit::KernelBuffer> buffers, const Target &target,
                                         Numerics numerics, const KernelChoices *choices = nullptr);

} // namespace ortc::cpu
