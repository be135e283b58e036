// Verifiers of convolution and pooling.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "support/Plural.h"

using namespace mlir;

namespace ortc::nn {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static bool allAtLeast(ArrayRef<int64_t> values, int64_t least) {
  return llvm::all_of(values, [&](int64_t value) { return value >= least; });
}

/// Checks a convolution given the types of its input, filter and output, whichever of them is the operation's result.
template <typename OpType>
static LogicalResult verifyConv(OpType op, RankedTensorType input, RankedTensorType filter,
                                RankedTensorType output) {
  int64_t rank = input.getRank(), spatial = rank - 2;
  if (spatial < 1 || spatial > 3 || filter.getRank() != rank || output.getRank() != rank)
    return op.emitOpError() << "C1: input, filter and output need rank 3 to 5, not " << rank;
  for (ArrayRef<int64_t> list : {op.getStrides(), op.getPaddingLow(), op.getPaddingHigh(), op.getDilations()})
    if (static_cast<int64_t>(list.size()) != spatial)
      return op.emitOpError() << "C1: window attributes need " << formatCount(spatial, "entry", "entries");
  if (!allAtLeast(op.getStrides(), 1) || !allAtLeast(op.getDilations(), 1) ||
      !allAtLeast(op.getPaddingLow(), 0) || !allAtLeast(op.getPaddingHigh(), 0))
    return op.emitOpError() << "C1: strides and dilations must be positive, paddings not negative";
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t size = windowedSize(input.getDimSize(i + 1), op.getPaddingLow()[i] + op.getPaddingHigh()[i],
                                filter.getDimSize(i), op.getStrides()[i], op.getDilations()[i]);
    if (size < 1 || size != output.getDimSize(i + 1))
      return op.emitOpError() << "C2: spatial dimension " << i << " of the output is "
                              << output.getDimSize(i + 1) << " but must be " << size;
  }
  int64_t groups = op.getGroups(), features = filter.getDimSize(rank - 1);
  if (groups < 1 || input.getDimSize(rank - 1) != groups * filter.getDimSize(rank - 2) ||
      features % groups != 0)
    return op.emitOpError() << "C3: " << input.getDimSize(rank - 1) << " channels and " << features
                            << " features do not fit a filter of " << filter.getDimSize(rank - 2)
                            << " channels and " << groups << " groups";
  if (input.getDimSize(0) != output.getDimSize(0) || output.getDimSize(rank - 1) != features ||
      input.getElementType() != filter.getElementType() || input.getElementType() != output.getElementType())
    return op.emitOpError() << "C4: batch sizes, features or element types differ";
  return success();
}

LogicalResult ConvOp::verify() {
  return verifyConv(*this, typeOf(getInput()), typeOf(getFilter()), typeOf(getResult()));
}
LogicalResult ConvInputGradOp::verify() {
  return verifyConv(*this, typeOf(getResult()), typeOf(getFilter()), typeOf(getGradient()));
}
int64_t ConvFilterGradOp::getParts() {
  auto result = typeOf(getResult());
  return result.getRank() > typeOf(getInput()).getRank() ? result.getDimSize(0) : 1;
}
RankedTensorType ConvFilterGradOp::getFilterType() {
  auto result = typeOf(getResult());
  return result.clone(result.getShape().take_back(typeOf(getInput()).getRank()));
}
LogicalResult ConvFilterGradOp::verify() {
  int64_t more = typeOf(getResult()).getRank() - typeOf(getInput()).getRank();
  if (more != 0 && more != 1)
    return emitOpError() << "C1: the result needs the rank of the input or one more";
  int64_t parts = getParts();
  if (parts < 1 || typeOf(getInput()).getDimSize(0) % parts != 0)
    return emitOpError() << "C5: " << parts << " parts do not divide a batch of "
                         << typeOf(getInput()).getDimSize(0);
  return verifyConv(*this, typeOf(getInput()), getFilterType(), typeOf(getGradient()));
}

