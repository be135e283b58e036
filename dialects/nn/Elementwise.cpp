// Elementwise operations on other shapes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/nn/Elementwise.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ortc::nn {

bool isElementwise(Operation *op) {
  if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) || isa<arith::ConstantOp>(op) ||
      op->getNumResults() != 1)
    return false;
  auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return result && llvm::all_of(op->getOperandTypes(), [&](Type type) {
           auto tensor = dyn_cast<RankedTensorType>(type);
           return tensor && tensor.getShape() == result.getShape();
         });
}

bool isElementwiseForward(Operation *op) { return isElementwise(op) || isa<DetachOp, StraightThroughOp>(op); }

Value createElementwise(TensorBuilder &builder, Operation *op, ValueRange operands, ArrayRef<int64_t> shape) {
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(RankedTensorType::get(shape, TensorBuilder::elementOf(op->getResult(0))));
  state.addAttributes(op->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return builder.create(state)->getResult(0);
}

} // namespace ortc::nn
