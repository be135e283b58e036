// The common shape of a generated kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/KernelChoice.h"
#include "compiler/backends/emit/KernelBuffer.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Value.h"

#include <cstdint>
#include <string>

namespace ortc::cpu {

using backends::KernelInfo;

/// A kernel function being built: `func.func private @name(%buffer0: memref<Nxf32>, ..., %workspace: memref<Wxi8>,
/// %chunk: index)`. Buffers are flat memrefs in ABI order: inputs, then outputs. The workspace argument is that of the
/// worker that runs the chunk and exists only when `workspaceBytesPerWorker` > 0.
///
/// The backend adds the ABI entry `void name.entry(ptr args, i64 chunk, i64 worker)` after lowering: `args` holds the
/// buffer pointers in order, then the base of the workspaces of all workers.
struct KernelFunction {
  llvm::SmallVector<mlir::Value> buffers;
  mlir::Value workspace; ///< null without workspace
  mlir::Value chunk;

  /// A typed, 64-byte aligned view of `elements` elements at `byteOffset` of the workspace.
  mlir::Value workspaceView(mlir::OpBuilder &builder, mlir::Location loc, int64_t byteOffset,
                            mlir::Type elementType, int64_t elements) const;
};

/// Creates the function with an empty body that ends in `func.return`, and leaves `builder` before the return.
/// `info.workspaceBytesPerWorker` is rounded up to a multiple of 64.
KernelFunction createKernelFunction(mlir::OpBuilder &builder, mlir::ModuleOp module, KernelInfo &info,
                                    llvm::ArrayRef<emit::KernelBuffer> buffers);

/// Symbol of the ABI entry of kernel `name`.
std::string kernelEntryName(llvm::StringRef name);

/// Attribute on a kernel function: workspace bytes per worker as an integer. Marks functions that get an ABI entry.
inline constexpr llvm::StringLiteral kKernelAttribute = "ortc.kernel";

} // namespace ortc::cpu
