// Legalisation as a pass.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/nn/NnDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ortc::legalize {

#define GEN_PASS_DECL
#include "compiler/legalize/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "compiler/legalize/Passes.h.inc"

/// Makes ortc-legalize known to ortc-opt.
inline void registerPasses(mlir::DialectRegistry &) { registerLegalizePass(); }

} // namespace ortc::legalize
