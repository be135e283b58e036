// Pooling and its gradients.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/pool/PoolKernel.h"

#include "compiler/backends/emit/PoolElement.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;

namespace {

class PoolEmitter : public LoopBuilder {
public:
  PoolEmitter(ModuleOp module, StringRef name, Operation *op, const Target &target)
      : LoopBuilder(UnknownLoc::get(module.getContext()), module.getContext()), op(op) {
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    walked = llvm::to_vector(result.getShape());
    lanes = target.lanes(result.getElementTypeBitWidth());

    int64_t perRow = std::max<int64_t>(1, nn::elementCount(ArrayRef(walked).drop_front(2)) * countTaps(op));
    rows = walked[0] * walked[1];
    rowsPerChunk =
        std::clamp<int64_t>(target.machine.parallel.poolWork / perRow, 1, std::max<int64_t>(1, rows));
    info.name = name.str();
    info.chunks = (rows + rowsPerChunk - 1) / rowsPerChunk;
    SmallVector<KernelBuffer> buffers;
    auto addBuffer = [&](Value value, bool written) {
      auto type = cast<RankedTensorType>(value.getType());
      buffers.push_back({type.getElementType(), type.getNumElements(), written, true});
    };
    for (Value value : op->getOperands())
      addBuffer(value, false);
    for (Value value : op->getResults())
      addBuffer(value, true);
    kernel = createKernelFunction(*this, module, info, buffers);
  }

  KernelInfo emit() {
    Value begin = mul(kernel.chunk, rowsPerChunk), end = minimum(add(begin, rowsPerChunk), index(rows));
    loop({begin, end}, 1, [&](Value row) {
      SmallVector<Value> position{div(row, walked[1]), rem(row, walked[1])};
      overPositions(position);
    });
    return info;
  }

private:
  /// Walks the remaining spatial dimensions, then the channels in vectors and what remains of them in a shorter one.
  void overPositions(SmallVector<Value> &position) {
    if (position.size() + 1 < walked.size()) {
      loop(0, walked[position.size()], 1, [&](Value i) {
        position.push_back(i);
        overPositions(position);
        position.pop_back();
      });
      return;
    }
    tiles(walked.back(), lanes, [&](Value channel, int64_t width) {
      emitPoolElement(*this, op, kernel.buffers, position, channel, width);
    });
  }

  Operation *op;
  SmallVector<int64_t> walked; ///< shape of the result
  int64_t lanes, rows, rowsPerChunk;
  KernelInfo info;
  KernelFunction kernel;
};

} // namespace

KernelInfo generatePoolKernel(ModuleOp module, StringRef name, Operation *op, const Target &target) {
  return PoolEmitter(module, name, op, target).emit();
}

} // namespace ortc::cpu
