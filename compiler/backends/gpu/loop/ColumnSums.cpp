// Loop programs that reduce leading dimensions, with enough blocks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Columns are few where rows are many: a thread for each point would leave a device almost idle. So the rows are cut
// into parts, whose number follows from the shape. The warps of a block have a part each of the same 32 points, and
// join their sums through shared memory; where that is not enough, more blocks have the same points, and a second
// launch joins their sums through scratch. A part is summed as the whole is elsewhere: in blocks of kReductionBlock
// rows.
#include "compiler/backends/gpu/loop/ColumnSums.h"

#include "compiler/backends/emit/LoopWalk.h"
#include "compiler/backends/emit/Reduction.h"
#include "compiler/backends/gpu/loop/LoopKernel.h"
#include "compiler/backends/gpu/loop/StoredSums.h"
#include "compiler/kernels/SumOrder.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::gpu {

static_assert(kernels::kColumnGroup == kWarp, "a lane has a point");

/// Sums of warps that are loaded side by side on AMD's processors, which have 128 registers for each of 1024 threads.
static constexpr int64_t kSumsAtOnce = 8;

namespace {

class ColumnEmitter : LoopWalk {
public:
  /// `scratch`: null where a block has all rows. `isInPlace`: results of points may lie where others are read.
  ColumnEmitter(KernelBuilder &kernel, ThreadBuilder &builder, const LoopProgram &program, ValueRange buffers,
                Value scratch, const ColumnCut &cut, bool isInPlace, const MathOptions &options)
      : LoopWalk(builder, program, buffers), kernel(kernel), threads(builder), cut(cut), options(options),
        scratch(scratch), isInPlace(isInPlace), points(program.elements(/*reduced=*/false)) {
    // The dimension that is cut is the outermost of the walk.
    auto found = llvm::find(outerReduced, cut.dim);
    std::rotate(outerReduced.begin(), found, found + 1);
  }

  /// The first launch: the work of a thread.
  void emit(Value block) {
    lane = b.rem(threads.thread(), kWarp), warp = b.div(threads.thread(), kWarp);
    Value group = cut.chunks == 1 ? block : b.div(block, cut.chunks);
    chunk = b.rem(block, cut.chunks);
    position = b.add(b.mul(group, kWarp), lane);
    if (points % kWarp != 0) {
      isThere = threads.less(position, points);
      position = b.minimum(position, b.index(points - 1)); // barriers are for all threads
    }
    ElementEmitter emitter(b, program, buffers, options);
    placePoint(threads, program, emitter, position);
    hoistRoots(emitter, reducedMask);
    if (cut.chunks == 1)
      emitPasses(emitter);
    else
      emitChunk(emitter);
  }

  /// The second launch: the work of the thread of a point.
  void join(Value point) {
    ElementEmitter emitter(b, program, buffers, options);
    placePoint(threads, program, emitter, point);
    hoistRoots(emitter, reducedMask);
    auto list = reductionsOf(0);
    auto load = [&](Value at) {
      Values sums;
      for (unsigned r : list)
        sums.push_back(loadSum(threads, typeOf(r), chunkSums(r), b.add(b.mul(at, points), point)));
      return sums;
    };
    auto add = [&](Value at, ValueRange carried) { return joined({&emitter}, list, carried, load(at)); };
    Values sums = b.fold({b.index(1), b.index(cut.chunks)}, 1, load(b.index(0)), add);
    finishPass({&emitter}, list, sums);
    storePerRow(emitter);
  }

private:
  void emitPasses(ElementEmitter &emitter) {
    bool hasMet = false;
    for (unsigned pass = 0; pass < program.passes; ++pass) {
      auto list = reductionsOf(pass);
      if (list.empty() && !storesIn(pass))
        continue;
      hoistPass(emitter, pass, reducedMask);
      Values sums = joinWarps(emitter, list, walkPart(emitter, pass, list));
      finishPass({&emitter}, list, sums);
      hasMet = !list.empty();
    }
    // Other warps may still read what is stored over, unless all have met to join the last sums.
    if (isInPlace && !hasMet)
      threads.barrier();
    threads.guarded(threads.both(isThere, threads.less(warp, 1)), [&] { storePerRow(emitter); });
  }

  void emitChunk(ElementEmitter &emitter) {
    auto list = reductionsOf(0);
    hoistPass(emitter, 0, reducedMask);
    Values sums = joinWarps(emitter, list, walkPart(emitter, 0, list));
    threads.guarded(threads.both(isThere, threads.less(warp, 1)), [&] {
      for (auto [r, sum] : llvm::zip_equal(list, sums))
        storeSum(threads, sum, chunkSums(r), b.add(b.mul(chunk, points), position));
    });
  }

  /// The sums of the warp's part.
  Values walkPart(ElementEmitter &emitter, unsigned pass, List list) {
    Values identities = identitiesOf({&emitter}, list);
    if (!isThere)
      return walkRows(emitter, pass, list, identities);
    return threads.guarded(isThere, identities, [&] {
      emitter.openScope();
      Values sums = walkRows(emitter, pass, list, identities);
      emitter.closeScope();
      return sums;
    });
  }

