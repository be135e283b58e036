// Indices in order, with the positions that they were at.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/scatter/SortedIndices.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::gpu {

/// Runs that become one: first of one index each, then of many.
static constexpr int64_t kFirstFan = 256, kFan = 16;

/// How many of the `size` words from `start` on, which are in order, are less than `word`, or not greater. `size` is at
/// most `most`.
static Value countInOrder(ThreadBuilder &b, Value array, Value start, Value size, int64_t most, Value word,
                          arith::CmpIPredicate predicate) {
  Value count = b.index(0);
  for (int64_t step = llvm::bit_floor(static_cast<uint64_t>(std::max<int64_t>(most, 1))); step > 0;
       step /= 2) {
    Value next = b.add(count, step);
    Value isWithin = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, next, size);
    Value takes = b.guarded(isWithin, isWithin, [&]() -> SmallVector<Value> {
      Value other = b.loadScalar(array, b.add(start, b.add(next, -1)));
      return {arith::CmpIOp::create(b, predicate, other, word)};
    })[0];
    count = b.choose(takes, next, count);
  }
  return count;
}

SortedIndices::Order SortedIndices::orderIn(ThreadBuilder &b, Value scratch, unsigned half) {
  auto type = MemRefType::get({count}, b.getI32Type());
  auto array = [&](int64_t number) -> Value {
    return memref::ViewOp::create(b, type, scratch, b.index(number * count * 4), ValueRange{});
  };
  return {array(2 * half), array(2 * half + 1)};
}

void SortedIndices::emit() {
  bool isOneMerge = count <= kFirstFan;
  kernel.reserveScratch((isOneMerge ? 2 : 4) * count * 4);
  emitMerge(1, kFirstFan, /*isFirst=*/true, 1);
  last = 0;
  for (int64_t run = kFirstFan; run < count; run *= kFan, last = 1 - last)
    emitMerge(run, kFan, /*isFirst=*/false, last);
}

/// Merges runs of length `run` from a half of the scratch into the other; the first time from the tensor, whose
/// elements are runs of one.
void SortedIndices::emitMerge(int64_t run, int64_t fan, bool isFirst, unsigned from) {
  kernel.launchThreads(count, [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value i) {
    Order to = orderIn(b, arguments.scratch, 1 - from);
    Order source = isFirst ? Order{arguments.buffers[indices], {}} : orderIn(b, arguments.scratch, from);
    Value word = b.loadScalar(source.indices, i);
    Value number = b.div(i, run), first = b.mul(b.div(number, fan), fan);
    Value last = b.minimum(b.add(first, fan), b.index(llvm::divideCeilSigned(count, run)));
    Value inRun = b.rem(i, run);
    // What is in runs before its own comes first where it is equal, what is in those behind it does not.
    auto merge = [&](IndexRange runs, Value place, arith::CmpIPredicate predicate) {
      return b.fold(runs, 1, place, [&](Value other, ValueRange carried) -> SmallVector<Value> {
        Value start = b.mul(other, run);
        Value size = b.minimum(b.index(run), b.sub(b.index(count), start));
        return {b.add(carried[0], countInOrder(b, source.indices, start, size, run, word, predicate))};
      })[0];
    };
    Value place = b.add(b.mul(first, run), inRun);
    place = merge({first, number}, place, arith::CmpIPredicate::sle);
    place = merge({b.add(number, 1), last}, place, arith::CmpIPredicate::slt);
    Value narrow = word;
    if (!word.getType().isInteger(32))
      narrow = arith::TruncIOp::create(b, b.getI32Type(), word);
    memref::StoreOp::create(b, narrow, to.indices, ValueRange{place});
    Value position = isFirst ? b.toI32(i) : b.loadScalar(source.positions, i);
    memref::StoreOp::create(b, position, to.positions, ValueRange{place});
  });
}

Value SortedIndices::countBelow(ThreadBuilder &b, Value scratch, Value index) {
  return countInOrder(b, orderIn(b, scratch, last).indices, b.index(0), b.index(count), count, index,
                      arith::CmpIPredicate::slt);
}

Value SortedIndices::indexAt(ThreadBuilder &b, Value scratch, Value place) {
  return b.loadScalar(orderIn(b, scratch, last).indices, place);
}

Value SortedIndices::positionAt(ThreadBuilder &b, Value scratch, Value place) {
  Value position = b.loadScalar(orderIn(b, scratch, last).positions, place);
  return arith::IndexCastUIOp::create(b, b.getIndexType(), position);
}

} // namespace ortc::gpu
