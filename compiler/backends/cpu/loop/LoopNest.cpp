// The loops of a loop kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two ways. When the lane dimension is parallel, a unit of work is a block of it; reductions run down loops around
// accumulators that stay in registers. When it is reduced, a unit is a row: each pass walks it in vectors,
// and a reduction ends in a tree over the lanes. What remains of a row after whole vectors is one shorter
// vector, so no masks are needed.
#include "compiler/backends/cpu/loop/LoopNest.h"
#include "compiler/backends/emit/StorageConversion.h"

#include "compiler/backends/cpu/contraction/Microkernel.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

namespace {

class NestEmitter : LoopWalk {
public:
  NestEmitter(LoopBuilder &builder, const LoopProgram &program, const LoopPlan &plan,
              const KernelFunction &kernel, const MathOptions &options, const BlockBuffer *blockBuffer)
      : LoopWalk(builder, program, kernel.buffers), plan(plan), kernel(kernel), options(options),
        blockBuffer(blockBuffer) {
    for (auto [i, offset] : llvm::enumerate(plan.totals))
      totals.push_back(kernel.workspaceView(
          b, b.getLoc(), offset, accumulatorType(program.reductions[i % program.reductions.size()].element),
          program.dims[program.laneDim].size));
    for (auto [i, offset] : llvm::enumerate(plan.laneSums))
      laneSums.push_back(kernel.workspaceView(
          b, b.getLoc(), offset, accumulatorType(program.reductions[i].element), plan.width * plan.unroll));
    for (auto [i, node] : llvm::enumerate(plan.kept))
      keptBuffers.push_back(kernel.workspaceView(b, b.getLoc(), plan.keptOffset[i],
                                                 bufferType(program.nodes[node].element),
                                                 program.elements(true)));
  }

  void emit() {
    Value begin = b.index(0), end = b.index(plan.units);
    if (plan.chunks > 1) {
      begin = b.mul(kernel.chunk, plan.unitsPerChunk);
      end = b.minimum(b.add(begin, plan.unitsPerChunk), b.index(plan.units));
    }
    auto body = [&](Value unit) {
      ElementEmitter emitter(b, program, kernel.buffers, options);
      int64_t inner = plan.blocksOutermost ? plan.units / plan.blocks : plan.blocks;
      Value low = b.rem(unit, inner), high = b.div(unit, inner);
      Value block = plan.blocksOutermost ? high : low;
      placeUnit(emitter, plan.blocksOutermost ? low : high);
      if (blockBuffer)
        blockBuffer->fill(block);
      if (program.laneDim < 0)
        emitGroup({&emitter});
      else if (plan.tileDim >= 0)
        emitTiles(emitter, block);
      else if (program.lanesReduced())
        emitRow(emitter);
      else
        emitBlock(emitter, block);
    };
    if (plan.unitsPerChunk == 1)
      body(begin);
    else
      b.loop({begin, end}, 1, body);
  }

private:
  /// Sets the indices of the parallel dimensions but the lane one from a position over them.
  void placeUnit(ElementEmitter &emitter, Value position) {
    ArrayRef<unsigned> dims = plan.order;
    for (size_t i = dims.size(); i-- > 0;) {
      emitter.setIndex(dims[i], i == 0 ? position : b.rem(position, program.dims[dims[i]].size));
      position = b.div(position, program.dims[dims[i]].size);
    }
  }

  //===--- lanes are parallel ---===//

  void emitBlock(ElementEmitter &emitter, Value block) {
    emitter.setWidth(plan.width);
    hoistRoots(emitter, (uint64_t(1) << program.laneDim) | reducedMask);
    if (plan.totals.empty())
      return overGroups(emitter, block, [&](Group members) { emitGroup(members); });
    auto list = reductionsOf(0);
    clearTotals(emitter, block, list, 0);
    streamRows(emitter, block, list, 0);
    overGroups(emitter, block, [&](Group members) {
      SmallVector<Value> sums;
      overTotals(members, list,
                 [&](unsigned r, ElementEmitter &member) { sums.push_back(loadTotal(0, r, member)); });
      finishPass(members, list, sums);
      emitGroup(members, 1);
    });
  }

  void overTotals(Group members, ArrayRef<unsigned> list,
                  llvm::function_ref<void(unsigned, ElementEmitter &)> body) {
    for (unsigned r : list)
      for (ElementEmitter *member : members)
        body(r, *member);
  }

