// Verifiers of the train dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/train/TrainDialect.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/train/TrainOps.cpp.inc"

namespace ortc::train {

RankedTensorType TensorOp::getStoredType() {
  auto type = cast<RankedTensorType>(getType());
  if (!getPermutation())
    return type;
  SmallVector<int64_t> shape;
  ArrayRef<int64_t> permutation = *getPermutation();
  for (int64_t from : permutation)
    shape.push_back(type.getDimSize(from));
  return RankedTensorType::get(shape, type.getElementType());
}

LogicalResult TensorOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape())
    return emitOpError() << "C1: type " << type << " must be static";
  if (auto permutation = getPermutation()) {
    SmallVector<int64_t> sorted(*permutation);
    llvm::sort(sorted);
    if (static_cast<int64_t>(sorted.size()) != type.getRank() ||
        !llvm::equal(sorted, llvm::seq<int64_t>(0, type.getRank())))
      return emitOpError() << "C2: not a permutation of " << type.getRank() << " dimensions";
  }
  if (auto initial = getInitialAttr(); initial && initial.getShapedType() != type)
    return emitOpError() << "C3: initial value has type " << initial.getShapedType() << " but must be "
                         << type;
  return success();
}

LogicalResult TensorOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FlatSymbolRefAttr owner = getOwnerAttr();
  if (!owner)
    return success();
  auto target = symbols.lookupNearestSymbolFrom<TensorOp>(*this, owner);
  if (!target || target.getRole() != Role::parameter)
    return emitOpError() << "C4: owner " << owner << " is no parameter";
  return success();
}

} // namespace ortc::train
