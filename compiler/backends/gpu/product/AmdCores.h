// Instructions of AMD's matrix cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where elements lie is as AMD's Matrix Instruction Calculator prints it with --register-layout
// (github.com/ROCm/amd_matrix_instruction_calculator). LLVM knows their intrinsics as convergent. Fragments come from
// lines along the depth only: nothing transposes on the way from shared memory.
#pragma once

#include "compiler/backends/gpu/product/MatrixCore.h"

namespace ortc::gpu {

/// Reads neighbours along the depth, and has sums in a vector. The first operand is that of the product's columns: so a
/// lane's sums are of one row, lane % 16, and of columns 4 * (lane / 16) + [0, 4), as it holds steps of the depth.
class AmdCore : public MatrixCore {
public:
  explicit AmdCore(int64_t lanes);
  llvm::SmallVector<mlir::Value> load(ThreadBuilder &b, MatrixNumber number, mlir::ValueRange pointers,
                                      bool isAlongDepth) const override;
  llvm::SmallVector<mlir::Value> zeros(ThreadBuilder &b) const override;
  mlir::Value sumRowOf(ThreadBuilder &b, mlir::Value lane) const override { return b.rem(lane, 16); }
  mlir::Value sumColumnOf(ThreadBuilder &b, mlir::Value lane) const override {
    return b.mul(b.div(lane, 16), 4);
  }
  llvm::SmallVector<mlir::Value> elementsOf(ThreadBuilder &b, mlir::ValueRange sums) const override;
  llvm::SmallVector<mlir::Value> sumsOf(ThreadBuilder &b, mlir::ValueRange elements) const override;
  llvm::SmallVector<mlir::Value> rowsOf(ThreadBuilder &b, mlir::Value lane, MatrixNumber number,
                                        mlir::ValueRange words) const override;
  mlir::Value roundPair(ThreadBuilder &b, mlir::Value low, mlir::Value high) const override;
};

/// MFMA of CDNA 2 and 3, of wavefronts of 64: 16 x 16 times 16 x 16 numbers of 16 bits, and 16 x 4 times 4 x 16 of f32,
/// of which a fragment takes four.
///
/// Lane l has row or column l % 16, and the steps 4 * (l / 16) + [0, 4). For f32 numbers the i-th instruction takes the
/// i-th of the four. A lane has sums of one column of the second operand, l % 16, and of four rows of the first one,
/// 4 * (l / 16) + [0, 4).
class MfmaCore final : public AmdCore {
public:
  /// `hasHalf`: CDNA 2 takes subnormal numbers for zeros (rocm.docs.amd.com, MIOpen, "MI200 MFMA behavior specifics"),
  /// which f16 numbers below 6.1e-5 are: there they are multiplied as f32.
  explicit MfmaCore(bool hasHalf);
  int64_t chunkBytesOf(MatrixNumber number) const override { return 4 * bytesOf(number); }
  FragmentPlace placeOf(ThreadBuilder &b, mlir::Value lane, Side side, bool isAlongDepth) const override;
  llvm::SmallVector<mlir::Value> multiply(ThreadBuilder &b, MatrixNumber number, mlir::ValueRange rows,
                                          mlir::ValueRange columns, int64_t piece,
                                          mlir::ValueRange sums) const override;
};

/// WMMA of RDNA 3, of wavefronts of 32: 16 x 16 times 16 x 16 numbers of 16 bits.
///
/// Lanes l and l + 16 have all steps of row or column l. A lane has sums of one column of the second operand, l % 16,
/// and of rows l / 16 + 2 * [0, 8) of the first one, which has the product's columns in such an order that these are
/// two runs of four neighbours: 4 * (l / 16) + [0, 4) and those 8 further.
class WmmaCore final : public AmdCore {
public:
  WmmaCore();
  int64_t chunkBytesOf(MatrixNumber) const override { return 16; }
  FragmentPlace placeOf(ThreadBuilder &b, mlir::Value lane, Side side, bool isAlongDepth) const override;
  llvm::SmallVector<mlir::Value> multiply(ThreadBuilder &b, MatrixNumber number, mlir::ValueRange rows,
                                          mlir::ValueRange columns, int64_t piece,
                                          mlir::ValueRange sums) const override;
  llvm::SmallVector<mlir::Value> rowsOf(ThreadBuilder &b, mlir::Value lane, MatrixNumber number,
                                        mlir::ValueRange words) const override;
};

} // namespace ortc::gpu
