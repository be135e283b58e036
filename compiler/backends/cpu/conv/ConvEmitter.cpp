// Shared by all convolution kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/conv/ConvEmitter.h"

#include "compiler/backends/emit/IndexBuilder.h"
#include "compiler/backends/emit/StorageConversion.h"
#include "dialects/nn/NnShapes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

ConvEmitter::ConvEmitter(ModuleOp module, const ConvSpec &spec, const Target &target)
    : LoopBuilder(UnknownLoc::get(module.getContext()), module.getContext()), spec(spec), target(target),
      shape(shapeOfConv(spec.op)) {
  element = cast<FloatType>(cast<RankedTensorType>(spec.op->getResult(0).getType()).getElementType());
  elementBytes = element.getWidth() / 8;
  lanes = target.lanes(element.getWidth());
  columns = std::min(target.machine.tiles.convVectors * lanes, kConvColumns);
  fma = target.usesFma(spec.numerics);
  info.name = spec.name;
  for (const KernelBuffer &buffer : spec.buffers)
    (buffer.written ? bytesWritten : bytesRead) +=
        buffer.elements * buffer.elementType.getIntOrFloatBitWidth() / 8;
}

void ConvEmitter::begin(ModuleOp module, int64_t workspaceBytes) {
  info.workspaceBytesPerWorker = workspaceBytes;
  int64_t chunksOfPart = info.chunks;
  info.chunks *= shape.parts;
  kernel = createKernelFunction(*this, module, info, spec.buffers);
  if (shape.parts == 1)
    return;
  // A chunk sees the images and the result of its part only.
  Value part = div(kernel.chunk, chunksOfPart);
  kernel.chunk = rem(kernel.chunk, chunksOfPart);
  for (Value &buffer : kernel.buffers) {
    auto type = cast<MemRefType>(buffer.getType());
    int64_t elements = type.getNumElements() / shape.parts;
    auto layout = StridedLayoutAttr::get(getContext(), ShapedType::kDynamic, {1});
    buffer = memref::ReinterpretCastOp::create(
        *this, MemRefType::get({elements}, type.getElementType(), layout), buffer,
        OpFoldResult(mul(part, elements)), ArrayRef<OpFoldResult>{getIndexAttr(elements)},
        ArrayRef<OpFoldResult>{getIndexAttr(1)});
  }
}

Value ConvEmitter::offsetValue(const Offset &offset) { return IndexBuilder(*this, getLoc()).value(offset); }

Value ConvEmitter::widened(Value buffer, Value value) {
  for (auto [operand, type] : llvm::enumerate(spec.narrow))
    if (type && operandBuffer(operand) == buffer)
      return extendToF32(*this, getLoc(), value, type);
  return value;
}

Value ConvEmitter::load(Value buffer, Value at, int64_t width) {
  return widened(buffer, LoopBuilder::load(buffer, at, width));
}

Value ConvEmitter::loadScalar(Value buffer, Value at) {
  return widened(buffer, LoopBuilder::loadScalar(buffer, at));
}

Value ConvEmitter::loadLive(Value buffer, Offset at, LaneRange range) {
  return widened(buffer, loadLanes(*this, getLoc(), buffer, at, 1, range));
}

Value ConvEmitter::linear(ArrayRef<int64_t> sizes, ArrayRef<Value> indices) {
  Value at = indices.front();
  for (size_t d = 1; d < indices.size(); ++d)
    at = add(mul(at, sizes[d]), indices[d]);
  return at;
}

void ConvEmitter::copyRun(Value from, Value at, Value to, Value place, int64_t count) {
  tiles(count, lanes,
        [&](Value i, int64_t width) { store(load(from, add(at, i), width), to, add(place, i)); });
}

void ConvEmitter::zeroRun(Value buffer, Value at, int64_t count) {
  tiles(count, lanes, [&](Value i, int64_t width) { store(splat(element, 0, width), buffer, add(at, i)); });
}

Value ConvEmitter::multiplyAdd(Value a, Value b, Value sum) {
  if (fma)
    return math::FmaOp::create(*this, a, b, sum);
  return arith::AddFOp::create(*this, sum, arith::MulFOp::create(*this, a, b));
}

/// Where `position` of the result is in an operand.
static Value placeOf(LoopBuilder &builder, const ConvOperand &view, ArrayRef<Value> position) {
  Value at = builder.index(view.offset);
  for (auto [index, stride] : llvm::zip_equal(position, view.strides))
    if (stride)
      at = builder.add(at, builder.mul(index, stride));
  return at;
}