/// Checks a pool given the types of its input and output, whichever of them is the operation's result.
template <typename OpType>
static LogicalResult verifyPool(OpType op, RankedTensorType input, RankedTensorType output) {
  int64_t rank = input.getRank(), spatial = rank - 2;
  if (spatial < 1 || spatial > 3 || output.getRank() != rank)
    return op.emitOpError() << "C1: input and output need rank 3 to 5, not " << rank;
  for (ArrayRef<int64_t> list : {op.getWindow(), op.getStrides(), op.getPaddingLow(), op.getPaddingHigh(),
                                 op.getOverhang(), op.getDilations()})
    if (static_cast<int64_t>(list.size()) != spatial)
      return op.emitOpError() << "C1: window attributes need " << formatCount(spatial, "entry", "entries");
  if (!allAtLeast(op.getWindow(), 1) || !allAtLeast(op.getStrides(), 1) ||
      !allAtLeast(op.getDilations(), 1) || !allAtLeast(op.getPaddingLow(), 0) ||
      !allAtLeast(op.getPaddingHigh(), 0) || !allAtLeast(op.getOverhang(), 0))
    return op.emitOpError() << "C1: window, strides and dilations must be positive, the others not negative";
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t in = input.getDimSize(i + 1), window = op.getWindow()[i], dilation = op.getDilations()[i];
    int64_t size = windowedSize(in, op.getPaddingLow()[i] + op.getPaddingHigh()[i] + op.getOverhang()[i],
                                window, op.getStrides()[i], dilation);
    if (size < 1 || size != output.getDimSize(i + 1))
      return op.emitOpError() << "C2: spatial dimension " << i << " of the output is "
                              << output.getDimSize(i + 1) << " but must be " << size;
    for (int64_t o : {int64_t(0), size - 1}) {
      int64_t start = o * op.getStrides()[i] - op.getPaddingLow()[i];
      int64_t skipped = start < 0 ? (dilation - 1 - start) / dilation : 0; // places before the input
      if (skipped >= window || start + skipped * dilation >= in)
        return op.emitOpError() << "C4: window " << o << " of dimension " << i << " lies outside the input";
    }
  }
  if (input.getDimSize(0) != output.getDimSize(0) ||
      input.getDimSize(rank - 1) != output.getDimSize(rank - 1) ||
      input.getElementType() != output.getElementType())
    return op.emitOpError() << "C3: batch, channels or element types differ";
  return success();
}

template <typename OpType> static LogicalResult verifyTaps(OpType op) {
  Type needed = tapType(op.getContext(), op.getWindow()), type = typeOf(op.getTaps()).getElementType();
  if (type != needed)
    return op.emitOpError() << "C5: taps are " << type << " but must be " << needed << " for windows of "
                            << elementCount(op.getWindow());
  return success();
}

LogicalResult MaxPoolOp::verify() {
  if (typeOf(getTaps()).getShape() != typeOf(getResult()).getShape())
    return emitOpError() << "C3: result and taps differ in shape";
  if (failed(verifyTaps(*this)))
    return failure();
  return verifyPool(*this, typeOf(getInput()), typeOf(getResult()));
}
LogicalResult MaxPoolGradOp::verify() {
  if (typeOf(getTaps()).getShape() != typeOf(getGradient()).getShape())
    return emitOpError() << "C3: gradient and taps differ in shape";
  if (failed(verifyTaps(*this)))
    return failure();
  return verifyPool(*this, typeOf(getResult()), typeOf(getGradient()));
}
LogicalResult AvgPoolOp::verify() { return verifyPool(*this, typeOf(getInput()), typeOf(getResult())); }
LogicalResult AvgPoolGradOp::verify() {
  return verifyPool(*this, typeOf(getResult()), typeOf(getGradient()));
}

} // namespace ortc::nn
