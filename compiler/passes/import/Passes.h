// Passes on the onnx dialect, before legalisation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ortc::import {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/passes/import/Passes.h.inc"

} // namespace ortc::import
