// How a gradient rule is written and attached.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rule is a function of the operation and the request. Its head comment has five lines: the op's name and
// formula, its gradients, what it saves, conventions at special points, what is accumulated.
#pragma once

#include "compiler/autodiff/DifferentiableOpInterface.h"

namespace ortc::autodiff {

using nn::TensorBuilder;

/// The interface implementation that calls `rule`.
template <typename OpType, Gradients (*rule)(OpType, GradientRequest &)>
struct RuleModel : DifferentiableOpInterface::ExternalModel<RuleModel<OpType, rule>, OpType> {
  Gradients differentiate(mlir::Operation *op, GradientRequest &request) const {
    return rule(mlir::cast<OpType>(op), request);
  }
};

/// For operations of one operand and one result: `rule` maps (op, cotangent, builder) to the gradient.
template <typename OpType, mlir::Value (*rule)(OpType, mlir::Value, TensorBuilder &)>
struct UnaryRuleModel : DifferentiableOpInterface::ExternalModel<UnaryRuleModel<OpType, rule>, OpType> {
  Gradients differentiate(mlir::Operation *op, GradientRequest &request) const {
    return {rule(mlir::cast<OpType>(op), request.cotangent(), request.builder)};
  }
};

/// For operations whose results do not move between jumps.
template <typename OpType>
struct PiecewiseConstantModel
    : DifferentiableOpInterface::ExternalModel<PiecewiseConstantModel<OpType>, OpType> {
  Gradients differentiate(mlir::Operation *op, GradientRequest &) const {
    return Gradients(op->getNumOperands(), noGradient("piecewise constant"));
  }
};

template <typename OpType, Gradients (*rule)(OpType, GradientRequest &)>
void attachRule(mlir::MLIRContext *context) {
  OpType::template attachInterface<RuleModel<OpType, rule>>(*context);
}
template <typename OpType, mlir::Value (*rule)(OpType, mlir::Value, TensorBuilder &)>
void attachUnaryRule(mlir::MLIRContext *context) {
  OpType::template attachInterface<UnaryRuleModel<OpType, rule>>(*context);
}

// One per family; called when the dialect is loaded.
void attachArithRules(mlir::MLIRContext *context);
void attachMathRules(mlir::MLIRContext *context);
void attachMovementRules(mlir::MLIRContext *context);
void attachReductionRules(mlir::MLIRContext *context);
void attachContractionRules(mlir::MLIRContext *context);
void attachSpatialRules(mlir::MLIRContext *context);
void attachIndexingRules(mlir::MLIRContext *context);
void attachScanRules(mlir::MLIRContext *context);

} // namespace ortc::autodiff
