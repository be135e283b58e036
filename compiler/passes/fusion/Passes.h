// From a tensor program to kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/FusionLimits.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ortc::fusion {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/passes/fusion/Passes.h.inc"

/// The pass `ortc-fuse-kernels` with the limits of a family of backends.
std::unique_ptr<mlir::Pass> createFuseKernelsPass(const kernels::FusionLimits &limits,
                                                  llvm::StringRef narrow);

} // namespace ortc::fusion
