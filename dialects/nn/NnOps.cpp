// Verifiers of tensor operations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ortc::nn {

//===----------------------------------------------------------------------===//
// Shape rules
//===----------------------------------------------------------------------===//

bool areSortedAxes(ArrayRef<int64_t> axes, int64_t rank) {
  int64_t previous = -1;
  for (int64_t axis : axes) {
    if (axis <= previous || axis >= rank)
      return false;
    previous = axis;
  }
  return true;
}

Shape dropAxes(ArrayRef<int64_t> shape, ArrayRef<int64_t> axes) {
  Shape result;
  for (auto [i, size] : llvm::enumerate(shape))
    if (!llvm::is_contained(axes, static_cast<int64_t>(i)))
      result.push_back(size);
  return result;
}

Shape permuteShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> permutation) {
  Shape result;
  for (int64_t from : permutation)
    result.push_back(shape[from]);
  return result;
}

Shape invertPermutation(ArrayRef<int64_t> permutation) {
  Shape result(permutation.size());
  for (auto [i, from] : llvm::enumerate(permutation))
    result[from] = i;
  return result;
}

Shape replaceAxis(ArrayRef<int64_t> shape, int64_t axis, ArrayRef<int64_t> inner) {
  Shape result(shape.take_front(axis));
  llvm::append_range(result, inner);
  llvm::append_range(result, shape.drop_front(axis + 1));
  return result;
}

Shape freeDimensions(int64_t rank, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
  Shape result;
  for (int64_t i = 0; i < rank; ++i)
    if (!llvm::is_contained(batch, i) && !llvm::is_contained(contract, i))
      result.push_back(i);
  return result;
}

