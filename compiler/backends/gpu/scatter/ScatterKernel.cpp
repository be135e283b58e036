// Sums of rows at places that indices name, on GPUs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/scatter/ScatterKernel.h"

#include "compiler/backends/emit/ElementEmitter.h"
#include "compiler/backends/emit/Reduction.h"
#include "compiler/backends/gpu/loop/PointRuns.h"
#include "compiler/backends/gpu/scatter/SortedIndices.h"
#include "compiler/kernels/scatter/ScatterForm.h"

#include <limits>
#include <numeric>

using namespace mlir;

namespace ortc::gpu {

namespace {

/// Which of the kernel's buffers a scatter_add reads, and of what type its sums are.
struct Scatter {
  ScatterPlan plan;
  Type element;
  unsigned indices, updates;
};

/// What is done with the sums, as they are stored, of a run of neighbours in the table: the one of number `number`.
using Finish =
    llvm::function_ref<void(ThreadBuilder &, ArrayRef<Value> buffers, Value number, ValueRange sums)>;

/// Neighbours of a row that a thread should have, so that it reads and writes 16 bytes at once.
int64_t chooseRun(const KernelBuilder &kernel, const Scatter &scatter, unsigned result) {
  int64_t bytes = std::max<int64_t>(scatter.element.getIntOrFloatBitWidth() / 8, 1);
  int64_t aligned = std::min(kernel.alignmentOf(scatter.updates), kernel.alignmentOf(result));
  int64_t run = std::gcd(std::min(aligned, kAccessBytes) / bytes, scatter.plan.columns);
  return fillsDevice(scatter.plan.outer * scatter.plan.rows * scatter.plan.columns / run) ? run : 1;
}

/// `run`: divides the columns.
void emitScatter(KernelBuilder &kernel, const Scatter &scatter, int64_t run, Finish finish) {
  const ScatterPlan &plan = scatter.plan;
  std::optional<SortedIndices> sorted;
  if (plan.count > 0)
    sorted.emplace(kernel, scatter.indices, plan.count).emit();
  int64_t threads = plan.outer * plan.rows * plan.columns / run;
  kernel.launchThreads(threads, [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value i) {
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(bufferType(scatter.element)));
    SmallVector<Value> zeros(run, zero);
    if (!sorted)
      return finish(b, arguments.buffers, i, zeros);
    auto digits = delinearize(b, i, {plan.outer, plan.rows, plan.columns / run});
    Value row = b.toI32(digits[1]), column = b.mul(digits[2], run);
    Value begin = sorted->countBelow(b, arguments.scratch, row);
    // Most rows of a large table have no update.
    Value isWithin = b.less(begin, plan.count);
    Value isNamed = b.guarded(isWithin, isWithin, [&]() -> SmallVector<Value> {
      Value there = sorted->indexAt(b, arguments.scratch, begin);
      return {arith::CmpIOp::create(b, arith::CmpIPredicate::eq, there, row)};
    })[0];
    auto sums = b.guarded(isNamed, zeros, [&] {
      Value next = arith::AddIOp::create(b, row, arith::ConstantOp::create(b, b.getI32IntegerAttr(1)));
      Value end = sorted->countBelow(b, arguments.scratch, next);
      return b.fold({begin, end}, 1, zeros, [&](Value place, ValueRange carried) {
        Value from = sorted->positionAt(b, arguments.scratch, place);
        from = b.add(b.mul(b.add(b.mul(digits[0], plan.count), from), plan.columns), column);
        SmallVector<Value> next;
        for (auto [k, sum] : llvm::enumerate(carried)) {
          Value update = b.loadScalar(arguments.buffers[scatter.updates], b.add(from, k));
          next.push_back(combineStored(b, nn::ReduceKind::sum, scatter.element, sum, update));
        }
        return next;
      });
    });
    finish(b, arguments.buffers, i, sums);
  });
}

bool isSortable(const ScatterPlan &plan) {
  return std::max(plan.rows, plan.count) <= std::numeric_limits<int32_t>::max();
}

void generateFused(KernelBuilder &kernel, const FusedScatter &form, const MathOptions &options) {
  Scatter scatter{form.plan, form.element, form.indices, form.updates};
  int64_t run = widestRun(form.program, [&](unsigned buffer) -> int64_t {
    return buffer == form.sums() ? 0 : kernel.alignmentOf(buffer < form.sums() ? buffer : buffer - 1);
  });
  run = std::gcd(run, chooseRun(kernel, scatter, form.updates));
  emitScatter(kernel, scatter, run,
              [&](ThreadBuilder &b, ArrayRef<Value> buffers, Value number, ValueRange sums) {
                SmallVector<Value> all(buffers);
                all.insert(all.begin() + form.sums(), Value());
                auto supply = [&](ElementEmitter &emitter, int64_t shift, unsigned node) -> Value {
                  const LoopNode &read = form.program.nodes[node];
                  if (read.kind != LoopNode::load || read.buffer != form.sums())
                    return Value();
                  return emitter.fromStorage(sums[shift], read.element);
                };
                emitRun(b, form.program, all, options, number, run, supply);
              });
}

/// A table is copied, unless it lies where it is to be, and its rows are written.
void emitRows(KernelBuilder &kernel, nn::ScatterOp op) {
  auto numberOf = [](Value value) { return cast<BlockArgument>(value).getArgNumber(); };
  auto type = cast<RankedTensorType>(op.getType()),
       updates = cast<RankedTensorType>(op.getUpdates().getType());
  int64_t rows = type.getDimSize(0), columns = type.getNumElements() / rows;
  unsigned input = numberOf(op.getInput());
  kernel.launchThreads(
      type.getNumElements(), [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value i) {
        auto addressOf = [&](Value buffer) {
          return memref::ExtractAlignedPointerAsIndexOp::create(b, buffer).getResult();
        };
        Value from = arguments.buffers[input], to = arguments.buffers.back();
        b.guarded(arith::CmpIOp::create(b, arith::CmpIPredicate::ne, addressOf(from), addressOf(to)),
                  [&] { memref::StoreOp::create(b, b.loadScalar(from, i), to, ValueRange{i}); });
      });
  kernel.launchThreads(updates.getNumElements(), [&](ThreadBuilder &b,
                                                     const KernelBuilder::Arguments &arguments, Value i) {
    Value row = arith::IndexCastOp::create(
        b, b.getIndexType(), b.loadScalar(arguments.buffers[numberOf(op.getIndices())], b.div(i, columns)));
    b.guarded(b.less(row, rows), [&] {
      Value to = b.add(b.mul(row, columns), b.rem(i, columns));
      memref::StoreOp::create(b, b.loadScalar(arguments.buffers[numberOf(op.getUpdates())], i),
                              arguments.buffers.back(), ValueRange{to});
    });
  });
}

} // namespace

