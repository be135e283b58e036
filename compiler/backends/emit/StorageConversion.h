// f16 and bf16 as they lie in buffers, to f32 and back.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace ortc::emit {

/// By integer operations: round to nearest even, NaN stays NaN. Vectors or scalars.
/// `bits` is i16; `value` f32. `type` is f16 or bf16.
mlir::Value extendToF32(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value bits, mlir::Type type);
mlir::Value truncateFromF32(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type type);

} // namespace ortc::emit
