// An optimizer's update of tensors that a host owns, as a program without a model.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/options/CompileOptions.h"
#include "mlir/IR/BuiltinOps.h"
#include "support/Status.h"

#include <vector>

namespace ortc::train {

struct UpdateForm {
  std::vector<int64_t> shape; ///< of the parameter; empty: pieces of tensors of any shape
  bool isDouble = false;      ///< parameter and gradient are f64, else f32
  bool hasBytes = true;       ///< states that the optimizer keeps in bytes are bytes, else f32
};

/// Whether the optimizer can update this form. A refusal names the reason and what to give instead.
Status checkUpdateForm(const OptimizerSpec &optimizer, const UpdateForm &form);

/// Lengths of the pieces that a tensor is cut into: powers of two, the largest first.
std::vector<int64_t> listPieces(const OptimizerSpec &optimizer, const UpdateForm &form);

/// Adds `@forward_eval_B` for the binding B, which updates one tensor of `shape`, or a piece of rank 1.
///
/// Inputs: `parameter`, `gradient`, the states by name, and f64 scalars: hyper-parameters that are not compiled out,
/// what parameters share (`bias_correction1`, `updates`, ...) with its value of this step, and `gradient_scale`, a
/// factor of the gradient (-1 maximizes). Outputs: `parameter.new` and `STATE.new`. Products of all steps
/// (`mu_product`) are states of rank 0. States in bytes are u8 codes in the
/// shape of the parameter, and f32 magnitudes `STATE_absmax`, one for each block of 256 values. Where an
/// optimizer trains at other weights than it evaluates, the parameter is what training reads.
mlir::LogicalResult buildUpdateProgram(mlir::ModuleOp module, const OptimizerSpec &optimizer,
                                       const UpdateForm &form, llvm::ArrayRef<int64_t> shape,
                                       int64_t binding);

} // namespace ortc::train
