// Data movement on host tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/evaluator/Kernels.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "dialects/nn/PackedOps.h"
#include "dialects/nn/Philox.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ortc::evaluator {

/// Fills `result` with `input` at the linear position that `source` gives for each index; -1 leaves the element alone.
static void moveElements(HostTensor &result, const HostTensor &input,
                         llvm::function_ref<int64_t(ArrayRef<int64_t>)> source) {
  if (result.size() == 0)
    return;
  SmallVector<int64_t> index(result.getRank(), 0);
  int64_t at = 0;
  do {
    if (int64_t from = source(index); from >= 0)
      result.copy(at, input, from);
    ++at;
  } while (nextIndex(index, result.getShape()));
}

static HostTensor pad(nn::PadOp op, const HostTensor &input, const HostTensor &value) {
  HostTensor result(resultType(op));
  auto strides = nn::rowMajorStrides(input.getShape());
  for (int64_t i = 0; i < result.size(); ++i)
    result.copy(i, value, 0);
  moveElements(result, input, [&](ArrayRef<int64_t> index) {
    int64_t from = 0;
    for (auto [d, i] : llvm::enumerate(index)) {
      int64_t at = i - op.getLow()[d], step = op.getInterior()[d] + 1;
      if (at < 0 || at % step != 0 || at / step >= input.getShape()[d])
        return int64_t(-1);
      from += at / step * strides[d];
    }
    return from;
  });
  return result;
}

static HostTensor concat(nn::ConcatOp op, Operands operands) {
  HostTensor result(resultType(op));
  int64_t axis = op.getAxis(), row = nn::elementCount(result.getShape().drop_front(axis)), begin = 0;
  for (const HostTensor *input : operands) {
    int64_t part = nn::elementCount(input->getShape().drop_front(axis));
    for (int64_t from = 0, to = begin; from < input->size(); from += part, to += row)
      result.copy(to, *input, from, part);
    begin += part;
  }
  return result;
}

/// One index map for broadcast, transpose, slice and reverse: from = offset + sum of index[d] * strides[d].
static HostTensor affine(Operation *op, const HostTensor &input, int64_t offset, ArrayRef<int64_t> strides) {
  HostTensor result(resultType(op));
  moveElements(result, input, [&](ArrayRef<int64_t> index) {
    int64_t from = offset;
    for (auto [d, i] : llvm::enumerate(index))
      from += i * strides[d];
    return from;
  });
  return result;
}

static HostTensor unpack(nn::UnpackOp op, const HostTensor &data, const HostTensor &scales) {
  HostTensor result(resultType(op));
  int64_t columns = result.getShape()[1], bytes = data.getShape()[2], blocks = scales.getShape()[1];
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t within = i % nn::kPackedGroup,
            number = data.getInt(i / nn::kPackedGroup * bytes + within % bytes);
    if (bytes < nn::kPackedGroup)
      number = llvm::SignExtend64<4>(number >> (within / bytes * 4));
    result.setFloat(i, static_cast<double>(number) *
                           scales.getFloat(i / columns * blocks + i % columns * blocks / columns));
  }
  return result;
}

FamilyResult evaluateMovement(Operation *op, Operands operands) {
  auto inputStrides = [&] { return nn::rowMajorStrides(operands[0]->getShape()); };
  return llvm::TypeSwitch<Operation *, FamilyResult>(op)
      .Case([&](nn::BroadcastOp op) {
        auto strides = inputStrides();
        SmallVector<int64_t> map(resultType(op).getRank(), 0);
        for (auto [i, dim] : llvm::enumerate(op.getDimensions()))
          map[dim] = operands[0]->getShape()[i] == 1 ? 0 : strides[i];
        return single(affine(op, *operands[0], 0, map));
      })
      .Case([&](nn::ReshapeOp op) { return single(operands[0]->withType(resultType(op))); })
      .Case([&](nn::TransposeOp op) {
        auto strides = inputStrides();
        SmallVector<int64_t> map;
        for (int64_t from : op.getPermutation())
          map.push_back(strides[from]);
        return single(affine(op, *operands[0], 0, map));
      })
      .Case([&](nn::SliceOp op) {
        auto map = inputStrides();
        int64_t offset = 0;
        for (auto [d, stride] : llvm::enumerate(map)) {
          offset += op.getStarts()[d] * stride;
          stride *= op.getStrides()[d];
        }
        return single(affine(op, *operands[0], offset, map));
      })
      .Case([&](nn::ReverseOp op) {
        auto map = inputStrides();
        int64_t offset = 0;
        for (int64_t axis : op.getAxes()) {
          offset += (operands[0]->getShape()[axis] - 1) * map[axis];
          map[axis] = -map[axis];
        }
        return single(affine(op, *operands[0], offset, map));
      })
      .Case([&](nn::PadOp op) { return single(pad(op, *operands[0], *operands[1])); })
      .Case([&](nn::ConcatOp op) { return single(concat(op, operands)); })
      .Case([&](nn::DetachOp) { return single(*operands[0]); })
      .Case([&](nn::IotaOp op) {
        HostTensor result(resultType(op));
        int64_t stride = nn::rowMajorStrides(result.getShape())[op.getAxis()],
                size = result.getShape()[op.getAxis()];
        for (int64_t i = 0; i < result.size(); ++i) {
          int64_t position = i / stride % size;
          if (result.isFloat())
            result.setFloat(i, static_cast<double>(position));
          else
            result.setInt(i, position);
        }
        return single(std::move(result));
      })
      .Case([&](nn::RandomOp op) {
        Results results{HostTensor(resultType(op, 0)), HostTensor(resultType(op, 1))};
        auto step = static_cast<uint32_t>(operands[0]->getInt(0));
        for (int64_t i = 0; i < results[0].size(); ++i) {
          auto words = nn::philox({static_cast<uint32_t>(i), step}, static_cast<uint32_t>(op.getKey()));
          results[0].setInt(i, static_cast<int32_t>(words[0]));
          results[1].setInt(i, static_cast<int32_t>(words[1]));
        }
        return FamilyResult(FailureOr<Results>(std::move(results)));
      })
      .Case([&](nn::UnpackOp op) { return single(unpack(op, *operands[0], *operands[1])); })
      .Case([&](nn::StraightThroughOp) { return single(HostTensor(*operands[0])); })
      .Default([](Operation *) { return FamilyResult(); });
}

} // namespace ortc::evaluator
