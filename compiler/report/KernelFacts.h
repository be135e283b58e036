// Kernels in the words of the model.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/ProgramKernels.h"
#include "dialects/plan/PlanDialect.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ortc::report {

/// What a user is told of a kernel. The lists cover all steps that use it, in the order of the programs.
struct KernelFacts {
  std::string name;           ///< in the artifact's kernel names
  std::string kind;           ///< of plan.kernel: which generator made it
  std::string work;           ///< e.g. "conv + elementwise"
  kernels::KernelWork counts; ///< of a call
  std::string shape; ///< operands and result of its contraction or convolution, or its largest buffers
  std::vector<std::string> nodes;     ///< "Conv:NAME" for what it computes of nodes of the model; "loss"
  std::vector<std::string> gradients; ///< the same for what it computes of gradients of nodes
  std::vector<std::string> updates;   ///< parameters, or else state, that it gives a new value
};

/// In the order of `kernels.names`.
std::vector<KernelFacts> describeKernels(mlir::ModuleOp module, const kernels::ProgramKernels &kernels);

/// Adds what a step is there for: nodes, gradients and updates.
void addStepOrigins(const mlir::SymbolTable &symbols, plan::StepOp step, KernelFacts &facts);

/// "64x10", "64xi64", "scalar": f32 goes without saying.
std::string describeShape(mlir::Type type);

/// Adds the nodes, gradients and updates that there are.
void addOrigins(nlohmann::ordered_json &item, const KernelFacts &facts);

} // namespace ortc::report
