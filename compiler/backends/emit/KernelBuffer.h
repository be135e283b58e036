// Buffer arguments of kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Types.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace ortc::emit {

/// One buffer argument of a kernel: dense, row-major, aligned to its element (a host may bind memory of its
/// own; buffers of the plan are 64-byte aligned). Booleans are i8, f16 and bf16 are i16.
struct KernelBuffer {
  mlir::Type elementType;
  int64_t elements = 0;
  bool written = false;
  /// False when the buffer shares memory with another argument of the same call (in-place): it is then not `noalias`.
  bool distinct = true;
};

/// The buffers of a kernel: arguments, then results. Those that an in-place pair names may share memory.
llvm::SmallVector<KernelBuffer> kernelBuffers(mlir::func::FuncOp function);

} // namespace ortc::emit
