// Loads and stores of one vector at a strided position of a flat buffer.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/IndexBuilder.h"

namespace ortc::cpu {

/// `lanes` lanes; the first `live` of them exist.
struct LaneRange {
  int64_t lanes = 1;
  int64_t live = 1;
  bool isPartial() const { return live < lanes; }
};

/// The elements at `at`, `at + stride`, ... Stride zero broadcasts. Lanes that do not exist are zero.
mlir::Value loadLanes(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer, emit::Offset at,
                      int64_t stride, LaneRange range);

/// Stores the live lanes.
void storeLanes(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer, emit::Offset at,
                int64_t stride, LaneRange range, mlir::Value value);

} // namespace ortc::cpu