  Value totalsOf(size_t level, unsigned r) const { return totals[level * program.reductions.size() + r]; }
  Value loadTotal(size_t level, unsigned r, ElementEmitter &member) {
    return b.load(totalsOf(level, r), member.getIndex(program.laneDim), member.getWidth());
  }
  void addToTotal(size_t level, unsigned r, ElementEmitter &member, Value part) {
    Value sum = combine(b, program.reductions[r].kind, loadTotal(level, r, member), part);
    b.store(sum, totalsOf(level, r), member.getIndex(program.laneDim));
  }
  void clearTotals(ElementEmitter &emitter, Value block, ArrayRef<unsigned> list, size_t level) {
    overGroups(emitter, block, [&](Group members) {
      overTotals(members, list, [&](unsigned r, ElementEmitter &member) {
        b.store(identityOf(r, member), totalsOf(level, r), member.getIndex(program.laneDim));
      });
    });
  }

  /// Adds the sums of the first pass over the reduced dimensions from `level` on to the totals of that level, row after
  /// row: for every column in the order of walkReduced.
  void streamRows(ElementEmitter &emitter, Value block, ArrayRef<unsigned> list, size_t level) {
    unsigned dim = outerReduced[level];
    int64_t size = program.dims[dim].size;
    bool innermost = level + 1 == outerReduced.size();
    if (innermost && size <= kReductionBlock)
      return addRows(emitter, block, list, {b.index(0), b.index(size)}, level);
    b.loop(0, size, innermost ? kReductionBlock : 1, [&](Value index) {
      clearTotals(emitter, block, list, level + 1);
      if (innermost) {
        Value end = b.minimum(b.add(index, kReductionBlock), b.index(size));
        addRows(emitter, block, list, {index, end}, level + 1);
      } else {
        emitter.openScope();
        emitter.setIndex(dim, index);
        streamRows(emitter, block, list, level + 1);
        emitter.closeScope();
      }
      overGroups(emitter, block, [&](Group members) {
        overTotals(members, list, [&](unsigned r, ElementEmitter &member) {
          addToTotal(level, r, member, loadTotal(level + 1, r, member));
        });
      });
    });
  }

  /// Adds rows of the innermost reduced dimension to the totals of a level: memory is read in the order in which it
  /// lies, which processors see and fetch ahead of.
  void addRows(ElementEmitter &emitter, Value block, ArrayRef<unsigned> list, IndexRange rows, size_t level) {
    unsigned dim = outerReduced.back();
    b.loop(rows, 1, [&](Value row) {
      emitter.openScope();
      emitter.setIndex(dim, row);
      hoistPass(emitter, 0, uint64_t(1) << program.laneDim);
      overGroups(emitter, block, [&](Group members) {
        for (ElementEmitter *member : members)
          member->setFetch(dim, kStreamedRowsAhead);
        SmallVector<Value> values = emitPoint(members, 0, list);
        size_t next = 0;
        overTotals(members, list,
                   [&](unsigned r, ElementEmitter &member) { addToTotal(level, r, member, values[next++]); });
      });
      emitter.closeScope();
    });
  }

  /// The vectors of a block of the lane dimension, those evaluated side by side at once.
  void overGroups(ElementEmitter &emitter, Value block, llvm::function_ref<void(Group)> body) {
    int64_t lane = program.dims[program.laneDim].size, group = plan.width * plan.unroll;
    int64_t groups = lane / group * group;
    auto groupAt = [&](Value start, int64_t vectors, int64_t width) {
      std::vector<ElementEmitter> copies(vectors, emitter);
      SmallVector<ElementEmitter *> members;
      for (int64_t v = 0; v < vectors; ++v) {
        copies[v].setWidth(width);
        copies[v].setIndex(program.laneDim, b.add(start, v * plan.width));
        if (blockBuffer)
          supplyBlock(copies[v], block);
        members.push_back(&copies[v]);
      }
      body(members);
    };
    Value begin = b.mul(block, plan.block);
    Value end = plan.blocks == 1 ? b.index(groups) : b.minimum(b.add(begin, plan.block), b.index(groups));
    if (groups > 0)
      b.loop({begin, end}, group, [&](Value start) { groupAt(start, plan.unroll, plan.width); });
    if (groups == lane)
      return;
    auto rest = [&] {
      int64_t at = groups, vectors = (lane - at) / plan.width;
      if (vectors > 0)
        groupAt(b.index(at), vectors, plan.width);
      at += vectors * plan.width;
      if (at < lane)
        groupAt(b.index(at), 1, lane - at);
    };
    if (plan.blocks == 1)
      return rest();
    Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, block, b.index(plan.blocks - 1));
    auto op = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(op.thenBlock());
    rest();
  }