int64_t windowedSize(int64_t input, int64_t padding, int64_t window, int64_t stride, int64_t dilation) {
  int64_t room = input + padding - dilation * (window - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

Shape rowMajorStrides(ArrayRef<int64_t> shape) {
  Shape strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

int64_t elementCount(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Type tapType(MLIRContext *context, ArrayRef<int64_t> window) {
  return IntegerType::get(context, elementCount(window) <= 128 ? 8 : 32);
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Checks that `value` has `shape` and `element`; `what` is the labelled constraint.
static LogicalResult verifyResult(Operation *op, Value value, ArrayRef<int64_t> shape, Type element,
                                  StringRef what) {
  auto expected = RankedTensorType::get(shape, element);
  if (value.getType() != expected)
    return op->emitOpError() << what << ": result is " << value.getType() << " but must be " << expected;
  return success();
}

static LogicalResult verifyAxis(Operation *op, int64_t axis, int64_t rank) {
  if (axis < 0 || axis >= rank)
    return op->emitOpError() << "C1: axis " << axis << " is not in [0, " << rank << ")";
  return success();
}

static LogicalResult verifyAxes(Operation *op, ArrayRef<int64_t> axes, int64_t rank) {
  if (!areSortedAxes(axes, rank))
    return op->emitOpError() << "C1: axes must be strictly increasing and below the rank " << rank;
  return success();
}

LogicalResult BroadcastOp::verify() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  auto dims = getDimensions();
  if (static_cast<int64_t>(dims.size()) != from.getRank() || !areSortedAxes(dims, to.getRank()))
    return emitOpError()
           << "C1: dimensions must list one strictly increasing result dimension per input dimension";
  for (auto [i, dim] : llvm::enumerate(dims))
    if (from.getDimSize(i) != 1 && from.getDimSize(i) != to.getDimSize(dim))
      return emitOpError() << "C2: input dimension " << i << " has size " << from.getDimSize(i)
                           << " but result dimension " << dim << " has " << to.getDimSize(dim);
  if (from.getElementType() != to.getElementType())
    return emitOpError() << "C3: element types differ";
  return success();
}

LogicalResult ReshapeOp::verify() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  if (from.getNumElements() != to.getNumElements() || from.getElementType() != to.getElementType())
    return emitOpError() << "C1: " << from << " and " << to
                         << " differ in element type or number of elements";
  return success();
}

LogicalResult TransposeOp::verify() {
  auto from = typeOf(getInput());
  auto permutation = getPermutation();
  SmallVector<int64_t> sorted(permutation);
  llvm::sort(sorted);
  if (static_cast<int64_t>(sorted.size()) != from.getRank() || !areSortedAxes(sorted, from.getRank()))
    return emitOpError() << "C1: not a permutation of " << from.getRank() << " dimensions";
  return verifyResult(*this, getResult(), permuteShape(from.getShape(), permutation), from.getElementType(),
                      "C2");
}

LogicalResult SliceOp::verify() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  if (from.getRank() != to.getRank() || from.getElementType() != to.getElementType())
    return emitOpError() << "C3: ranks and element types must be equal";
  if (static_cast<int64_t>(getStarts().size()) != from.getRank() ||
      static_cast<int64_t>(getStrides().size()) != from.getRank())
    return emitOpError() << "C1: starts and strides need " << from.getRank() << " entries";
  for (int64_t i = 0; i < from.getRank(); ++i) {
    int64_t start = getStarts()[i], stride = getStrides()[i];
    if (start < 0 || stride < 1)
      return emitOpError() << "C1: start " << start << " or stride " << stride << " of dimension " << i
                           << " is too small";
    int64_t size = to.getDimSize(i);
    if (size > from.getDimSize(i))
      return emitOpError() << "C3: result dimension " << i << " is larger than the input's";
    if (size > 0 && start + (size - 1) * stride >= from.getDimSize(i))
      return emitOpError() << "C2: dimension " << i << " reads element " << start + (size - 1) * stride
                           << " of " << from.getDimSize(i);
  }
  return success();
}

LogicalResult PadOp::verify() {
  auto from = typeOf(getInput());
  int64_t rank = from.getRank();
  Shape shape;
  for (ArrayRef<int64_t> amounts : {getLow(), getHigh(), getInterior()}) {
    if (static_cast<int64_t>(amounts.size()) != rank)
      return emitOpError() << "C1: low, high and interior need " << rank << " entries";
    if (llvm::any_of(amounts, [](int64_t amount) { return amount < 0; }))
      return emitOpError() << "C1: padding must not be negative";
  }
  if (typeOf(getValue()).getRank() != 0 || typeOf(getValue()).getElementType() != from.getElementType())
    return emitOpError() << "C3: the value must have rank 0 and element type " << from.getElementType();
  for (int64_t i = 0; i < rank; ++i) {
    int64_t size = from.getDimSize(i);
    shape.push_back(getLow()[i] + getHigh()[i] + size + std::max<int64_t>(size - 1, 0) * getInterior()[i]);
  }
  return verifyResult(*this, getResult(), shape, from.getElementType(), "C2");
}

LogicalResult ConcatOp::verify() {
  if (getInputs().empty())
    return emitOpError() << "C1: needs at least one input";
  auto first = typeOf(getInputs().front());
  int64_t axis = getAxis();
  if (failed(verifyAxis(*this, axis, first.getRank())))
    return failure();
  Shape shape(first.getShape());
  shape[axis] = 0;
  for (Value input : getInputs()) {
    auto type = typeOf(input);
    if (type.getRank() != first.getRank() || type.getElementType() != first.getElementType())
      return emitOpError() << "C2: inputs differ in rank or element type";
    for (int64_t i = 0; i < first.getRank(); ++i)
      if (i != axis && type.getDimSize(i) != first.getDimSize(i))
        return emitOpError() << "C2: inputs differ in dimension " << i;
    shape[axis] += type.getDimSize(axis);
  }
  return verifyResult(*this, getResult(), shape, first.getElementType(), "C3");
}

LogicalResult ReverseOp::verify() { return verifyAxes(*this, getAxes(), typeOf(getInput()).getRank()); }

LogicalResult DetachOp::verify() { return success(); }

LogicalResult RandomOp::verify() {
  auto type = typeOf(getFirst());
  if (typeOf(getStep()).getRank() != 0)
    return emitOpError() << "C1: step must have rank 0";
  if (elementCount(type.getShape()) > int64_t(1) << 32)
    return emitOpError() << "C2: " << elementCount(type.getShape()) << " elements are more than 2^32";
  int64_t key = getKey();
  if (key < 0 || key >= int64_t(1) << 32)
    return emitOpError() << "C3: key " << key << " does not fit 32 bits";
  return success();
}

LogicalResult IotaOp::verify() { return verifyAxis(*this, getAxis(), typeOf(getResult()).getRank()); }

LogicalResult ReduceOp::verify() {
  auto from = typeOf(getInput());
  if (failed(verifyAxes(*this, getAxes(), from.getRank())))
    return failure();
  return verifyResult(*this, getResult(), dropAxes(from.getShape(), getAxes()), from.getElementType(), "C2");
}

LogicalResult ArgReduceOp::verify() {
  auto from = typeOf(getInput());
  if (getKind() != ReduceKind::max && getKind() != ReduceKind::min)
    return emitOpError() << "C1: kind must be max or min";
  int64_t axis = getAxis();
  if (failed(verifyAxis(*this, axis, from.getRank())))
    return failure();
  return verifyResult(*this, getResult(), dropAxes(from.getShape(), axis),
                      typeOf(getResult()).getElementType(), "C2");
}

LogicalResult ArgSortOp::verify() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  int64_t axis = getAxis();
  if (failed(verifyAxis(*this, axis, from.getRank())))
    return failure();
  if (from.getDimSize(axis) > std::numeric_limits<int32_t>::max())
    return emitOpError() << "C1: " << from.getDimSize(axis) << " elements are more than can be sorted";
  Shape shape(from.getShape());
  if (to.getRank() == from.getRank())
    shape[axis] = std::min(shape[axis], to.getDimSize(axis));
  return verifyResult(*this, getResult(), shape, to.getElementType(), "C2");
}

LogicalResult MomentsOp::verify() {
  auto from = typeOf(getInput());
  if (getAxes().empty())
    return emitOpError() << "C1: axes must not be empty";
  if (failed(verifyAxes(*this, getAxes(), from.getRank())))
    return failure();
  Shape shape = dropAxes(from.getShape(), getAxes());
  if (failed(verifyResult(*this, getMean(), shape, from.getElementType(), "C2")))
    return failure();
  return verifyResult(*this, getVariance(), shape, from.getElementType(), "C2");
}

/// Shared by the operations that keep their input's type and work along one axis.
template <typename OpType> static LogicalResult verifyAlongAxis(OpType op) {
  return verifyAxis(op, op.getAxis(), typeOf(op.getInput()).getRank());
}

LogicalResult CumSumOp::verify() { return verifyAlongAxis(*this); }
LogicalResult SoftmaxOp::verify() { return verifyAlongAxis(*this); }
LogicalResult LogSoftmaxOp::verify() { return verifyAlongAxis(*this); }

LogicalResult DotOp::verify() {
  auto lhs = typeOf(getLhs()), rhs = typeOf(getRhs());
  auto distinct = [](ArrayRef<int64_t> a, ArrayRef<int64_t> b, int64_t rank) {
    SmallVector<int64_t> all(a);
    llvm::append_range(all, b);
    llvm::sort(all);
    return areSortedAxes(all, rank);
  };
  if (getLhsBatch().size() != getRhsBatch().size() || getLhsContract().size() != getRhsContract().size() ||
      !distinct(getLhsBatch(), getLhsContract(), lhs.getRank()) ||
      !distinct(getRhsBatch(), getRhsContract(), rhs.getRank()))
    return emitOpError()
           << "C1: batch and contracted dimensions must be distinct, in range and equally many on both sides";
  auto match = [&](ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
    return llvm::all_of(llvm::zip_equal(a, b), [&](auto pair) {
      return lhs.getDimSize(std::get<0>(pair)) == rhs.getDimSize(std::get<1>(pair));
    });
  };
  if (!match(getLhsBatch(), getRhsBatch()) || !match(getLhsContract(), getRhsContract()) ||
      lhs.getElementType() != rhs.getElementType())
    return emitOpError() << "C2: matched dimensions or element types differ";
  Shape shape;
  for (int64_t dim : getLhsBatch())
    shape.push_back(lhs.getDimSize(dim));
  for (int64_t dim : freeDimensions(lhs.getRank(), getLhsBatch(), getLhsContract()))
    shape.push_back(lhs.getDimSize(dim));
  for (int64_t dim : freeDimensions(rhs.getRank(), getRhsBatch(), getRhsContract()))
    shape.push_back(rhs.getDimSize(dim));
  return verifyResult(*this, getResult(), shape, lhs.getElementType(), "C3");
}

LogicalResult CheckIndexOp::verify() {
  if (static_cast<int64_t>(getLower()) >= static_cast<int64_t>(getUpper()))
    return emitOpError() << "C1: the range [" << static_cast<int64_t>(getLower()) << ", "
                         << static_cast<int64_t>(getUpper()) << ") is empty";
  return success();
}

LogicalResult GatherOp::verify() {
  auto from = typeOf(getInput());
  int64_t axis = getAxis();
  if (failed(verifyAxis(*this, axis, from.getRank())))
    return failure();
  return verifyResult(*this, getResult(), replaceAxis(from.getShape(), axis, typeOf(getIndices()).getShape()),
                      from.getElementType(), "C2");
}

LogicalResult ScatterAddOp::verify() {
  auto to = typeOf(getResult());
  int64_t axis = getAxis();
  if (failed(verifyAxis(*this, axis, to.getRank())))
    return failure();
  auto expected = RankedTensorType::get(replaceAxis(to.getShape(), axis, typeOf(getIndices()).getShape()),
                                        to.getElementType());
  if (getUpdates().getType() != expected)
    return emitOpError() << "C2: updates are " << getUpdates().getType() << " but must be " << expected;
  return success();
}

LogicalResult ScatterOp::verify() {
  auto to = typeOf(getInput()), indices = typeOf(getIndices());
  if (indices.getRank() != 1 || to.getRank() < 1 || to.getDimSize(0) < 1)
    return emitOpError() << "C1: indices have rank " << indices.getRank() << ", the input is " << to;
  auto expected =
      RankedTensorType::get(replaceAxis(to.getShape(), 0, indices.getShape()), to.getElementType());
  if (getUpdates().getType() != expected)
    return emitOpError() << "C2: updates are " << getUpdates().getType() << " but must be " << expected;
  return success();
}

/// Shared by gather_elements and scatter_elements.
static LogicalResult verifyElementwiseIndex(Operation *op, RankedTensorType data, RankedTensorType indices,
                                            int64_t axis) {
  if (data.getRank() != indices.getRank())
    return op->emitOpError() << "C1: ranks differ";
  if (failed(verifyAxis(op, axis, data.getRank())))
    return failure();
  for (int64_t i = 0; i < data.getRank(); ++i)
    if (i != axis && indices.getDimSize(i) > data.getDimSize(i))
      return op->emitOpError() << "C2: indices exceed the input in dimension " << i;
  return success();
}

LogicalResult GatherElementsOp::verify() {
  auto from = typeOf(getInput()), indices = typeOf(getIndices());
  if (failed(verifyElementwiseIndex(*this, from, indices, getAxis())))
    return failure();
  return verifyResult(*this, getResult(), indices.getShape(), from.getElementType(), "C2");
}

LogicalResult ScatterElementsOp::verify() {
  auto from = typeOf(getInput()), indices = typeOf(getIndices()), updates = typeOf(getUpdates());
  if (failed(verifyElementwiseIndex(*this, from, indices, getAxis())))
    return failure();
  if (updates.getShape() != indices.getShape() || updates.getElementType() != from.getElementType())
    return emitOpError() << "C2: updates need the indices' shape and the input's element type";
  return success();
}

} // namespace ortc::nn

#define GET_OP_CLASSES
#include "dialects/nn/NnOps.cpp.inc"
