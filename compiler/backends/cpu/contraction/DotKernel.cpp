// Contractions with at most eight columns (or rows) whose long operand is contiguous along k: matrix times vector,
// scalar products. Sums run along k in 16 lanes, whatever the width of the target's vectors, and are added up by a
// fixed tree: lane l with l + 8, then + 4, + 2, + 1.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/contraction/ContractionPlan.h"
#include "compiler/backends/cpu/contraction/Microkernel.h"
#include "compiler/backends/cpu/contraction/VectorAccess.h"
#include "compiler/backends/emit/MathExpansion.h"
#include "compiler/backends/emit/StorageConversion.h"
#include "compiler/kernels/SumOrder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <algorithm>

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

namespace {

constexpr int64_t kMaxChunks = 16;
/// Columns of a tile; more of them go along the same rows again.
constexpr int64_t kTileColumns = 4;

class DotEmitter {
public:
  DotEmitter(OpBuilder &builder, ModuleOp module, const ContractionSpec &spec, const Target &target);
  KernelInfo emit();

private:
  friend class DotAccess;
  using Body = llvm::function_ref<void(Offset)>;
  void loop(Offset from, Offset to, int64_t step, Body body);
  void emitOuter(Offset outer, Offset from, Offset to, Value isLast);
  void packThin();
  void emitRows(Offset row, int64_t rows);
  void emitTile(Offset row, int64_t rows, Offset firstColumn, int64_t columns);
  /// Vector `part` of the virtual lanes of k, k + 1, ...; `live` virtual lanes exist.
  Value loadPart(unsigned operand, Offset at, int64_t part, int64_t live);
  void accumulate(Offset k, int64_t live, Offset row, int64_t rows, Offset firstColumn, int64_t columns,
                  SmallVectorImpl<Value> &sums);
  Value addUp(SmallVector<Value> parts);
  Offset thinPlace(Offset column, Offset k);
  Value buffer(unsigned operand) const { return kernel.buffers[spec.operands[operand].buffer]; }

  OpBuilder &builder;
  Location loc;
  IndexBuilder index;
  ModuleOp module;
  const ContractionSpec &spec;
  SmallVector<ContractionDim> outer;
  ContractionDim longDim, thinDim, depth;
  unsigned longOperand, thinOperand;
  int64_t lanes, parts, tileRows, chunkFlops;
  bool fma, packsThin;
  bool isSmall; ///< the code, which is one for all columns

  KernelFunction kernel;
  Value packed;
  SmallVector<Offset> bases;
};

class DotAccess final : public EpilogueAccess {
public:
  DotAccess(DotEmitter &emitter, Offset row, int64_t rows, Offset column)
      : emitter(emitter), row(row), column(column), rows(rows) {}
  Value load(OpBuilder &builder, Location loc, unsigned operand) override {
    return loadLanes(builder, loc, emitter.buffer(operand), at(operand), stride(operand), {rows, rows});
  }
  void store(OpBuilder &builder, Location loc, unsigned operand, Value value) override {
    storeLanes(builder, loc, emitter.buffer(operand), at(operand), stride(operand), {rows, rows}, value);
  }
  int64_t lanes() const override { return rows; }

private:
  int64_t stride(unsigned operand) const { return emitter.longDim.strides[operand]; }
  Offset at(unsigned operand) {
    IndexBuilder &index = emitter.index;
    Offset base = index.add(emitter.bases[operand], index.mul(column, emitter.thinDim.strides[operand]));
    return index.add(base, index.mul(row, stride(operand)));
  }
  DotEmitter &emitter;
  Offset row, column;
  int64_t rows;
};

} // namespace

DotEmitter::DotEmitter(OpBuilder &builder, ModuleOp module, const ContractionSpec &spec, const Target &target)
    : builder(builder), loc(builder.getUnknownLoc()), index(builder, loc), module(module), spec(spec),
      outer(collapseDims(spec.batch)), fma(target.usesFma(spec.numerics)) {
  ContractionDim unit{1, SmallVector<int64_t, 4>(spec.operands.size(), 0)};
  auto only = [&](ArrayRef<ContractionDim> dims) { return dims.empty() ? unit : dims.front(); };
  ContractionDim m = only(collapseDims(spec.m)), n = only(collapseDims(spec.n));
  depth = collapseDims(spec.k).front();
  longOperand = m.size >= n.size ? 0 : 1;
  thinOperand = 1 - longOperand;
  longDim = longOperand == 0 ? m : n;
  thinDim = longOperand == 0 ? n : m;
  chunkFlops = target.machine.parallel.dotFlops;
  lanes = std::min(target.lanes(spec.accumulatorType.getIntOrFloatBitWidth()), kDotLanes);
  parts = kDotLanes / lanes;
  tileRows = 8;
  isSmall = target.isa.forSize;
  while (tileRows > 1 && tileRows * (isSmall ? 1 : std::min(thinDim.size, kTileColumns)) * parts >
                             target.machine.tiles.accumulators)
    tileRows /= 2;
  tileRows = std::min(tileRows, longDim.size);
  packsThin = depth.strides[thinOperand] != 1;
}