  void supplyBlock(ElementEmitter &emitter, Value block) {
    emitter.setSupplier([this, &emitter, block](unsigned number) -> Value {
      const LoopNode &node = program.nodes[number];
      if (node.kind != LoopNode::load || node.buffer != blockBuffer->buffer)
        return {};
      Value at = b.sub(emitter.getIndex(program.laneDim), b.mul(block, plan.block));
      return emitter.loadContiguous(node.element, kernel.buffers[node.buffer], at);
    });
  }

  /// tileRows indices of the tiled dimension (fewer in the last block) for all lanes.
  void emitTiles(ElementEmitter &emitter, Value block) {
    int64_t lane = program.dims[program.laneDim].size, rows = program.dims[plan.tileDim].size,
            whole = lane / kTile * kTile;
    hoistRoots(emitter, (uint64_t(1) << program.laneDim) | (uint64_t(1) << plan.tileDim));
    Value begin = b.mul(block, plan.tileRows), end = b.add(begin, plan.tileRows);
    auto vectorAt = [&](ElementEmitter &at, Value row, Value start, int64_t width) {
      at.openScope();
      at.setWidth(width);
      at.setIndex(plan.tileDim, row);
      at.setIndex(program.laneDim, start);
      emitGroup({&at});
      at.closeScope();
    };
    auto lanesOneByOne = [&](IndexRange range, int64_t from) {
      b.loop(range, 1, [&](Value row) {
        for (int64_t start = from; start < lane; start += kTile)
          vectorAt(emitter, row, b.index(start), std::min(kTile, lane - start));
      });
    };
    auto fullTiles = [&] {
      b.loop(0, whole, kTile, [&](Value start) {
        emitter.openScope();
        if (plan.tileRows == kTile)
          emitTile(emitter, begin, start);
        else
          b.loop({begin, end}, kTile, [&](Value row) { emitTile(emitter, row, start); });
        emitter.closeScope();
      });
      if (whole < lane)
        lanesOneByOne({begin, end}, whole);
    };
    auto shortRows = [&] {
      // Few rows: not worth a code of their own, but not one vector of code per column either.
      b.loop({begin, b.index(rows)}, 1, [&](Value row) {
        b.loop(0, whole, kTile, [&](Value start) { vectorAt(emitter, row, start, kTile); });
        if (whole < lane)
          vectorAt(emitter, row, b.index(whole), lane - whole);
      });
    };
    if (rows % plan.tileRows == 0)
      return fullTiles();
    Value isFull = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, block, b.index(plan.blocks - 1));
    auto op = scf::IfOp::create(b, isFull, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    emitter.openScope();
    b.setInsertionPointToStart(op.thenBlock());
    fullTiles();
    emitter.closeScope();
    emitter.openScope();
    b.setInsertionPointToStart(op.elseBlock());
    shortRows();
    emitter.closeScope();
  }

  /// One tile: the loads across the grain are done along it and transposed, then row after row is evaluated.
  void emitTile(ElementEmitter &emitter, Value firstRow, Value start) {
    emitter.setWidth(kTile);
    SmallVector<SmallVector<Value>> rowsOf;
    for (unsigned number : plan.tiled) {
      const LoopNode &node = program.nodes[number];
      emitter.setIndex(plan.tileDim, firstRow);
      emitter.setIndex(program.laneDim, start);
      emitter.openScope();
      Value at = emitter.emitIndex(node.at);
      emitter.closeScope();
      SmallVector<Value> columns;
      for (int64_t lane = 0; lane < kTile; ++lane)
        columns.push_back(
            b.load(kernel.buffers[node.buffer], b.add(at, lane * node.at.scales[program.laneDim]), kTile));
      rowsOf.push_back(emitTranspose(b, b.getLoc(), columns));
    }
    for (int64_t row = 0; row < kTile; ++row) {
      emitter.openScope();
      emitter.setWidth(kTile);
      emitter.setIndex(plan.tileDim, b.add(firstRow, row));
      emitter.setIndex(program.laneDim, start);
      for (auto [i, number] : llvm::enumerate(plan.tiled))
        emitter.bind(number, emitter.fromStorage(rowsOf[i][row], program.nodes[number].element));
      emitGroup({&emitter});
      emitter.closeScope();
    }
  }

  //===--- lanes are reduced ---===//

