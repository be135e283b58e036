// What a step demands of weights beside a small loss: small ones, limits, zeros.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/options/UpdateSpecs.h"
#include "compiler/passes/train/ProgramTensors.h"

namespace ortc::train {

/// The flags --regularize and --mask, for one parameter at a time. Values are those that are computed with, of the type
/// of the gradient.
class Constraints {
public:
  Constraints(const UpdateSpecs &specs, ProgramTensors &tensors, nn::TensorBuilder &builder)
      : specs(specs), tensors(tensors), b(builder) {}

  /// Fails where a mask is of no parameter of this program, or of another shape; sets initial values that masks take
  /// away to zero.
  mlir::LogicalResult apply(llvm::ArrayRef<TensorOp> parameters);
  /// The gradient of the loss with its penalties, without what a mask takes away.
  mlir::FailureOr<mlir::Value> constrainGradient(TensorOp parameter, mlir::Value value, mlir::Value gradient);
  /// The new value within its limits.
  mlir::FailureOr<mlir::Value> constrainValue(TensorOp parameter, mlir::Value value);

private:
  const RegularizeSpec *find(TensorOp parameter) const;
  const Mask *findMask(TensorOp parameter) const;
  mlir::Value maskOut(TensorOp parameter, const Mask &mask, mlir::Value value);
  /// A hyper-parameter of the regulariser; null where it is zero, which compiles nothing.
  mlir::FailureOr<mlir::Value> scalar(const RegularizeSpec &spec, const char *name, double value);

  const UpdateSpecs &specs;
  ProgramTensors &tensors;
  nn::TensorBuilder &b;
};

} // namespace ortc::train