void DotEmitter::loop(Offset from, Offset to, int64_t step, Body body) {
  if (from.isStatic() && to.isStatic() && to.constant <= from.constant)
    return;
  auto loop = scf::ForOp::create(builder, loc, index.value(from), index.value(to), index.constant(step));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  body(Offset(loop.getInductionVar()));
}

KernelInfo DotEmitter::emit() {
  int64_t outerTotal = 1;
  for (const ContractionDim &dim : outer)
    outerTotal *= dim.size;
  KernelInfo info;
  info.name = spec.name;
  int64_t wanted = std::clamp<int64_t>(spec.flops() / chunkFlops, 1, kMaxChunks);
  int64_t outerPerChunk = (outerTotal + wanted - 1) / wanted;
  int64_t outerChunks = (outerTotal + outerPerChunk - 1) / outerPerChunk;
  wanted = (wanted + outerChunks - 1) / outerChunks;
  int64_t units = (longDim.size + 7) / 8;
  int64_t rowsPerChunk = (units + wanted - 1) / wanted * 8;
  int64_t rowChunks = (longDim.size + rowsPerChunk - 1) / rowsPerChunk;
  info.chunks = outerChunks * rowChunks;
  if (packsThin)
    info.workspaceBytesPerWorker =
        thinDim.size * depth.size * spec.accumulatorType.getIntOrFloatBitWidth() / 8;

  kernel = createKernelFunction(builder, module, info, spec.buffers);
  if (packsThin)
    packed = kernel.workspaceView(builder, loc, 0, spec.accumulatorType, thinDim.size * depth.size);
  Offset chunk(kernel.chunk);
  Offset rowChunk = index.rem(chunk, rowChunks), outerChunk = index.div(chunk, rowChunks);
  Offset from = index.mul(rowChunk, rowsPerChunk);
  Offset to = index.min(index.add(from, rowsPerChunk), longDim.size);
  Value isLast = rowChunks > 1 ? index.equal(rowChunk, rowChunks - 1) : Value();
  Offset outerFrom = index.mul(outerChunk, outerPerChunk);
  Offset outerTo = index.min(index.add(outerFrom, outerPerChunk), outerTotal);
  loop(outerFrom, outerTo, 1, [&](Offset at) { emitOuter(at, from, to, isLast); });
  return info;
}

void DotEmitter::emitOuter(Offset at, Offset from, Offset to, Value isLast) {
  bases.clear();
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    Offset base = spec.operands[i].offset, rest = at;
    for (size_t d = outer.size(); d-- > 0;) {
      Offset position = d == 0 ? rest : index.rem(rest, outer[d].size);
      base = index.add(base, index.mul(position, outer[d].strides[i]));
      rest = index.div(rest, outer[d].size);
    }
    bases.push_back(base);
  }
  if (packsThin)
    packThin();
  int64_t whole = longDim.size / tileRows * tileRows;
  Offset end = isLast ? index.min(to, whole) : Offset(whole);
  loop(isLast ? from : Offset(0), end, tileRows, [&](Offset row) { emitRows(row, tileRows); });
  if (whole == longDim.size)
    return;
  if (!isLast)
    return emitRows(whole, longDim.size - whole);
  auto branch = scf::IfOp::create(builder, loc, isLast, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&branch.getThenRegion().front());
  emitRows(whole, longDim.size - whole);
}

/// Copies the thin operand so that it is contiguous along k.
void DotEmitter::packThin() {
  loop(0, depth.size, 1, [&](Offset k) {
    for (int64_t column = 0; column < thinDim.size; ++column) {
      Offset at = index.add(bases[thinOperand], column * thinDim.strides[thinOperand]);
      at = index.add(at, index.mul(k, depth.strides[thinOperand]));
      Value value = memref::LoadOp::create(builder, loc, buffer(thinOperand), index.value(at));
      if (Type type = spec.narrow(thinOperand))
        value = extendToF32(builder, loc, value, type);
      memref::StoreOp::create(builder, loc, value, packed, index.value(index.add(k, column * depth.size)));
    }
  });
}