  void emitRow(ElementEmitter &emitter) {
    int64_t lane = program.dims[program.laneDim].size;
    for (unsigned pass = 0; pass < program.passes; ++pass) {
      auto list = reductionsOf(pass);
      bool keeps = llvm::is_contained(plan.keptPass, pass);
      if (list.empty() && !storesIn(pass) && !keeps)
        continue;
      emitter.setWidth(0);
      hoistPass(emitter, pass, reducedMask);
      supplyKept(emitter, pass);
      if (plan.fetchesRows && !plan.order.empty())
        emitter.setFetch(plan.order.back(), pass == 0 ? 1 : 0);
      if (!laneSums.empty()) {
        sumInMemory(emitter, pass, list);
        continue;
      }
      int64_t vectors = lane >= plan.width * plan.unroll ? plan.unroll : 1;
      SmallVector<Value> sums;
      for (int64_t v = 0; v < vectors; ++v)
        for (unsigned r : list)
          sums.push_back(reductionIdentity(b, program.reductions[r].kind,
                                           accumulatorType(program.reductions[r].element), plan.width));
      sums = walkRow(emitter, pass, list, 0, vectors, sums);
      emitter.setSupplier({});
      emitter.setWidth(0);
      for (auto [i, r] : llvm::enumerate(list)) {
        const LoopReduction &reduction = program.reductions[r];
        Value sum = sums[i];
        for (int64_t v = 1; v < vectors; ++v)
          sum = combine(b, reduction.kind, sum, sums[v * list.size() + i]);
        Value value = joinLanes(reduction.kind, sum);
        if (accumulatorType(reduction.element) != reduction.element)
          value = truncateFromF32(b, b.getLoc(), value, reduction.element);
        emitter.bind(reduction.node, value);
      }
    }
    emitter.setWidth(0);
    storePerRow(emitter);
  }

  /// One pass over a row, element by element: each is joined with the sum of its lane, in memory. The order of sums is
  /// that of walkLanes.
  void sumInMemory(ElementEmitter &emitter, unsigned pass, ArrayRef<unsigned> list) {
    int64_t lane = program.dims[program.laneDim].size;
    int64_t vectors = lane >= plan.width * plan.unroll ? plan.unroll : 1, sums = plan.width * vectors;
    for (unsigned r : list)
      b.loop(0, sums, 1, [&](Value i) {
        const LoopReduction &reduction = program.reductions[r];
        b.store(reductionIdentity(b, reduction.kind, accumulatorType(reduction.element), 1), laneSums[r], i);
      });
    walkElements(emitter, 0, [&](Value at) {
      for (unsigned r : list)
        joinSums(r, b.rem(at, sums), accumulated(emitter, program.reductions[r]));
      storeAt(emitter, pass);
    });
    emitter.setSupplier({});
    emitter.setWidth(0);
    for (unsigned r : list) {
      const LoopReduction &reduction = program.reductions[r];
      auto addUp = [&](int64_t count, int64_t distance) {
        b.loop(0, count, 1, [&](Value i) { joinSums(r, i, b.load(laneSums[r], b.add(i, distance), 1)); });
      };
      for (int64_t v = 1; v < vectors; ++v)
        addUp(plan.width, v * plan.width);
      for (int64_t half = plan.width / 2; half >= 1; half /= 2)
        addUp(half, half);
      Value value = b.loadScalar(laneSums[r], b.index(0));
      if (accumulatorType(reduction.element) != reduction.element)
        value = truncateFromF32(b, b.getLoc(), value, reduction.element);
      emitter.bind(reduction.node, value);
    }
  }
  void joinSums(unsigned r, Value place, Value value) {
    b.store(combine(b, program.reductions[r].kind, b.load(laneSums[r], place, 1), value), laneSums[r], place);
  }
  /// The elements of a row, one at a time: body(place along the lanes).
  void walkElements(ElementEmitter &emitter, size_t level, llvm::function_ref<void(Value)> body) {
    bool isInnermost = level == outerReduced.size();
    unsigned dim = isInnermost ? program.laneDim : outerReduced[level];
    b.loop(0, program.dims[dim].size, 1, [&](Value at) {
      emitter.openScope();
      emitter.setWidth(isInnermost ? 1 : 0);
      emitter.setIndex(dim, at);
      if (isInnermost)
        body(at);
      else
        walkElements(emitter, level + 1, body);
      emitter.setWidth(0);
      emitter.closeScope();
    });
  }

  /// Lanes joined in halves.
  Value joinLanes(nn::ReduceKind kind, Value vector) {
    for (int64_t half = plan.width / 2; half >= 1; half /= 2) {
      SmallVector<int64_t> low, high;
      for (int64_t i = 0; i < half; ++i) {
        low.push_back(i);
        high.push_back(i + half);
      }
      vector = combine(b, kind, vector::ShuffleOp::create(b, vector, vector, low),
                       vector::ShuffleOp::create(b, vector, vector, high));
    }
    return vector::ExtractOp::create(b, vector, 0);
  }

