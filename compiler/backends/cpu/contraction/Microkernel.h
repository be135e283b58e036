// The register tile that contractions and convolutions are made of.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/emit/IndexBuilder.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace ortc::cpu {

/// rows x vectors accumulators of `lanes` lanes. All accumulators, one row of B vectors and one broadcast of A should
/// fit the registers.
struct MicrokernelTile {
  int64_t rows = 1;
  int64_t vectors = 1;
  int64_t lanes = 1;
};

/// One loop of the reduction, from 0 to `count` in steps of one.
struct ReductionLoop {
  emit::Offset count;
  int64_t unroll = 1;
};

/// Where a step of the reduction is: one index per loop, outermost first.
using ReductionIndex = llvm::ArrayRef<emit::Offset>;

struct MicrokernelOperands {
  /// The scalar of A for a row. Called at the insertion point inside the innermost loop.
  llvm::function_ref<mlir::Value(int64_t row, ReductionIndex k)> loadA;
  /// The vector of B for a column of vectors; lanes beyond the tile's edge may hold anything.
  llvm::function_ref<mlir::Value(int64_t vector, ReductionIndex k)> loadB;
};

/// Emits the reduction and returns the accumulators, row by row. Every lane of every accumulator is
/// ((init + a0 b0) + a1 b1) + ... in the order of the loops, fused where `fma`: the bits do not depend on the tile, the
/// vector width or the unrolling.
llvm::SmallVector<mlir::Value> emitMicrokernel(mlir::OpBuilder &builder, mlir::Location loc,
                                               const MicrokernelTile &tile,
                                               llvm::ArrayRef<ReductionLoop> loops, mlir::ValueRange init,
                                               const MicrokernelOperands &operands, bool fma);

/// Whether the accumulators of a tile leave registers for one row of B, a broadcast of A and (without fma) a product.
/// One vector of B too many and every fma loads its own: 25 % slower.
bool fitsRegisters(int64_t rows, int64_t vectors, const Target &target, bool usesFma);

/// Transposes n vectors of n lanes in registers, with log2(n) rounds of shuffles; of vectors of a multiple of
/// n lanes, each square on its own. n is a power of two.
llvm::SmallVector<mlir::Value> emitTranspose(mlir::OpBuilder &builder, mlir::Location loc,
                                             llvm::ArrayRef<mlir::Value> rows);

} // namespace ortc::cpu
