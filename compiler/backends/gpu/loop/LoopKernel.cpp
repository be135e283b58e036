// Kernels that are one loop nest, on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/loop/LoopKernel.h"

#include "compiler/backends/emit/LoopWalk.h"
#include "compiler/backends/emit/Reduction.h"
#include "compiler/backends/emit/StorageConversion.h"
#include "compiler/backends/gpu/loop/ColumnSums.h"
#include "compiler/backends/gpu/loop/HeldRows.h"
#include "compiler/backends/gpu/loop/PointRuns.h"
#include "compiler/backends/gpu/loop/StoredSums.h"
#include "compiler/kernels/SumOrder.h"

#include <deque>

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

} // namespace

bool storesRowsInPlace(const KernelBuilder &kernel, const LoopProgram &program) {
  return llvm::any_of(program.outputs, [&](const LoopOutput &output) {
    return output.perRow && kernel.isInPlace(output.buffer);
  });
}

void placePoint(ThreadBuilder &b, const LoopProgram &program, ElementEmitter &emitter, Value position,
                int64_t run) {
  SmallVector<unsigned> dims = parallelDims(program);
  auto runOf = [&](unsigned d) { return static_cast<int>(d) == program.laneDim ? run : 1; };
  SmallVector<int64_t> sizes;
  for (unsigned d : dims)
    sizes.push_back(program.dims[d].size / runOf(d));
  for (auto [d, digit] : llvm::zip_equal(dims, delinearize(b, position, sizes)))
    emitter.setIndex(d, b.mul(digit, runOf(d)));
}

namespace {

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
    placePoint(threads, program, emitter, position);
    hoistRoots(emitter, reducedMask);
    emitGroup({&emitter});
  }

private:
  ThreadBuilder &threads;
  const MathOptions &options;
};

/// Elements of a thread that are read before the first of them is stored.
constexpr size_t kStoredTogether = 8;

/// A row is a warp's, or a block's.
class RowEmitter : LoopWalk {
public:
  /// `lane`: the thread, of those that have the row. `team`: how many these are, kWarp or kLongRowThreads.
  RowEmitter(KernelBuilder &kernel, ThreadBuilder &builder, const LoopProgram &program, ValueRange buffers,
             const MathOptions &options, Value lane, int64_t team)
      : LoopWalk(builder, program, buffers), kernel(kernel), threads(builder), options(options), lane(lane),
        team(team), length(program.dims[program.laneDim].size),
        span(length >= team ? team : kReductionLanes) {}

  void emit(Value row) {
    if (span == team && length % span == 0 && outerReduced.empty() && holdsRows(program, length / span))
      return emitHeld(row);
    ElementEmitter emitter(b, program, buffers, options);
    placePoint(threads, program, emitter, row);
    bool hasMet = false;
    for (unsigned pass = 0; pass < program.passes; ++pass) {
      auto list = reductionsOf(pass);
      if (list.empty() && !storesIn(pass))
        continue;
      hoistPass(emitter, pass, reducedMask);
      Values sums = walkRow(emitter, pass, list, 0, identitiesOf({&emitter}, list));
      for (auto [sum, r] : llvm::zip_equal(sums, list))
        sum = joinLanes(program.reductions[r].kind, sum);
      finishPass({&emitter}, list, sums);
      hasMet = team != kWarp && !list.empty();
    }
    finishRow(emitter, hasMet);
  }

private:
  /// The same without loops: the emitter of each of a lane's elements keeps what a pass has computed for later ones.
  void emitHeld(Value row) {
    std::deque<ElementEmitter> elements;
    for (int64_t start = 0; start < length; start += span) {
      ElementEmitter &element = elements.emplace_back(b, program, buffers, options);
      placePoint(threads, program, element, row);
      element.setIndex(program.laneDim, lane);
      element.setShift(start);
    }
    bool hasMet = false;
    for (unsigned pass = 0; pass < program.passes; ++pass) {
      auto list = reductionsOf(pass);
      if (list.empty() && !storesIn(pass))
        continue;
      for (ElementEmitter &element : elements)
        hoistPass(element, pass, reducedMask);
      Values sums = identitiesOf({&elements.front()}, list);
      for (ElementEmitter &element : elements) {
        Values inputs;
        for (unsigned r : list)
          inputs.push_back(accumulated(element, program.reductions[r]));
        sums = joined({&element}, list, sums, inputs);
      }
      for (size_t first = 0; first < elements.size(); first += kStoredTogether)
        storeElements(elements, first, std::min(first + kStoredTogether, elements.size()), pass);
      for (auto [sum, r] : llvm::zip_equal(sums, list))
        sum = joinLanes(program.reductions[r].kind, sum);
      for (ElementEmitter &element : elements)
        finishPass({&element}, list, sums);
      hasMet = team != kWarp && !list.empty();
    }
    finishRow(elements.front(), hasMet);
  }

