// What a gradient rule is given and gives.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/nn/TensorBuilder.h"

namespace ortc::autodiff {

struct DifferentiateOptions;

/// What a rule says about one operand: a gradient of the operand's type, or the reason why there is none.
struct Gradient {
  Gradient(mlir::Value value) : value(value) {}
  mlir::Value value;
  llvm::StringRef reason;

private:
  friend Gradient noGradient(llvm::StringRef reason);
  Gradient(std::nullptr_t, llvm::StringRef reason) : reason(reason) {}
};

/// The operand does not move the results, as far as a gradient can tell. `reason` is a literal.
inline Gradient noGradient(llvm::StringRef reason) { return Gradient(nullptr, reason); }

/// The sum of two contributions to one gradient. f16 and bf16 are storage only: their sums are made in f32.
mlir::Value addGradients(nn::TensorBuilder &builder, mlir::Value a, mlir::Value b);

/// One entry per operand; empty when the rule has emitted an error.
using Gradients = llvm::SmallVector<Gradient, 3>;

/// What a rule is given: where to build, the cotangents of the results, and which operands matter.
class GradientRequest {
public:
  /// `cotangents` has one value per result, null where the output does not depend on the result.
  GradientRequest(nn::TensorBuilder &builder, mlir::Operation *op, llvm::ArrayRef<mlir::Value> cotangents,
                  llvm::ArrayRef<bool> wanted, const DifferentiateOptions &options)
      : builder(builder), options(options), op(op), cotangents(cotangents), wanted(wanted) {}

  nn::TensorBuilder &builder;
  const DifferentiateOptions &options;

  /// An operation in front of this one that gives the same results and then more: it takes this one's place when the
  /// rule has returned. For operations with a body, whose inner values can only be saved as results.
  mlir::Operation *replacement = nullptr;

  /// The cotangent of result `i`; zeros where the output does not depend on it.
  mlir::Value cotangent(unsigned i = 0);
  /// Whether result `i` has a cotangent other than zeros.
  bool hasCotangent(unsigned i) const { return static_cast<bool>(cotangents[i]); }
  /// Whether the gradient of operand `i` will be used. A rule may skip the work with `unwanted()`.
  bool wants(unsigned i) const { return wanted[i]; }
  static Gradient unwanted() { return noGradient("not asked for"); }

private:
  mlir::Operation *op;
  llvm::ArrayRef<mlir::Value> cotangents;
  llvm::ArrayRef<bool> wanted;
};

} // namespace ortc::autodiff

#include "compiler/autodiff/DifferentiableOpInterface.h.inc"
