// Values that choices of the model leave out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// where(x > 0, log(x), 0) is 0 for every x up to 0, and so is its derivative. The chain rule multiplies a cotangent
// of 0 by the derivative of what was left out, and 0 * infinity is NaN. Gradients of elements that a choice has left
// out are therefore 0 by themselves: through elementwise operations, changes of shape, reductions and softmax, up to
// what mixes elements otherwise (contractions, windows, gathers, loops), and as long as nothing else uses the
// elements. PyTorch multiplies; where its gradient is a number, this one is the same.
#pragma once

#include "dialects/nn/TensorBuilder.h"
#include "llvm/ADT/DenseMap.h"

namespace ortc::autodiff {

/// Which elements of a value count, while gradients are taken. A mask is of i1 and has the shape of its value; a
/// null one says that all of them count.
class LeftOut {
public:
  explicit LeftOut(nn::TensorBuilder &builder) : b(builder) {}

  /// The mask of operand `i`, as far as it is used by `op`, from those of the results.
  mlir::Value maskOperand(mlir::Operation *op, unsigned i);
  /// The gradient of operand `i` under its mask: 0 in elements that do not count.
  mlir::Value apply(mlir::Operation *op, unsigned i, mlir::Value mask, mlir::Value gradient);
  /// One more use of `value` with a mask of its own; `isFirst` when there was none.
  void addUse(mlir::Value value, mlir::Value mask, bool isFirst);

private:
  mlir::Value maskResults(mlir::Operation *op);
  mlir::Value any(mlir::Value mask, llvm::ArrayRef<int64_t> axes);

  nn::TensorBuilder &b;
  llvm::DenseMap<mlir::Value, mlir::Value> masks;
};

} // namespace ortc::autodiff
