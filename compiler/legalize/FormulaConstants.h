// Constants of formulas among initializers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Converters write the numbers of a formula as initializers, like weights: the epsilon of a norm, the bounds
// of an activation, the count of a mean, the scale of attention scores. What such a number does with the
// values around it tells it from a weight.
#pragma once

#include "dialects/onnx/OnnxDialect.h"
#include "llvm/ADT/DenseSet.h"

#include <functional>
#include <optional>
#include <string>

namespace ortc::legalize {

/// The static shape of a value; nothing where it is not known.
using ShapeOf = std::function<std::optional<llvm::SmallVector<int64_t>>(mlir::Value)>;

/// The shape that the file states.
std::optional<llvm::SmallVector<int64_t>> statedShape(mlir::Value value);

/// What the initializer does in a formula, as a phrase: "added to a variance or a sum of squares"; empty
/// where it may be a weight. Only initializers of one element are constants of formulas, and those whose
/// elements are all equal where
/// `isMadeUp` says that a converter gave them their names. Takes time in proportion to the elements and the uses of the
/// initializer and of its first 64 views, and a bounded time for each use.
///  - Any two of these hold: it is added to a variance, a sum of squares or a norm; a root or a logarithm of
///  the sum is taken,
///    or something divided by it; it is above 0 and at most 1e-3.
///  - It is a bound: all its uses are as operands of Max and Min, or as bounds of Clip.
///  - It divides a sum by the number of elements that were summed, or by one less; or multiplies by the reciprocal.
///  - It is the size of attention heads to the power of -1/2 or -1/4, to the last bits, and scales scores
///  (what a MatMul
///    or Einsum gives on its way to a Softmax) or one of the two factors they are the product of. A parameter
///    that starts there
///    is none of that: it has a shape, or its name speaks of a temperature.
///  - It is not finite, or -1e4 and less: it fills what a mask leaves out.
std::string findFormulaRole(onnx::InitializerOp op, bool isMadeUp, const ShapeOf &shapeOf);

/// The means and variances of batch normalisations that are written as their formula: an epsilon is added to
/// the variance, and the root of that scales what the mean was subtracted from.
llvm::DenseSet<mlir::Operation *> findNormStatistics(onnx::GraphOp graph);

/// Whether some node takes a function of the value alone that no converter leaves to be computed: its exponential, ...
bool isReparametrized(mlir::Value value);

/// Whether the value is added to what a matrix product or a convolution gives.
bool isBias(mlir::Value value);

/// Whether the node gives the elements of operand 0 another shape, order or type.
bool isView(onnx::NodeOp node);

/// The elements where they are stored as they are; one of them where all are equal.
llvm::ArrayRef<char> storedElements(mlir::ElementsAttr value);

} // namespace ortc::legalize
