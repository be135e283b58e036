// Parameters of which some output channels are trained.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Channels.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

void markChannels(TensorOp parameter, int64_t axis, int64_t count) {
  parameter->setAttr(kChannels, DenseI64ArrayAttr::get(parameter.getContext(), {axis, count}));
}

static std::optional<TrainedChannels> findInFile(TensorOp parameter) {
  auto mark = parameter->getAttrOfType<DenseI64ArrayAttr>(kChannels);
  if (!mark)
    return std::nullopt;
  return TrainedChannels{mark[0], mark[1]};
}

std::optional<TrainedChannels> findChannels(TensorOp parameter) {
  std::optional<TrainedChannels> channels = findInFile(parameter);
  if (std::optional<ArrayRef<int64_t>> permutation = parameter.getPermutation(); channels && permutation)
    channels->axis = llvm::find(*permutation, channels->axis) - permutation->begin();
  return channels;
}

static RankedTensorType withChannels(RankedTensorType type, std::optional<TrainedChannels> channels) {
  SmallVector<int64_t> shape(type.getShape());
  if (channels)
    shape[channels->axis] = channels->count;
  return type.clone(shape);
}

RankedTensorType trainedType(TensorOp parameter) {
  return withChannels(cast<RankedTensorType>(parameter.getType()), findInFile(parameter));
}

RankedTensorType storedTrainedType(TensorOp parameter) {
  return withChannels(parameter.getStoredType(), findChannels(parameter));
}

RankedTensorType gradientType(TensorOp parameter) {
  RankedTensorType type = storedTrainedType(parameter);
  return type.getElementType().isBF16() ? type.clone(Float32Type::get(parameter.getContext())) : type;
}

Value takeTrained(TensorBuilder &b, TensorOp parameter, Value whole) {
  std::optional<TrainedChannels> channels = findChannels(parameter);
  return channels ? b.sliceAxis(whole, channels->axis, 0, channels->count) : whole;
}

// All of the tensor passes through the kernel that this becomes, which reads and writes an element at one place: so it
// works in the tensor's own memory.
Value putTrained(TensorBuilder &b, TensorOp parameter, Value part, Value whole) {
  std::optional<TrainedChannels> channels = findChannels(parameter);
  if (!channels)
    return part;
  int64_t all = TensorBuilder::shapeOf(whole)[channels->axis];
  return b.concat({part, b.sliceAxis(whole, channels->axis, channels->count, all - channels->count)},
                  channels->axis);
}

} // namespace ortc::train