bool generateScatter(KernelBuilder &kernel, func::FuncOp function, const GeneratorOptions &options) {
  Block &block = function.getBody().front();
  ValueRange outputs = block.getTerminator()->getOperands();
  std::string reason;
  if (auto form = FusedScatter::analyze(function.getArguments(), outputs, reason)) {
    if (!isSortable(form->plan))
      return false;
    generateFused(kernel, *form, options.math());
    return true;
  }
  if (auto rows = dyn_cast<nn::ScatterOp>(block.front()); rows && outputs == rows->getResults()) {
    emitRows(kernel, rows);
    return true;
  }
  auto op = dyn_cast<nn::ScatterAddOp>(block.front());
  auto numberOf = [&](Value value) -> std::optional<unsigned> {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument ? std::optional(argument.getArgNumber()) : std::nullopt;
  };
  if (!op || !llvm::hasSingleElement(block.without_terminator()) || outputs != op->getResults())
    return false;
  auto indices = numberOf(op.getIndices()), updates = numberOf(op.getUpdates());
  ScatterPlan plan(op);
  if (!indices || !updates || !isSortable(plan))
    return false;
  Type element = cast<RankedTensorType>(op.getType()).getElementType();
  Scatter scatter{plan, element, *indices, *updates};
  int64_t run = chooseRun(kernel, scatter, function.getNumArguments());
  emitScatter(kernel, scatter, run,
              [&](ThreadBuilder &b, ArrayRef<Value> buffers, Value number, ValueRange sums) {
                for (auto [k, sum] : llvm::enumerate(sums))
                  memref::StoreOp::create(b, sum, buffers.back(), ValueRange{b.add(b.mul(number, run), k)});
              });
  return true;
}

} // namespace ortc::gpu