namespace {

/// Operands of an epilogue at one vector of results.
class ResultAccess final : public EpilogueAccess {
public:
  ResultAccess(LoopBuilder &builder, const ConvSpec &spec, ArrayRef<Value> buffers, ArrayRef<Value> position,
               LaneRange range)
      : builder(builder), spec(spec), buffers(buffers), position(position), range(range) {}
  Value load(OpBuilder &, Location loc, unsigned operand) override {
    const ConvOperand &view = spec.operands[operand];
    return loadLanes(builder, loc, buffers[view.buffer], place(view), view.strides.back(), range);
  }
  void store(OpBuilder &, Location loc, unsigned operand, Value value) override {
    const ConvOperand &view = spec.operands[operand];
    storeLanes(builder, loc, buffers[view.buffer], place(view), 1, range, value);
  }
  int64_t lanes() const override { return range.lanes; }

private:
  Offset place(const ConvOperand &view) { return Offset(placeOf(builder, view, position)); }
  LoopBuilder &builder;
  const ConvSpec &spec;
  ArrayRef<Value> buffers, position;
  LaneRange range;
};

} // namespace

void ConvEmitter::storeResult(ArrayRef<Value> position, Value sums, std::optional<int64_t> live) {
  int64_t width = cast<VectorType>(sums.getType()).getDimSize(0);
  ResultAccess access(*this, spec, kernel.buffers, position, {width, live.value_or(width)});
  if (spec.epilogue)
    spec.epilogue(*this, getLoc(), access, sums);
  else
    access.store(*this, getLoc(), 2, sums);
}

void ConvEmitter::fetch(Value buffer, Value at, bool writes, unsigned level) {
  memref::PrefetchOp::create(*this, buffer, ValueRange{at}, writes, /*localityHint=*/4 - level,
                             /*isDataCache=*/true);
}

void ConvEmitter::fetchResult(ArrayRef<Value> position) {
  for (const ConvOperand &view : llvm::drop_begin(spec.operands, 2))
    if (llvm::any_of(ArrayRef(view.strides).drop_back(), [](int64_t stride) { return stride != 0; }))
      fetch(kernel.buffers[view.buffer], placeOf(*this, view, position), spec.buffers[view.buffer].written);
}

void ConvEmitter::clearBlock(const SourceBlock &block) {
  if (block.copied)
    zeroRun(blockBuffer, index(0), block.elements());
}

void ConvEmitter::fillBlock(const SourceBlock &block, Value image, Value n, Value blockIndex) {
  if (!block.copied)
    return;
  int64_t inner = nn::elementCount(ArrayRef(block.sizes).drop_front()) * block.channels;
  // Block row r is image row first + r.
  Value first = sub(mul(blockIndex, block.blockPoints * block.rowStep), index(block.origin[0]));
  Value rows = index(block.sizes[0]);
  Value begin = minimum(maximum(sub(index(0), first), index(0)), rows);
  Value end = maximum(begin, minimum(sub(index(block.image[0]), first), rows));
  auto clear = [&](Value row) { zeroRun(blockBuffer, mul(row, inner), inner); };
  loop({index(0), begin}, 1, clear);
  loop({end, rows}, 1, clear);
  loop({begin, end}, 1, [&](Value row) {
    Value imageRow = add(mul(n, block.image[0]), add(first, row));
    int64_t rank = block.image.size();
    // Inner dimensions: runs of the last one times the channels.
    std::function<void(int64_t, Value, Value)> copy = [&](int64_t d, Value from, Value to) {
      if (d == rank - 1 || rank == 1) {
        int64_t width = rank == 1 ? 1 : block.image[d], offset = rank == 1 ? 0 : block.origin[d];
        int64_t size = rank == 1 ? 1 : block.sizes[d];
        copyRun(image, mul(mul(from, width), block.channels), blockBuffer,
                mul(add(mul(to, size), offset), block.channels), width * block.channels);
        return;
      }
      loop(0, block.image[d], 1, [&](Value i) {
        copy(d + 1, add(mul(from, block.image[d]), i), add(add(mul(to, block.sizes[d]), i), block.origin[d]));
      });
    };
    copy(1, imageRow, row);
  });
}

Value ConvEmitter::sourceOffset(const SourceBlock &block, Value n, ArrayRef<Value> position) {
  Value at = linear(block.sizes, position);
  if (!block.copied)
    at = add(mul(n, nn::elementCount(block.image)), at);
  return mul(at, block.channels);
}

SmallVector<std::pair<int64_t, int64_t>, 2> evenTiles(int64_t count, int64_t most) {
  int64_t pieces = (count + most - 1) / most, small = count / pieces, large = count % pieces;
  SmallVector<std::pair<int64_t, int64_t>, 2> result;
  if (large)
    result.push_back({small + 1, large});
  result.push_back({small, pieces - large});
  return result;
}

} // namespace ortc::cpu
