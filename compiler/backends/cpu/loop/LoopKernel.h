// Kernels that are one loop nest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/cpu/Target.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ortc::cpu {

/// Creates kernel `function.getName()` in `module` for a tensor program: elementwise arithmetic, movement, gathers and
/// reductions over one loop nest, a single scatter, scan or arg_reduce, or a FusedScatter. Buffers are the
/// function's arguments, then its results; pairs of `plan.in_place` may share memory.
///
/// Reductions have a tree fixed by their shape. Over trailing dimensions: interleaved sums (kReductionVectors of
/// kReductionLanes), joined in halves. Otherwise: one sum per element in blocks of kReductionBlock, blocks
/// joined in order.
mlir::FailureOr<KernelInfo> generateLoopKernel(mlir::ModuleOp module, mlir::func::FuncOp function,
                                               const Target &target, Numerics numerics);

} // namespace ortc::cpu
