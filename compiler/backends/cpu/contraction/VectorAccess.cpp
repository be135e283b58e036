// Contiguous, broadcast and strided vectors; masks are constants, so that targets without masked moves get scalar code
// without branches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/contraction/VectorAccess.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;

static VectorType vectorOf(Value buffer, int64_t lanes) {
  return VectorType::get({lanes}, cast<MemRefType>(buffer.getType()).getElementType());
}

/// Vectors of so many lanes of this width have masked stores that cost what others do. On some processors with shorter
/// ones they take several times as long.
static constexpr int64_t kMaskedStoreBits = 512, kLeastLaneBits = 32;

/// Whether a masked store of narrow numbers would be of one lane, once LLVM has cut it into registers: LLVM 22.1 makes
/// that of the 32 bits that the number was rounded from, over its neighbour.
static bool isStoredTooWide(LaneRange range, int64_t width) {
  return width < kLeastLaneBits && range.live % (kMaskedStoreBits / kLeastLaneBits) == 1;
}

static Value maskOf(OpBuilder &builder, Location loc, LaneRange range) {
  auto type = VectorType::get({range.lanes}, builder.getI1Type());
  return vector::ConstantMaskOp::create(builder, loc, type, ArrayRef<int64_t>{range.live});
}

Value loadLanes(OpBuilder &builder, Location loc, Value buffer, Offset at, int64_t stride, LaneRange range) {
  IndexBuilder index(builder, loc);
  VectorType type = vectorOf(buffer, range.lanes);
  if (stride == 0 || range.lanes == 1) {
    Value scalar = memref::LoadOp::create(builder, loc, buffer, index.value(at));
    return vector::BroadcastOp::create(builder, loc, type, scalar);
  }
  if (stride == 1 && !range.isPartial())
    return vector::LoadOp::create(builder, loc, type, buffer, index.value(at));
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  if (stride == 1)
    return vector::MaskedLoadOp::create(builder, loc, type, buffer, index.value(at),
                                        maskOf(builder, loc, range), zero);
  Value result = zero;
  for (int64_t lane = 0; lane < range.live; ++lane) {
    Value scalar = memref::LoadOp::create(builder, loc, buffer, index.value(index.add(at, lane * stride)));
    result = vector::InsertOp::create(builder, loc, scalar, result, lane);
  }
  return result;
}

void storeLanes(OpBuilder &builder, Location loc, Value buffer, Offset at, int64_t stride, LaneRange range,
                Value value) {
  IndexBuilder index(builder, loc);
  if (stride == 1 && !range.isPartial() && range.lanes > 1) {
    vector::StoreOp::create(builder, loc, value, buffer, index.value(at));
    return;
  }
  if (stride == 1 && range.lanes > 1) {
    int64_t width = cast<MemRefType>(buffer.getType()).getElementTypeBitWidth();
    if (range.lanes * std::max(width, kLeastLaneBits) >= kMaskedStoreBits && !isStoredTooWide(range, width)) {
      vector::MaskedStoreOp::create(builder, loc, buffer, index.value(at), maskOf(builder, loc, range),
                                    value);
      return;
    }
    // Pieces of powers of two.
    for (int64_t lane = 0, size = range.lanes / 2; lane < range.live; size /= 2) {
      if (lane + size > range.live)
        continue;
      Value piece = vector::ExtractStridedSliceOp::create(builder, loc, value, lane, size, 1);
      vector::StoreOp::create(builder, loc, piece, buffer, index.value(index.add(at, lane)));
      lane += size;
    }
    return;
  }
  for (int64_t lane = 0; lane < range.live; ++lane) {
    Value scalar = vector::ExtractOp::create(builder, loc, value, lane);
    memref::StoreOp::create(builder, loc, scalar, buffer, index.value(index.add(at, lane * stride)));
  }
}

} // namespace ortc::cpu
