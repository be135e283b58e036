// Panels of rows are copied vector by vector; panels of columns that are contiguous along k go through transposes of
// lanes x lanes blocks in registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/contraction/Packing.h"

#include "compiler/backends/cpu/contraction/Microkernel.h"
#include "compiler/backends/cpu/contraction/VectorAccess.h"
#include "compiler/backends/emit/StorageConversion.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;

namespace {

class PanelCopier {
public:
  PanelCopier(OpBuilder &builder, Location loc, const PanelCopy &copy)
      : builder(builder), loc(loc), index(builder, loc), copy(copy) {}

  void copyRows();
  void copyTransposed();

private:
  int64_t live(int64_t vector) const { return vector + 1 == copy.vectors ? copy.tail : copy.lanes; }
  Value widen(Value value) {
    return copy.narrowType ? extendToF32(builder, loc, value, copy.narrowType) : value;
  }
  Offset panelPlace(Offset panel, Offset k, int64_t vector) {
    Offset start = index.add(copy.panelAt, index.mul(panel, copy.panelStep));
    return index.add(index.add(start, index.mul(k, copy.vectors * copy.lanes)), vector * copy.lanes);
  }
  Offset sourcePlace(Offset panel, Offset k) {
    int64_t step = copy.vectors * copy.lanes * copy.laneStride;
    Offset start = index.add(copy.sourceAt, index.mul(panel, step));
    return index.add(start, index.mul(k, copy.depthStride));
  }
  void loop(Offset to, int64_t step, llvm::function_ref<void(Offset)> body);
  void transposeBlock(Offset panel, Offset k, int64_t vector, int64_t depth);

  OpBuilder &builder;
  Location loc;
  IndexBuilder index;
  const PanelCopy &copy;
};

} // namespace

void PanelCopier::loop(Offset to, int64_t step, llvm::function_ref<void(Offset)> body) {
  if (to.isStatic() && to.constant <= 0)
    return;
  if (to.isStatic() && to.constant == step)
    return body(0);
  auto loop = scf::ForOp::create(builder, loc, index.constant(0), index.value(to), index.constant(step));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  body(Offset(loop.getInductionVar()));
}

/// All panels of a k before the next k: the source is read in the longest runs there are.
void PanelCopier::copyRows() {
  loop(copy.depth, 1, [&](Offset k) {
    loop(copy.panels, 1, [&](Offset panel) {
      Offset from = sourcePlace(panel, k);
      if (copy.laneStride == 1)
        fetchRun(builder, loc, copy.source, index.add(from, kFetchedRows * copy.depthStride),
                 copy.vectors * copy.lanes);
      for (int64_t v = 0; v < copy.vectors; ++v) {
        Offset at = index.add(from, v * copy.lanes * copy.laneStride);
        Value value = loadLanes(builder, loc, copy.source, at, copy.laneStride, {copy.lanes, live(v)});
        storeLanes(builder, loc, copy.panel, panelPlace(panel, k, v), 1, {copy.lanes, copy.lanes},
                   widen(value));
      }
    });
  });
}

/// `depth` values of k from `k` on, at most one vector of them.
void PanelCopier::transposeBlock(Offset panel, Offset k, int64_t vector, int64_t depth) {
  SmallVector<Value> columns;
  Offset from = sourcePlace(panel, k);
  for (int64_t lane = 0; lane < live(vector); ++lane) {
    Offset at = index.add(from, (vector * copy.lanes + lane) * copy.laneStride);
    columns.push_back(widen(loadLanes(builder, loc, copy.source, at, 1, {copy.lanes, depth})));
  }
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(columns[0].getType()));
  columns.resize(copy.lanes, zero);
  SmallVector<Value> rows = emitTranspose(builder, loc, columns);
  for (int64_t d = 0; d < depth; ++d)
    storeLanes(builder, loc, copy.panel, panelPlace(panel, index.add(k, d), vector), 1,
               {copy.lanes, copy.lanes}, rows[d]);
}

/// One vector of columns after the other along k, so that few streams are open at a time; meanwhile the
/// columns of the next vector are fetched (128x50257x768 from memory: 11 % faster than all vectors of a k
/// together).
void PanelCopier::copyTransposed() {
  Offset whole = index.mul(index.div(copy.depth, copy.lanes), copy.lanes);
  loop(copy.panels, 1, [&](Offset panel) {
    for (int64_t v = 0; v < copy.vectors; ++v)
      loop(whole, copy.lanes, [&](Offset k) {
        Offset next = index.add(sourcePlace(panel, k), (v + 1) * copy.lanes * copy.laneStride);
        for (int64_t lane = 0; lane < copy.lanes; ++lane)
          fetchRun(builder, loc, copy.source, index.add(next, lane * copy.laneStride), copy.lanes);
        transposeBlock(panel, k, v, copy.lanes);
      });
    if (!copy.lastRemainder)
      return;
    auto rest = [&] {
      for (int64_t v = 0; v < copy.vectors; ++v)
        transposeBlock(panel, whole, v, copy.lastRemainder);
    };
    if (!copy.isLast)
      return rest();
    auto guarded = scf::IfOp::create(builder, loc, copy.isLast, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&guarded.getThenRegion().front());
    rest();
  });
}

void fetchRun(OpBuilder &builder, Location loc, Value buffer, Offset at, int64_t elements, Fetch fetch) {
  constexpr int64_t kLineBits = 512;
  IndexBuilder index(builder, loc);
  int64_t step = kLineBits / cast<MemRefType>(buffer.getType()).getElementTypeBitWidth();
  for (int64_t element = 0; element < elements; element += step)
    memref::PrefetchOp::create(builder, loc, buffer, index.value(index.add(at, element)),
                               fetch == Fetch::Write,
                               /*localityHint=*/fetch == Fetch::ReadLater ? 2 : 3, /*isDataCache=*/true);
}

void emitPanelCopy(OpBuilder &builder, Location loc, const PanelCopy &copy) {
  PanelCopier copier(builder, loc, copy);
  if (copy.depthStride == 1 && copy.laneStride != 1)
    copier.copyTransposed();
  else
    copier.copyRows();
}

} // namespace ortc::cpu
