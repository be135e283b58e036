// Which operation a wrong gradient comes from.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "check/EvaluateProgram.h"
#include "compiler/autodiff/Differentiate.h"

namespace ortc::check {

/// Looks for the cause of wrong gradients, one sentence. First the evaluator computes them too: where it has
/// other numbers than `compiled`, the generated code is wrong. Otherwise every operation of forward part and
/// loss, in the order of the program, is differentiated alone, by its rule and by differences, and the first
/// that disagrees is named.
/// `parts` is the program after phase `differentiate`.
std::string findSuspect(mlir::ModuleOp parts, const ValueSource &source, const NamedValues &compiled,
                        const autodiff::DifferentiateOptions &options, double tolerance);

} // namespace ortc::check