Value DotEmitter::loadPart(unsigned operand, Offset at, int64_t part, int64_t live) {
  int64_t liveHere = std::clamp<int64_t>(live - part * lanes, 0, lanes);
  bool fromPacked = operand == thinOperand && packsThin;
  if (liveHere == 0) {
    auto type = VectorType::get({lanes}, spec.accumulatorType);
    return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  }
  Value value = loadLanes(builder, loc, fromPacked ? packed : buffer(operand), index.add(at, part * lanes), 1,
                          {lanes, liveHere});
  return !fromPacked && spec.narrow(operand) ? extendToF32(builder, loc, value, spec.narrow(operand)) : value;
}

Offset DotEmitter::thinPlace(Offset column, Offset k) {
  if (packsThin)
    return index.add(k, index.mul(column, depth.size));
  return index.add(index.add(bases[thinOperand], index.mul(column, thinDim.strides[thinOperand])), k);
}

/// One step of 16 values of k, of which `live` exist.
void DotEmitter::accumulate(Offset k, int64_t live, Offset row, int64_t rows, Offset firstColumn,
                            int64_t columns, SmallVectorImpl<Value> &sums) {
  int64_t stride = longDim.strides[longOperand];
  Offset base = index.add(index.add(bases[longOperand], index.mul(row, stride)), k);
  for (int64_t part = 0; part < parts; ++part) {
    SmallVector<Value> thin;
    for (int64_t column = 0; column < columns; ++column)
      thin.push_back(loadPart(thinOperand, thinPlace(index.add(firstColumn, column), k), part, live));
    for (int64_t r = 0; r < rows; ++r) {
      Value value = loadPart(longOperand, index.add(base, r * stride), part, live);
      for (int64_t column = 0; column < columns; ++column) {
        Value &sum = sums[(r * columns + column) * parts + part];
        sum = multiplyAdd(builder, loc, value, thin[column], sum, MathOptions{fma});
      }
    }
  }
}

/// The tree over the virtual lanes: halves are added until one lane is left.
Value DotEmitter::addUp(SmallVector<Value> values) {
  while (values.size() > 1) {
    size_t half = values.size() / 2;
    for (size_t i = 0; i < half; ++i)
      values[i] = arith::AddFOp::create(builder, loc, values[i], values[i + half]);
    values.resize(half);
  }
  Value sum = values[0];
  for (int64_t width = lanes; width > 1; width /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < width / 2; ++i) {
      low.push_back(i);
      high.push_back(i + width / 2);
    }
    Value a = vector::ShuffleOp::create(builder, loc, sum, sum, low);
    Value b = vector::ShuffleOp::create(builder, loc, sum, sum, high);
    sum = arith::AddFOp::create(builder, loc, a, b);
  }
  return vector::ExtractOp::create(builder, loc, sum, int64_t(0));
}

void DotEmitter::emitRows(Offset row, int64_t rows) {
  if (isSmall)
    return loop(0, thinDim.size, 1, [&](Offset column) { emitTile(row, rows, column, 1); });
  for (int64_t column = 0; column < thinDim.size; column += kTileColumns)
    emitTile(row, rows, column, std::min(kTileColumns, thinDim.size - column));
}

void DotEmitter::emitTile(Offset row, int64_t rows, Offset firstColumn, int64_t columns) {
  auto type = VectorType::get({lanes}, spec.accumulatorType);
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  SmallVector<Value> sums(rows * columns * parts, zero);
  int64_t whole = depth.size / kDotLanes * kDotLanes;
  auto loop = scf::ForOp::create(builder, loc, index.constant(0), index.constant(whole),
                                 index.constant(kDotLanes), sums);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next(loop.getRegionIterArgs());
    accumulate(Offset(loop.getInductionVar()), kDotLanes, row, rows, firstColumn, columns, next);
    scf::YieldOp::create(builder, loc, next);
  }
  sums.assign(loop.getResults().begin(), loop.getResults().end());
  if (whole < depth.size)
    accumulate(whole, depth.size - whole, row, rows, firstColumn, columns, sums);
  for (int64_t column = 0; column < columns; ++column) {
    SmallVector<Value> results;
    for (int64_t r = 0; r < rows; ++r) {
      ArrayRef<Value> mine = ArrayRef<Value>(sums).slice((r * columns + column) * parts, parts);
      results.push_back(addUp(SmallVector<Value>(mine)));
    }
    auto resultType = VectorType::get({rows}, spec.accumulatorType);
    Value result = vector::FromElementsOp::create(builder, loc, resultType, results);
    DotAccess access(*this, row, rows, index.add(firstColumn, column));
    if (spec.epilogue)
      spec.epilogue(builder, loc, access, result);
    else
      access.store(builder, loc, 2, result);
  }
}

KernelInfo emitDotKernel(OpBuilder &builder, ModuleOp module, const ContractionSpec &spec,
                         const Target &target) {
  return DotEmitter(builder, module, spec, target).emit();
}

} // namespace ortc::cpu
