// Elementary functions as plain arithmetic: no libm, the same bits on every target.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/MathFunction.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace ortc::emit {

/// Numbers of a table that come as one vector, at most.
inline constexpr int64_t kTablePiece = 16;

/// Instructions that arithmetic of vectors has no word for.
class ScalingInstruction {
public:
  virtual ~ScalingInstruction() = default;
  /// x * 2^n for integral n of the type of x, rounded once; null for types that the instruction does not take.
  virtual mlir::Value emitScaling(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x,
                                  mlir::Value n) const = 0;
  /// Elements `index` of a table of numbers of 32 bits, a power of two of them, which come as vectors of kTablePiece
  /// (fewer where `index` has fewer lanes); null where there are no instructions for it. Of `index` the bits count that
  /// number the table.
  virtual mlir::Value emitLookup(mlir::OpBuilder &builder, mlir::Location loc,
                                 llvm::ArrayRef<mlir::Value> table, mlir::Value index) const {
    return {};
  }
};

/// How to expand. `fma` must be true only where the target has the instruction.
struct MathOptions {
  bool fma = false;
  bool rounding = false; ///< floor and its kin are instructions of the target
  const ScalingInstruction *scaling = nullptr;
  /// exp and exp2 are zero where they are below the smallest normal number: without a mode that does it, such results
  /// would cost a hundred times as much on some processors.
  bool flushesExp = false;
};

/// `function` of `operands` (scalars or vectors of f32 or f64, all of one type) as arith ops at the insertion
/// point. Special values follow C99 Annex F; results are within 4 ulp of the true value (f64 Pow 8), also
/// where they are subnormal, but for `flushesExp`. Limits of arguments: sin, cos and tan of f64 are that good up to
/// |x| = 1e6 and stay within [-1, 1] (sin, cos) beyond.
mlir::Value expandMath(mlir::OpBuilder &builder, mlir::Location loc, kernels::MathFunction function,
                       mlir::ValueRange operands, const MathOptions &options);

/// a * b + c on floats: one fma with `options.fma`, a multiply and an add otherwise. Only for use inside one op's own
/// expansion.
mlir::Value multiplyAdd(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b,
                        mlir::Value c, const MathOptions &options);

} // namespace ortc::emit
