// The status of a session on its device, in kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/ThreadBuilder.h"

#include "ortc/device.h"

namespace ortc::gpu {

/// Access to the fields of the status block, which lie at multiples of four.
class StatusBlock {
public:
  /// Of the argument that kernels get it as.
  static mlir::MemRefType typeOf(ThreadBuilder &b) {
    return mlir::MemRefType::get({static_cast<int64_t>(sizeof(ortc_device_status) / 4)}, b.getI32Type());
  }

  StatusBlock(ThreadBuilder &b, mlir::Value status) : b(b), status(status) {}

  mlir::Value load(size_t offset) { return b.loadScalar(status, b.index(static_cast<int64_t>(offset / 4))); }
  void store(size_t offset, mlir::Value word) {
    mlir::memref::StoreOp::create(b, word, status,
                                  mlir::ValueRange{b.index(static_cast<int64_t>(offset / 4))});
  }
  void store32(size_t offset, int64_t value) {
    store(offset, mlir::arith::ConstantOp::create(b, b.getI32IntegerAttr(static_cast<int32_t>(value))));
  }
  void store64(size_t offset, mlir::Value value) {
    mlir::Value half = mlir::arith::ConstantOp::create(b, b.getI64IntegerAttr(32));
    store(offset, mlir::arith::TruncIOp::create(b, b.getI32Type(), value));
    store(offset + 4,
          mlir::arith::TruncIOp::create(b, b.getI32Type(), mlir::arith::ShRUIOp::create(b, value, half)));
  }
  mlir::Value isGood() {
    return mlir::arith::CmpIOp::create(b, mlir::arith::CmpIPredicate::eq,
                                       load(offsetof(ortc_device_status, status)),
                                       mlir::arith::ConstantOp::create(b, b.getI32IntegerAttr(ORTC_STEP_OK)));
  }

private:
  ThreadBuilder &b;
  mlir::Value status;
};

} // namespace ortc::gpu