  /// What a pass stores of elements from `first` on. All loads come before the stores: memory may be shared.
  void storeElements(std::deque<ElementEmitter> &elements, size_t first, size_t end, unsigned pass) {
    struct Store {
      const LoopOutput &output;
      ElementEmitter &element;
      Value value;
    };
    SmallVector<Store> stores;
    for (const LoopOutput &output : program.outputs)
      if (!output.perRow && output.pass == pass)
        for (size_t i = first; i < end; ++i)
          stores.push_back({output, elements[i], elements[i].emit(output.node)});
    for (const Store &store : stores)
      store.element.store(store.value, store.output.element, buffers[store.output.buffer], store.output.at);
  }

  void finishRow(ElementEmitter &emitter, bool hasMet) {
    // Others may still read what is stored over, unless a block has met to join its last sums.
    if (storesRowsInPlace(kernel, program) && !hasMet)
      team == kWarp ? threads.warpBarrier() : threads.barrier();
    threads.guarded(threads.less(lane, 1), [&] { storePerRow(emitter); });
  }

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
    int64_t whole = span == team ? length / span * span : 0;
    sums = b.fold({b.index(0), b.index(whole)}, span, sums, step);
    if (whole == length)
      return sums;
    return b.fold({b.index(whole), b.index(length)}, span, sums, [&](Value start, ValueRange carried) {
      Value isThere = threads.less(b.add(start, lane), length);
      if (span < team)
        isThere = arith::AndIOp::create(b, isThere, threads.less(lane, span));
      return threads.guarded(isThere, carried, [&] { return step(start, carried); });
    });
  }

  Value joinLanes(nn::ReduceKind kind, Value sum) {
    for (int64_t half = std::min(span, kWarp) / 2; half >= 1; half /= 2)
      sum = combine(b, kind, sum, threads.shuffleDown(sum, half));
    return team == kWarp ? threads.fromFirstLane(sum) : joinWarps(kind, sum);
  }

  /// The sums of the warps' first lanes, in order. The array is used once: nobody waits for others to have read it.
  Value joinWarps(nn::ReduceKind kind, Value sum) {
    int64_t warps = team / kWarp;
    Value sums = kernel.shared(threads, storedSumType(threads, sum.getType()), warps);
    threads.guarded(threads.less(b.rem(lane, kWarp), 1),
                    [&] { storeSum(threads, sum, sums, b.div(lane, kWarp)); });
    threads.barrier();
    auto load = [&](int64_t warp) { return loadSum(threads, sum.getType(), sums, b.index(warp)); };
    Value total = load(0);
    for (int64_t warp = 1; warp < warps; ++warp)
      total = combine(b, kind, total, load(warp));
    return total;
  }

  KernelBuilder &kernel;
  ThreadBuilder &threads;
  const MathOptions &options;
  Value lane;
  int64_t team, length, span; ///< threads; of the lane dimension; sums that are kept apart
};
static_assert(kReductionLanes * kReductionVectors == kWarp, "a lane keeps one sum");

} // namespace

void emitPoint(ThreadBuilder &b, const LoopProgram &program, ValueRange buffers, const MathOptions &options,
               Value position, NodeSupplier supply) {
  PointEmitter(b, program, buffers, options).emit(position, supply);
}

void emitLoops(KernelBuilder &kernel, const LoopProgram &program, const GeneratorOptions &generator) {
  MathOptions options = generator.math();
  int64_t points = program.elements(/*reduced=*/false);
  if (generator.numerics == Numerics::Fast)
    if (auto cut = kernels::chooseColumnCut(program))
      return emitColumnSums(kernel, program, *cut, options);
  if (int64_t run = chooseRun(kernel, program); run > 1)
    return emitRuns(kernel, program, run, options);
  if (!program.lanesReduced()) {
    kernel.launchThreads(points,
                         [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value point) {
                           emitPoint(b, program, arguments.buffers, options, point, nullptr);
                         });
    return;
  }
  if (generator.numerics == Numerics::Fast && program.dims[program.laneDim].size >= kLongRow) {
    kernel.launch(points, kLongRowThreads,
                  [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments) {
                    RowEmitter(kernel, b, program, arguments.buffers, options, b.thread(), kLongRowThreads)
                        .emit(b.block());
                  },
                  {.resident = KernelBuilder::kOneBlock});
    return;
  }
  kernel.launchThreads(points * kWarp,
                       [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value position) {
                         RowEmitter(kernel, b, program, arguments.buffers, options, b.rem(position, kWarp),
                                    kWarp)
                             .emit(b.div(position, kWarp));
                       },
                       {.resident = KernelBuilder::kOneBlock});
}

} // namespace ortc::gpu
