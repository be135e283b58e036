// Attention.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace ortc::attention {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/passes/attention/Passes.h.inc"

} // namespace ortc::attention
