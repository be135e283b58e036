// Kernels that are one loop nest, on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/loop/LoopKernel.h"

#include "compiler/backends/emit/LoopWalk.h"
#include "compiler/backends/emit/Reduction.h"
#include "compiler/backends/emit/StorageConversion.h"
#include "compiler/kernels/SumOrder.h"

using namespace mlir;

namespace ortc::gpu {

namespace {

/// The parallel dimensions, outermost first.
SmallVector<unsigned> parallelDims(const LoopProgram &program) {
  SmallVector<unsigned> dims;
  for (auto [d, dim] : llvm::enumerate(program.dims))
    if (!dim.reduced)
      dims.push_back(d);
  return dims;
}

/// Sets the indices of the parallel dimensions from a position over them.
void place(ThreadBuilder &b, const LoopProgram &program, ElementEmitter &emitter, Value position) {
  SmallVector<unsigned> dims = parallelDims(program);
  SmallVector<int64_t> sizes;
  for (unsigned d : dims)
    sizes.push_back(program.dims[d].size);
  for (auto [d, digit] : llvm::zip_equal(dims, delinearize(b, position, sizes)))
    emitter.setIndex(d, digit);
}

/// A point is a thread's.
class PointEmitter : LoopWalk {
public:
  PointEmitter(ThreadBuilder &builder, const LoopProgram &program, ValueRange buffers,
               const MathOptions &options)
      : LoopWalk(builder, program, buffers), threads(builder), options(options) {}

  void emit(Value position, NodeSupplier supply) {
    ElementEmitter emitter(b, program, buffers, options);
    if (supply)
      emitter.setSupplier([&](unsigned node) { return supply(emitter, node); });
    place(threads, program, emitter, position);
    hoistRoots(emitter, reducedMask);
    emitGroup({&emitter});
  }

private:
  ThreadBuilder &threads;
  const MathOptions &options;
};

/// A row is a warp's.
class RowEmitter : LoopWalk {
public:
  RowEmitter(ThreadBuilder &builder, const LoopProgram &program, ValueRange buffers,
             const MathOptions &options, Value lane)
      : LoopWalk(builder, program, buffers), threads(builder), options(options), lane(lane),
        length(program.dims[program.laneDim].size), span(length >= kWarp ? kWarp : kReductionLanes) {}

  void emit(Value row) {
    ElementEmitter emitter(b, program, buffers, options);
    place(threads, program, emitter, row);
    for (unsigned pass = 0; pass < program.passes; ++pass) {
      auto list = reductionsOf(pass);
      if (list.empty() && !storesIn(pass))
        continue;
      hoistPass(emitter, pass, reducedMask);
      Values sums;
      for (unsigned r : list)
        sums.push_back(identityOf(r, emitter));
      sums = walkRow(emitter, pass, list, 0, sums);
      for (auto [sum, r] : llvm::zip_equal(sums, list))
        sum = joinLanes(program.reductions[r].kind, sum);
      finishPass({&emitter}, list, sums);
    }
    // Others may still read what is stored here.
    threads.warpBarrier();
    threads.guarded(threads.less(lane, 1), [&] { storePerRow(emitter); });
  }

private:
  Values walkRow(ElementEmitter &emitter, unsigned pass, List list, size_t level, Values sums) {
    if (level == outerReduced.size())
      return walkLanes(emitter, pass, list, sums);
    unsigned dim = outerReduced[level];
    return b.fold(
        {b.index(0), b.index(program.dims[dim].size)}, 1, sums, [&](Value index, ValueRange carried) {
          emitter.openScope();
          emitter.setIndex(dim, index);
          Values result = walkRow(emitter, pass, list, level + 1, llvm::to_vector_of<Value>(carried));
          emitter.closeScope();
          return result;
        });
  }

  /// Every `span`-th element of the row from the lane's own on.
  Values walkLanes(ElementEmitter &emitter, unsigned pass, List list, Values sums) {
    auto step = [&](Value start, ValueRange carried) {
      emitter.openScope();
      emitter.setIndex(program.laneDim, b.add(start, lane));
      Values next = joined({&emitter}, list, carried, emitPoint({&emitter}, pass, list));
      emitter.closeScope();
      return next;
    };
    int64_t whole = span == kWarp ? length / span * span : 0;
    sums = b.fold({b.index(0), b.index(whole)}, span, sums, step);
    if (whole == length)
      return sums;
    return b.fold({b.index(whole), b.index(length)}, span, sums, [&](Value start, ValueRange carried) {
      Value isThere = threads.less(b.add(start, lane), length);
      if (span < kWarp)
        isThere = arith::AndIOp::create(b, isThere, threads.less(lane, span));
      return threads.guarded(isThere, carried, [&] { return step(start, carried); });
    });
  }

  Value joinLanes(nn::ReduceKind kind, Value sum) {
    for (int64_t half = span / 2; half >= 1; half /= 2)
      sum = combine(b, kind, sum, threads.shuffleDown(sum, half));
    return threads.fromFirstLane(sum);
  }

  ThreadBuilder &threads;
  const MathOptions &options;
  Value lane;
  int64_t length, span; ///< of the lane dimension; sums that are kept apart
};
static_assert(kReductionLanes * kReductionVectors == kWarp, "a lane keeps one sum");

} // namespace

void emitPoint(ThreadBuilder &b, const LoopProgram &program, ValueRange buffers, const MathOptions &options,
               Value position, NodeSupplier supply) {
  PointEmitter(b, program, buffers, options).emit(position, supply);
}

void emitLoops(KernelBuilder &kernel, const LoopProgram &program, const MathOptions &options) {
  int64_t points = program.elements(/*reduced=*/false);
  if (!program.lanesReduced()) {
    kernel.launchThreads(points,
                         [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value point) {
                           emitPoint(b, program, arguments.buffers, options, point, nullptr);
                         });
    return;
  }
  kernel.launchThreads(points * kWarp, [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments,
                                           Value position) {
    RowEmitter(b, program, arguments.buffers, options, b.rem(position, kWarp)).emit(b.div(position, kWarp));
  });
}

} // namespace ortc::gpu
