// Loops side by side in one launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/loop/JoinedKernel.h"

#include "compiler/backends/gpu/loop/LoopKernel.h"
#include "compiler/kernels/loop/JoinedLoops.h"
#include "dialects/plan/PlanDialect.h"

using namespace mlir;

namespace ortc::gpu {

namespace {

/// Writes the code of a block: a search for its loop, and what the loop's threads do.
class JoinedEmitter {
public:
  JoinedEmitter(ThreadBuilder &b, ArrayRef<kernels::JoinedLoop> loops, ArrayRef<int64_t> firsts,
                ValueRange buffers, size_t inputs, const MathOptions &options)
      : b(b), loops(loops), firsts(firsts), buffers(buffers), inputs(inputs), options(options) {}

  /// For blocks of the loops from `begin` to `end`.
  void emit(size_t begin, size_t end) {
    if (end - begin == 1)
      return emitLoop(begin);
    size_t middle = begin + (end - begin) / 2;
    b.guarded(b.less(b.block(), firsts[middle]), [&] { emit(begin, middle); });
    b.guarded(b.less(b.index(firsts[middle] - 1), b.block()), [&] { emit(middle, end); });
  }

private:
  void emitLoop(size_t number) {
    const kernels::JoinedLoop &loop = loops[number];
    SmallVector<Value> own(buffers.take_front(inputs));
    for (unsigned output : loop.outputs)
      own.push_back(buffers[inputs + output]);
    Value block = firsts[number] == 0 ? b.block() : b.sub(b.block(), b.index(firsts[number]));
    Value point = b.add(b.mul(block, kBlockThreads), b.thread());
    int64_t points = loop.program.elements(/*reduced=*/false);
    b.guarded(b.less(point, points), [&] { emitPoint(b, loop.program, own, options, point, nullptr); });
  }

  ThreadBuilder &b;
  ArrayRef<kernels::JoinedLoop> loops;
  ArrayRef<int64_t> firsts; ///< the first block of each
  ValueRange buffers;
  size_t inputs;
  const MathOptions &options;
};

} // namespace

LogicalResult generateJoined(KernelBuilder &kernel, func::FuncOp function,
                             const GeneratorOptions &generator) {
  std::string reason;
  auto inPlace = function->getAttrOfType<DenseI64ArrayAttr>(plan::kInPlace);
  auto loops = kernels::analyzeJoined(function.getArguments(),
                                      function.getBody().front().getTerminator()->getOperands(),
                                      inPlace ? inPlace.asArrayRef() : ArrayRef<int64_t>(), reason);
  if (!loops)
    return function.emitError(reason);
  SmallVector<int64_t> firsts;
  int64_t blocks = 0;
  for (const kernels::JoinedLoop &loop : *loops) {
    firsts.push_back(blocks);
    blocks += (loop.program.elements(/*reduced=*/false) + kBlockThreads - 1) / kBlockThreads;
  }
  MathOptions options = generator.math();
  kernel.launch(blocks, kBlockThreads, [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments) {
    JoinedEmitter(b, *loops, firsts, arguments.buffers, function.getNumArguments(), options)
        .emit(0, loops->size());
  });
  return success();
}

} // namespace ortc::gpu
