// Elementary functions as plain arithmetic: no libm, the same bits on every target.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/Target.h"
#include "compiler/kernels/MathFunction.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace ortc::cpu {

/// How to expand. `fma` must be true only where the target has the instruction.
struct MathOptions {
  bool fma = false;
  bool rounding = false;                 ///< floor and its kin are instructions of the target
  const Architecture *scaling = nullptr; ///< whose instruction is x * 2^n; null: nobody's

  static MathOptions of(const Target &target, Numerics numerics) {
    return {target.usesFma(numerics), target.has(Instruction::Rounding),
            target.has(Instruction::Scaling) ? target.isa.architecture : nullptr};
  }
};

/// `function` of `operands` (scalars or vectors of f32 or f64, all of one type) as arith ops at the insertion
/// point. Special values follow C99 Annex F; results are within 4 ulp of the true value (f64 Pow 8), also
/// where they are subnormal. Limits of arguments: sin, cos and tan of f64 are that good up to |x| = 1e6 and
/// stay within [-1, 1] (sin, cos) beyond.
mlir::Value expandMath(mlir::OpBuilder &builder, mlir::Location loc, MathFunction function,
                       mlir::ValueRange operands, const MathOptions &options);

/// a * b + c on floats: one fma with `options.fma`, a multiply and an add otherwise. Only for use inside one op's own
/// expansion.
mlir::Value multiplyAdd(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b,
                        mlir::Value c, const MathOptions &options);

} // namespace ortc::cpu
