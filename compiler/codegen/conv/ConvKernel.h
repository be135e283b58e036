//===- ConvKernel.h - convolution and its gradients -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/codegen/KernelFunction.h"
#include "compiler/codegen/Target.h"
#include "mlir/IR/BuiltinOps.h"

#include <functional>

namespace ortc::codegen {

/// Stores one vector of finished sums of a conv or conv_input_grad: `indices` are those of its first element in the
/// result (channels-last); the lanes follow along the last dimension. Buffers are those of the kernel in ABI order.
using ConvStore = std::function<void(mlir::OpBuilder &, mlir::Location, llvm::ArrayRef<mlir::Value> buffers,
                                     llvm::ArrayRef<mlir::Value> indices, mlir::Value sums)>;

struct ConvSpec {
  std::string name;
  mlir::Operation *op; ///< nn.conv, nn.conv_input_grad or nn.conv_filter_grad, f32 or f64
  /// In ABI order; the first two are the operation's operands.
  llvm::SmallVector<KernelBuffer> buffers;
  /// Null: the sums go to buffer 2 as they are. Not for conv_filter_grad.
  ConvStore store;
  Numerics numerics = Numerics::Fast;
};

/// Whether `op` is a convolution this generator makes.
bool isConv(mlir::Operation *op);

/// Emits the kernel into `module`. Implicit GEMM: no im2col buffer; a block of the image is copied into the worker's
/// workspace only where the window leaves the image. An element of conv and conv_input_grad is summed over the taps in
/// order of source position, channels innermost; one of conv_filter_grad in blocks of rows, image after image: bits depend
/// on the shape alone. Workspace: the block, and for conv_input_grad the transposed filter.
KernelInfo emitConv(mlir::ModuleOp module, const ConvSpec &spec, const Target &target);

} // namespace ortc::codegen
