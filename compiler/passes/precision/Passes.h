// Computing in f16 or bf16 what bears it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace ortc::precision {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/passes/precision/Passes.h.inc"

/// Whether `op` is a product or convolution that ortc-narrow-products rounds for: of f32, not `exact`, and not of
/// integers, whose sums are exact.
bool isNarrowed(mlir::Operation *op);

} // namespace ortc::precision
