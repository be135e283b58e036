// From kernels to a placed program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ortc::memory {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/passes/memory/Passes.h.inc"

/// Attributes that the passes leave on train.tensor and on the module.
inline constexpr llvm::StringLiteral kRegion = "plan.region", kOffset = "plan.offset";
inline constexpr llvm::StringLiteral kConstantBytes = "plan.constant_bytes",
                                     kPersistentBytes = "plan.persistent_bytes",
                                     kStoredBytes = "plan.stored_bytes";

} // namespace ortc::memory