  Values walkRows(ElementEmitter &emitter, unsigned pass, List list, const Values &identities) {
    int64_t size = program.dims[cut.dim].size;
    Value begin = threads.anew(b.mul(b.add(b.mul(chunk, cut.warps), warp), cut.partSize));
    Value end = b.minimum(b.add(begin, cut.partSize), b.index(size));
    auto over = [&](IndexRange range) { return walkRange({&emitter}, pass, list, 0, range, identities); };
    if (outerReduced.size() > 1 || list.empty())
      return over({begin, end});
    auto add = [&](ValueRange carried, IndexRange range) {
      return joined({&emitter}, list, carried, over(range));
    };
    int64_t whole = size / kReductionBlock * kReductionBlock;
    Values total = b.fold({begin, b.minimum(end, b.index(whole))}, kReductionBlock, identities,
                          [&](Value start, ValueRange carried) {
                            return add(carried, {start, b.add(start, kReductionBlock)});
                          });
    if (whole == size)
      return total;
    return threads.guarded(threads.less(b.maximum(begin, b.index(whole)), end), total,
                           [&] { return add(total, {b.index(whole), b.index(size)}); });
  }

  Type typeOf(unsigned r) const { return accumulatorType(program.reductions[r].element); }
  Type storedType(unsigned r) { return storedSumType(threads, typeOf(r)); }

  /// The sums of the block's warps, in order: each thread gets those of its point. The arrays are used once.
  Values joinWarps(ElementEmitter &emitter, List list, const Values &sums) {
    if (list.empty() || cut.warps == 1)
      return sums;
    Values arrays;
    for (unsigned r : list)
      arrays.push_back(kernel.shared(threads, storedType(r), cut.warps * kWarp));
    for (auto [array, sum] : llvm::zip_equal(arrays, sums))
      storeSum(threads, sum, array, threads.thread());
    threads.barrier();
    Values total;
    for (int64_t from = 0; from < cut.warps; ++from) {
      if (from % kSumsAtOnce == 0)
        threads.separate();
      Values part;
      for (auto [r, array] : llvm::zip_equal(list, arrays))
        part.push_back(loadSum(threads, typeOf(r), array, b.add(lane, from * kWarp)));
      total = from == 0 ? part : joined({&emitter}, list, total, part);
    }
    return total;
  }

  /// The sums of a reduction in scratch, chunk by chunk. Wider sums come first, so each array is aligned to its type.
  Value chunkSums(unsigned r) {
    int64_t at = 0;
    for (unsigned other = 0; other < program.reductions.size(); ++other) {
      int64_t bits = storedType(other).getIntOrFloatBitWidth();
      int64_t own = storedType(r).getIntOrFloatBitWidth();
      if (bits > own || (bits == own && other < r))
        at += cut.chunks * points * bits / 8;
    }
    auto type = MemRefType::get({cut.chunks * points}, storedType(r));
    return memref::ViewOp::create(b, type, scratch, b.index(at), ValueRange{});
  }

  KernelBuilder &kernel;
  ThreadBuilder &threads;
  const ColumnCut &cut;
  const MathOptions &options;
  Value scratch;
  bool isInPlace;
  int64_t points;
  Value lane, warp, chunk, position, isThere; ///< the last: null where every lane has a point
};

} // namespace

int64_t columnBlocks(const LoopProgram &program, const ColumnCut &cut) {
  return llvm::divideCeilSigned(program.elements(/*reduced=*/false), kWarp) * cut.chunks;
}

void emitColumnBlock(KernelBuilder &kernel, ThreadBuilder &b, const LoopProgram &program, ValueRange buffers,
                     const ColumnCut &cut, const MathOptions &options, Value block) {
  assert(cut.chunks == 1 && "there is no second launch");
  ColumnEmitter(kernel, b, program, buffers, /*scratch=*/{}, cut, /*isInPlace=*/true, options).emit(block);
}

void emitColumnSums(KernelBuilder &kernel, const LoopProgram &program, const ColumnCut &cut,
                    const MathOptions &options) {
  int64_t points = program.elements(/*reduced=*/false);
  if (cut.chunks > 1)
    kernel.reserveScratch(cut.chunks * points * sumBytes(program));
  bool isInPlace = storesRowsInPlace(kernel, program);
  kernel.launch(columnBlocks(program, cut), cut.warps * kWarp,
                [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments) {
                  ColumnEmitter(kernel, b, program, arguments.buffers, arguments.scratch, cut, isInPlace,
                                options)
                      .emit(b.block());
                },
                {.resident = KernelBuilder::kOneBlock});
  if (cut.chunks == 1)
    return;
  kernel.launchThreads(points, [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value point) {
    ColumnEmitter(kernel, b, program, arguments.buffers, arguments.scratch, cut, isInPlace, options)
        .join(point);
  });
}

} // namespace ortc::gpu
