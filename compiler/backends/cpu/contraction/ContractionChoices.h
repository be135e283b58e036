// The parts of a contraction's plan that measurements may choose.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/contraction/ContractionPlan.h"

namespace ortc::cpu {

ContractionChoice choiceOf(const ContractionPlan &plan);

/// By name, and back: nothing where names are missing or unknown.
KernelChoice nameChoice(const ContractionChoice &choice);
std::optional<ContractionChoice> readChoice(const KernelChoice &named);

/// Possible choices that differ from that of `plan` in one respect (with what it entails): another tile,
/// blocks of k that are more or fewer, chunks, packing or none. Tiles in the order of their estimates. At
/// most about a dozen.
std::vector<ContractionChoice> findNeighbours(const ContractionSpec &spec, const Target &target,
                                              const ContractionPlan &plan);

/// The plan of the cost table, or that of the choice that the spec's choices have for it; tells in `blocking`
/// which it is. Fails with a diagnostic where the choice is impossible.
llvm::FailureOr<ContractionPlan> chooseContraction(mlir::MLIRContext *context, const ContractionSpec &spec,
                                                   const Target &target, KernelBlocking &blocking);

} // namespace ortc::cpu
