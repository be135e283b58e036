// f16, bf16 and small integers as they lie in buffers, to f32, and the former back.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Value.h"

namespace ortc::emit {

/// Round to nearest even; NaN stays NaN, a quiet one, with as much of its payload as there is room for. Vectors or
/// scalars. `bits` is i16; `value` f32. `type` is f16 or bf16; `extendToF32` also takes integers, which say whether
/// they are signed. bf16 takes integer operations, f16 arith.extf and
/// arith.truncf, which are instructions or what `expandHalfConversions` makes of them, with the same bits.
mlir::Value extendToF32(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value bits, mlir::Type type);
mlir::Value truncateFromF32(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type type);

/// Writes conversions between f16 and f32 as integer operations, for targets that have none.
void expandHalfConversions(mlir::ModuleOp module);

} // namespace ortc::emit
