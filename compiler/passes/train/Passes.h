// Building a training program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ortc::train {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/passes/train/Passes.h.inc"

} // namespace ortc::train
