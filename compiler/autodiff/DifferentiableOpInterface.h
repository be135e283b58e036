//===- DifferentiableOpInterface.h - what a gradient rule is given and gives ===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/nn/TensorBuilder.h"

namespace ortc::autodiff {

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

/// One entry per operand.
using Gradients = llvm::SmallVector<Gradient, 3>;

/// What a rule is given: where to build, the cotangents of the results, and which operands matter.
class GradientRequest {
public:
  /// `cotangents` has one value per result, null where the output does not depend on the result.
  GradientRequest(nn::TensorBuilder &builder, mlir::Operation *op, llvm::ArrayRef<mlir::Value> cotangents,
                  llvm::ArrayRef<bool> wanted)
      : builder(builder), op(op), cotangents(cotangents), wanted(wanted) {}

  nn::TensorBuilder &builder;

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
