// Weights of few bits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/nn/PackedOps.h"

#include "mlir/IR/OpImplementation.h"

#define GET_OP_CLASSES
#include "dialects/nn/NnPackedOps.cpp.inc"

using namespace mlir;

namespace ortc::nn {

LogicalResult UnpackOp::verify() {
  ArrayRef<int64_t> data = getData().getType().getShape(), scales = getScales().getType().getShape(),
                    result = getType().getShape();
  if (!getData().getType().hasStaticShape() || !getScales().getType().hasStaticShape() ||
      (data[2] != kPackedGroup && data[2] != kPackedGroup / 2))
    return emitOpError() << "C1: a group has " << data[2] << " bytes, not " << kPackedGroup << " or "
                         << kPackedGroup / 2;
  if (scales[0] != data[0] || scales[1] < 1 || data[1] % scales[1] != 0)
    return emitOpError() << "C2: scales of " << getScales().getType() << " do not fit data of "
                         << getData().getType();
  if (result[0] != data[0] || result[1] != kPackedGroup * data[1])
    return emitOpError() << "C3: the result is " << getType() << ", not " << data[0] << " rows of "
                         << kPackedGroup * data[1];
  return success();
}

/// `shape` with other dimensions behind the first `rank`.
static SmallVector<int64_t> withTail(ArrayRef<int64_t> shape, int64_t rank, ArrayRef<int64_t> tail) {
  SmallVector<int64_t> result(shape.take_front(rank));
  llvm::append_range(result, tail);
  return result;
}

Value unpackRows(TensorBuilder &b, Value data, Value scales) {
  SmallVector<int64_t> shape(TensorBuilder::shapeOf(data));
  int64_t rank = TensorBuilder::rankOf(scales), groups = shape[rank - 1], bytes = shape[rank],
          blocks = TensorBuilder::shapeOf(scales).back();
  // [..., blocks, groups of a block, bytes], of 4 bits [..., halves, bytes].
  Value numbers = b.reshape(data, withTail(shape, rank - 1, {blocks, groups / blocks, bytes}));
  if (bytes == kPackedGroup / 2) {
    SmallVector<int64_t> halves = withTail(shape, rank - 1, {blocks, groups / blocks, 2, bytes});
    SmallVector<int64_t> dimensions = llvm::to_vector(llvm::seq<int64_t>(rank + 1));
    dimensions.push_back(rank + 2);
    Value wide = b.broadcast(b.cast(numbers, b.getI32Type()), halves, dimensions);
    // The half to the top, and down again with its sign.
    Value half = b.iota(TensorBuilder::typeOf(wide), rank + 1);
    Value up = b.sub(b.constantLike(half, 28), b.mul(half, b.constantLike(half, 4)));
    numbers =
        b.createOrFold<arith::ShRSIOp>(b.createOrFold<arith::ShLIOp>(wide, up), b.constantLike(wide, 28));
  }
  Value y = b.cast(numbers, b.getF32Type());
  y = b.mul(y, b.broadcast(scales, TensorBuilder::shapeOf(y), llvm::to_vector(llvm::seq<int64_t>(rank))));
  return b.reshape(y, withTail(shape, rank - 1, {groups * kPackedGroup}));
}

static bool startsAtFirst(SliceOp slice) {
  return llvm::all_of(slice.getStarts(), [](int64_t start) { return start == 0; }) &&
         llvm::all_of(slice.getStrides(), [](int64_t stride) { return stride == 1; });
}

UnpackOp findUnpack(Value value, SmallVectorImpl<Operation *> *steps) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto unpack = dyn_cast<UnpackOp>(op))
      return unpack;
    auto slice = dyn_cast<SliceOp>(op);
    if (!isa<TransposeOp, arith::ExtFOp, arith::TruncFOp>(op) && !(slice && startsAtFirst(slice)))
      return nullptr;
    if (steps)
      steps->push_back(op);
    value = op->getOperand(0);
  }
  return nullptr;
}

} // namespace ortc::nn
