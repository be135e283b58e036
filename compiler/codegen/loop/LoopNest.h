//===- LoopNest.h - the loops of a loop kernel ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/codegen/KernelFunction.h"
#include "compiler/codegen/loop/ElementEmitter.h"
#include "compiler/codegen/loop/LoopPlan.h"

namespace ortc::codegen {

/// Emits the body of the kernel at the builder's insertion point.
void emitLoops(LoopBuilder &builder, const LoopProgram &program, const LoopPlan &plan,
               const KernelFunction &kernel, const MathOptions &options);

/// Joins two partial results (scalars or vectors of equal type).
mlir::Value combine(LoopBuilder &builder, nn::ReduceKind kind, mlir::Value a, mlir::Value b);

} // namespace ortc::codegen
