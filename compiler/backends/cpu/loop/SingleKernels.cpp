// Scatters, scans, arg_reduce and arg_sort.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations in which one element depends on another of the same result, in order. Their tensors are seen as
// [outer, axis, inner]; chunks divide what lies beside the axis, so the order along it holds for every chunk.
#include "compiler/backends/cpu/loop/SingleKernels.h"

#include "compiler/backends/cpu/loop/LoopNest.h"
#include "compiler/backends/cpu/loop/ScatterKernel.h"
#include "compiler/backends/cpu/loop/SortKernel.h"
#include "compiler/backends/emit/ElementEmitter.h"
#include "compiler/backends/emit/StorageConversion.h"
#include "compiler/kernels/sort/SortForm.h"
#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

/// Whether `op` has a generator of its own here.
static bool isSingleKernelOperation(Operation *op) {
  return isa<nn::ScatterAddOp, nn::ScatterOp, nn::ScatterElementsOp, nn::CumSumOp, nn::ArgReduceOp,
             nn::ArgSortOp>(op);
}

bool isSingleKernel(func::FuncOp function) {
  Block &block = function.getBody().front();
  if (!llvm::hasSingleElement(block.without_terminator()))
    return false;
  Operation &op = block.front();
  return isSingleKernelOperation(&op) && op.getResults() == block.getTerminator()->getOperands() &&
         llvm::all_of(op.getOperands(), [](Value operand) { return isa<BlockArgument>(operand); });
}

namespace {

/// Elements that a chunk should at least touch.
constexpr int64_t kChunkElements = 1 << 14;

struct Extents {
  int64_t outer = 1, axis = 1, inner = 1;
  Extents(ArrayRef<int64_t> shape, int64_t at)
      : outer(nn::elementCount(shape.take_front(at))), axis(shape[at]),
        inner(nn::elementCount(shape.drop_front(at + 1))) {}
};

class SingleEmitter {
public:
  SingleEmitter(LoopBuilder &builder, ModuleOp module, func::FuncOp function, ArrayRef<KernelBuffer> buffers,
                KernelInfo info, const Target &target)
      : b(builder), module(module), function(function), description(buffers), info(std::move(info)),
        target(target) {}

  FailureOr<KernelInfo> emit() {
    Operation *op = &function.getBody().front().front();
    if (auto scatter = dyn_cast<nn::ScatterAddOp>(op))
      emitScatterAdd(scatter);
    else if (auto scatter = dyn_cast<nn::ScatterOp>(op))
      emitScatter(scatter);
    else if (auto scatter = dyn_cast<nn::ScatterElementsOp>(op))
      emitScatterElements(scatter);
    else if (auto cumsum = dyn_cast<nn::CumSumOp>(op))
      emitCumSum(cumsum);
    else if (auto sort = dyn_cast<nn::ArgSortOp>(op))
      emitArgSort(sort);
    else
      emitArgReduce(cast<nn::ArgReduceOp>(op));
    return info;
  }

private:
  static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }
  /// Buffer of an operand of the operation.
  Value bufferOf(Value operand) const { return kernel.buffers[cast<BlockArgument>(operand).getArgNumber()]; }
  Value result() const { return kernel.buffers.back(); }