  /// Kept nodes come from the workspace in later passes.
  void supplyKept(ElementEmitter &emitter, unsigned pass) {
    if (plan.kept.empty())
      return;
    emitter.setSupplier([this, &emitter, pass](unsigned node) -> Value {
      for (auto [i, kept] : llvm::enumerate(plan.kept))
        if (kept == node && plan.keptPass[i] < pass)
          return emitter.loadContiguous(program.nodes[node].element, keptBuffers[i], rowPosition(emitter));
      return {};
    });
  }
  Value rowPosition(ElementEmitter &emitter) {
    Value position = b.index(0);
    for (auto [d, dim] : llvm::enumerate(program.dims))
      if (dim.reduced)
        position = b.add(b.mul(position, dim.size), emitter.getIndex(d));
    return position;
  }

  SmallVector<Value> walkRow(ElementEmitter &emitter, unsigned pass, ArrayRef<unsigned> list, size_t level,
                             int64_t vectors, SmallVector<Value> sums) {
    if (level == outerReduced.size())
      return walkLanes(emitter, pass, list, vectors, sums);
    unsigned dim = outerReduced[level];
    return b.fold(
        {b.index(0), b.index(program.dims[dim].size)}, 1, sums, [&](Value index, ValueRange carried) {
          emitter.openScope();
          emitter.setIndex(dim, index);
          auto result = walkRow(emitter, pass, list, level + 1, vectors, llvm::to_vector_of<Value>(carried));
          emitter.closeScope();
          return result;
        });
  }

  SmallVector<Value> walkLanes(ElementEmitter &emitter, unsigned pass, ArrayRef<unsigned> list,
                               int64_t vectors, SmallVector<Value> sums) {
    int64_t lane = program.dims[program.laneDim].size, group = plan.width * vectors,
            whole = lane / group * group;
    // One vector at `start`, joined with the sums of vector `v`.
    auto step = [&](Value start, int64_t v, int64_t width, SmallVector<Value> &carried) {
      emitter.openScope();
      emitter.setWidth(width);
      emitter.setIndex(program.laneDim, start);
      for (auto [i, r] : llvm::enumerate(list)) {
        Value &sum = carried[v * list.size() + i];
        Value value = accumulated(emitter, program.reductions[r]);
        nn::ReduceKind kind = program.reductions[r].kind;
        if (width == plan.width) {
          sum = combine(b, kind, sum, value);
          continue;
        }
        SmallVector<int64_t> front{0}, size{width}, ones{1};
        Value part = vector::ExtractStridedSliceOp::create(b, sum, front, size, ones);
        sum = vector::InsertStridedSliceOp::create(b, combine(b, kind, part, value), sum, front, ones);
      }
      storeAt(emitter, pass);
      emitter.setWidth(0);
      emitter.closeScope();
    };
    if (whole > 0)
      sums = b.fold({b.index(0), b.index(whole)}, group, sums, [&](Value start, ValueRange carried) {
        auto values = llvm::to_vector_of<Value>(carried);
        for (int64_t v = 0; v < vectors; ++v)
          step(b.add(start, v * plan.width), v, plan.width, values);
        return values;
      });
    for (int64_t at = whole, v = 0; at < lane; at += plan.width, ++v)
      step(b.index(at), v, std::min(plan.width, lane - at), sums);
    return sums;
  }

  void storeAt(ElementEmitter &emitter, unsigned pass) {
    SmallVector<std::pair<const LoopOutput *, Value>> stores;
    for (const LoopOutput &output : program.outputs)
      if (!output.perRow && output.pass == pass)
        stores.push_back({&output, emitter.emitVector(output.node)});
    for (auto [i, node] : llvm::enumerate(plan.kept))
      if (plan.keptPass[i] == pass)
        emitter.store(emitter.emitVector(node), program.nodes[node].element, keptBuffers[i],
                      rowPosition(emitter));
    for (auto [output, value] : stores)
      emitter.store(value, output->element, kernel.buffers[output->buffer], emitter.emitIndex(output->at));
  }

  const LoopPlan &plan;
  const KernelFunction &kernel;
  MathOptions options;
  const BlockBuffer *blockBuffer;
  SmallVector<Value> keptBuffers, totals, laneSums;
};

} // namespace

void emitLoops(LoopBuilder &builder, const LoopProgram &program, const LoopPlan &plan,
               const KernelFunction &kernel, const MathOptions &options, const BlockBuffer *blockBuffer) {
  NestEmitter(builder, program, plan, kernel, options, blockBuffer).emit();
}

} // namespace ortc::cpu