  /// Creates the kernel with `units` pieces of work of about `unitElements` elements and emits `body` for each.
  void overUnits(int64_t units, int64_t unitElements, llvm::function_ref<void(Value)> body) {
    int64_t perChunk = std::clamp<int64_t>(kChunkElements / std::max<int64_t>(1, unitElements), 1,
                                           std::max<int64_t>(1, units));
    info.chunks = std::max<int64_t>(1, (units + perChunk - 1) / perChunk);
    kernel = createKernelFunction(b, module, info, description);
    Value begin = b.mul(kernel.chunk, perChunk), end = b.minimum(b.add(begin, perChunk), b.index(units));
    b.loop({begin, end}, 1, body);
  }
  /// As overUnits over (outer index, block of inner), then over the vectors of the block: body(outer, inner, width).
  /// width 0 is a scalar.
  void overColumns(const Extents &extents, int64_t axisWork, int64_t lanes,
                   llvm::function_ref<void(Value, Value, int64_t)> body) {
    int64_t width = std::min(lanes, extents.inner), blockVectors = 4, block = width * blockVectors;
    int64_t blocks = (extents.inner + block - 1) / block, whole = extents.inner / width;
    overUnits(extents.outer * blocks, axisWork * std::min(block, extents.inner), [&](Value unit) {
      Value outer = b.div(unit, blocks), first = b.mul(b.rem(unit, blocks), blockVectors);
      if (extents.inner == 1)
        return body(outer, b.index(0), 0);
      Value last = b.minimum(b.add(first, blockVectors), b.index(whole));
      b.loop({first, last}, 1, [&](Value vector) { body(outer, b.mul(vector, width), width); });
      if (int64_t rest = extents.inner - whole * width) {
        Value isLast =
            arith::CmpIOp::create(b, arith::CmpIPredicate::eq, b.rem(unit, blocks), b.index(blocks - 1));
        auto op = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(op.thenBlock());
        body(outer, b.index(whole * width), rest);
      }
    });
  }

  Value at(Value outer, int64_t axis, Value index, int64_t inner, Value column) {
    return b.add(b.mul(b.add(b.mul(outer, axis), index), inner), column);
  }
  Value load(Value buffer, Value position, int64_t width) {
    return width == 0 ? b.loadScalar(buffer, position) : b.load(buffer, position, width);
  }
  void store(Value value, Value buffer, Value position) {
    if (isa<VectorType>(value.getType()))
      b.store(value, buffer, position);
    else
      memref::StoreOp::create(b, value, buffer, ValueRange{position});
  }
  Value indexAt(Value buffer, Value position) {
    return arith::IndexCastOp::create(b, b.getIndexType(), b.loadScalar(buffer, position));
  }
  Value zero(Type type, int64_t width) {
    return arith::ConstantOp::create(b,
                                     b.getZeroAttr(width == 0 ? type : Type(VectorType::get({width}, type))));
  }

  void emitScatterAdd(nn::ScatterAddOp op) {
    ScatterPlan plan(op);
    Type element = cast<RankedTensorType>(op.getType()).getElementType();
    int64_t blocks = plan.rowBlocks() * plan.columnBlocks();
    overUnits(plan.outer * blocks, plan.work(), [&](Value unit) {
      Value part = b.rem(unit, blocks);
      ScatterBlock block{b.div(unit, blocks), b.mul(b.div(part, plan.columnBlocks()), plan.blockRows),
                         b.mul(b.rem(part, plan.columnBlocks()), plan.blockColumns), result(), Value()};
      block.start = at(block.outer, plan.rows, block.row, plan.columns, b.index(0));
      emitScatterBlock(b, plan, element, bufferOf(op.getIndices()), bufferOf(op.getUpdates()), block, target);
    });
  }

  /// A block of rows copies those that it has, unless they are where they are to be, and takes its part of the updates.
  void emitScatter(nn::ScatterOp op) {
    ArrayRef<int64_t> shape = shapeOf(op.getInput());
    int64_t rows = shape[0], columns = nn::elementCount(shape.drop_front()),
            count = shapeOf(op.getIndices())[0];
    int64_t blocks = std::clamp<int64_t>(count * columns / kChunkElements, 1, rows);
    int64_t blockRows = (rows + blocks - 1) / blocks,
            width = std::clamp<int64_t>(columns, 1, target.lanes(32));
    overUnits((rows + blockRows - 1) / blockRows, kChunkElements, [&](Value unit) {
      Value input = bufferOf(op.getInput()), indices = bufferOf(op.getIndices());
      Value begin = b.mul(unit, blockRows), end = b.minimum(b.add(begin, blockRows), b.index(rows));
      auto copy = [&](Value from, Value start, Value to, Value elements) {
        Value whole = b.mul(b.div(elements, width), width);
        b.loop({b.index(0), whole}, width,
               [&](Value i) { b.store(b.load(from, b.add(start, i), width), result(), b.add(to, i)); });
        b.loop({whole, elements}, 1,
               [&](Value i) { store(b.loadScalar(from, b.add(start, i)), result(), b.add(to, i)); });
      };
      auto addressOf = [&](Value buffer) {
        return memref::ExtractAlignedPointerAsIndexOp::create(b, buffer).getResult();
      };
      auto whenever = [&](arith::CmpIPredicate predicate, Value x, Value y, llvm::function_ref<void()> body) {
        auto branch =
            scf::IfOp::create(b, arith::CmpIOp::create(b, predicate, x, y), /*withElseRegion=*/false);
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(branch.thenBlock());
        body();
      };
      whenever(arith::CmpIPredicate::ne, addressOf(input), addressOf(result()), [&] {
        Value start = b.mul(begin, columns);
        copy(input, start, start, b.mul(b.sub(end, begin), columns));
      });
      b.loop(0, count, 1, [&](Value i) {
        Value row = indexAt(indices, i);
        whenever(arith::CmpIPredicate::ult, b.sub(row, begin), b.sub(end, begin), [&] {
          copy(bufferOf(op.getUpdates()), b.mul(i, columns), b.mul(row, columns), b.index(columns));
        });
      });
    });
  }

  void emitScatterElements(nn::ScatterElementsOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    int64_t axis = op.getAxis(), rank = type.getRank(), elements = type.getNumElements();
    auto updates = llvm::to_vector(shapeOf(op.getUpdates()));
    Type element = type.getElementType();
    // Positions with another first index never meet, unless the first dimension is the axis.
    int64_t units = axis > 0 ? type.getDimSize(0) : 1, unitElements = elements / std::max<int64_t>(1, units);
    overUnits(units, unitElements + nn::elementCount(updates) / std::max<int64_t>(1, units), [&](Value unit) {
      Value input = bufferOf(op.getInput()), start = b.mul(unit, unitElements);
      b.loop(0, unitElements, 1,
             [&](Value i) { store(b.loadScalar(input, b.add(start, i)), result(), b.add(start, i)); });
      SmallVector<Value> position;
      auto nest = [&](auto &self, int64_t d) -> void {
        if (d < rank) {
          auto inside = [&](Value i) {
            position.push_back(i);
            self(self, d + 1);
            position.pop_back();
          };
          if (d == 0 && axis > 0) {
            // This unit's index, when the updates reach it.
            Value reached = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, unit, b.index(updates[0]));
            auto branch = scf::IfOp::create(b, reached, /*withElseRegion=*/false);
            OpBuilder::InsertionGuard guard(b);
            b.setInsertionPointToStart(branch.thenBlock());
            inside(unit);
            return;
          }
          b.loop(0, updates[d], 1, inside);
          return;
        }
        Value from = b.index(0), to = b.index(0);
        for (int64_t d = 0; d < rank; ++d)
          from = b.add(b.mul(from, updates[d]), position[d]);
        Value index = indexAt(bufferOf(op.getIndices()), from);
        for (int64_t d = 0; d < rank; ++d)
          to = b.add(b.mul(to, type.getDimSize(d)), d == axis ? index : position[d]);
        Value value = b.loadScalar(bufferOf(op.getUpdates()), from);
        if (op.getMode() != nn::ScatterMode::set) {
          nn::ReduceKind kind = op.getMode() == nn::ScatterMode::add   ? nn::ReduceKind::sum
                                : op.getMode() == nn::ScatterMode::mul ? nn::ReduceKind::prod
                                : op.getMode() == nn::ScatterMode::max ? nn::ReduceKind::max
                                                                       : nn::ReduceKind::min;
          value = combineStored(b, kind, element, b.loadScalar(result(), to), value);
        }
        store(value, result(), to);
      };
      if (nn::elementCount(updates) > 0)
        nest(nest, 0);
    });
  }

  void emitCumSum(nn::CumSumOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    Extents extents(type.getShape(), op.getAxis());
    Type element = type.getElementType(), sumType = accumulatorType(element);
    bool narrow = sumType != element, boolean = element.isInteger(1);
    overColumns(extents, extents.axis, target.lanes(32), [&](Value outer, Value column, int64_t width) {
      Value input = bufferOf(op.getInput());
      Value start = zero(boolean ? bufferType(element) : sumType, width);
      b.fold({b.index(0), b.index(extents.axis)}, 1, start,
             [&](Value i, ValueRange carried) -> SmallVector<Value> {
               Value row = op.getReverse() ? b.sub(b.index(extents.axis - 1), i) : i;
               Value position = at(outer, extents.axis, row, extents.inner, column);
               Value value = load(input, position, width);
               if (narrow)
                 value = extendToF32(b, b.getLoc(), value, element);
               Value sum = boolean ? arith::XOrIOp::create(b, carried[0], value).getResult()
                                   : combine(b, nn::ReduceKind::sum, carried[0], value);
               Value shown = op.getExclusive() ? carried[0] : sum;
               store(narrow ? truncateFromF32(b, b.getLoc(), shown, element) : shown, result(), position);
               return {sum};
             });
    });
  }

  void emitArgReduce(nn::ArgReduceOp op) {
    auto type = cast<RankedTensorType>(op.getInput().getType());
    Extents extents(type.getShape(), op.getAxis());
    Type element = type.getElementType(), indexType = cast<RankedTensorType>(op.getType()).getElementType();
    bool max = op.getKind() == nn::ReduceKind::max, last = op.getLast();
    auto wide = [&](Value value) {
      return element.isF16() || element.isBF16() ? extendToF32(b, b.getLoc(), value, element) : value;
    };
    overColumns(extents, extents.axis, target.lanes(32), [&](Value outer, Value column, int64_t width) {
      Value input = bufferOf(op.getInput());
      auto valueAt = [&](Value row) {
        return wide(load(input, at(outer, extents.axis, row, extents.inner, column), width));
      };
      Value best = valueAt(b.index(0));
      bool isFloat = isa<FloatType>(getElementTypeOrSelf(best.getType()));
      auto found = b.fold(
          {b.index(1), b.index(extents.axis)}, 1, {best, zero(indexType, width)},
          [&](Value row, ValueRange carried) -> SmallVector<Value> {
            Value value = valueAt(row), better;
            if (isFloat) {
              // A number beats what it exceeds; NaN beats numbers, and with `last` another NaN.
              auto predicate = max ? (last ? arith::CmpFPredicate::OGE : arith::CmpFPredicate::OGT)
                                   : (last ? arith::CmpFPredicate::OLE : arith::CmpFPredicate::OLT);
              better = arith::CmpFOp::create(b, predicate, value, carried[0]);
              Value isNan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
              if (!last)
                isNan = arith::AndIOp::create(
                    b, isNan, arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, carried[0], carried[0]));
              better = arith::OrIOp::create(b, better, isNan);
            } else {
              auto predicate = max ? (last ? arith::CmpIPredicate::sge : arith::CmpIPredicate::sgt)
                                   : (last ? arith::CmpIPredicate::sle : arith::CmpIPredicate::slt);
              better = arith::CmpIOp::create(b, predicate, value, carried[0]);
            }
            Value number = arith::IndexCastOp::create(b, indexType, row);
            if (width != 0)
              number = b.spread(number, width);
            return {arith::SelectOp::create(b, better, value, carried[0]),
                    arith::SelectOp::create(b, better, number, carried[1])};
          });
      store(found[1], result(), at(outer, 1, b.index(0), extents.inner, column));
    });
  }

  void emitArgSort(nn::ArgSortOp op) {
    SortColumn columns(op);
    info.workspaceBytesPerWorker = workspaceOfSort(op);
    overUnits(columns.count, columns.work(), [&](Value column) { emitSort(b, op, kernel, column); });
  }

  LoopBuilder &b;
  ModuleOp module;
  func::FuncOp function;
  ArrayRef<KernelBuffer> description;
  KernelInfo info;
  const Target &target;
  KernelFunction kernel;
};

} // namespace

FailureOr<KernelInfo> emitSingleKernel(LoopBuilder &builder, ModuleOp module, func::FuncOp function,
                                       ArrayRef<KernelBuffer> buffers, KernelInfo info,
                                       const Target &target) {
  return SingleEmitter(builder, module, function, buffers, std::move(info), target).emit();
}

} // namespace ortc::cpu
