// Instructions of NVIDIA's tensor cores, and the copies that feed them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM does not know that all lanes of a warp make products together: their intrinsics are not convergent.
#pragma once

#include "compiler/backends/gpu/product/MatrixCore.h"

namespace ortc::gpu {

/// mma.sync of 16 x 16 times 16 x 8 numbers of 16 bits, and ldmatrix.
class TensorCore : public MatrixCore {
public:
  TensorCore();
  int64_t chunkBytesOf(MatrixNumber) const override { return 16; }
  FragmentPlace placeOf(ThreadBuilder &b, mlir::Value lane, Side side, bool isAlongDepth) const override;
  llvm::SmallVector<mlir::Value> load(ThreadBuilder &b, MatrixNumber number, mlir::ValueRange pointers,
                                      bool isAlongDepth) const override;
  llvm::SmallVector<mlir::Value> zeros(ThreadBuilder &b) const override;
  llvm::SmallVector<mlir::Value> multiply(ThreadBuilder &b, MatrixNumber number, mlir::ValueRange rows,
                                          mlir::ValueRange columns, int64_t piece,
                                          mlir::ValueRange sums) const override;
  mlir::Value sumRowOf(ThreadBuilder &b, mlir::Value lane) const override { return b.div(lane, 4); }
  mlir::Value sumColumnOf(ThreadBuilder &b, mlir::Value lane) const override {
    return b.mul(b.rem(lane, 4), 2);
  }
  llvm::SmallVector<mlir::Value> elementsOf(ThreadBuilder &b, mlir::ValueRange sums) const override;
  llvm::SmallVector<mlir::Value> sumsOf(ThreadBuilder &b, mlir::ValueRange elements) const override;
  llvm::SmallVector<mlir::Value> rowsOf(ThreadBuilder &b, mlir::Value lane, MatrixNumber number,
                                        mlir::ValueRange words) const override;
  mlir::Value roundPair(ThreadBuilder &b, mlir::Value low, mlir::Value high) const override;
};

/// mma.sync of 16 x 8 times 8 x 8 numbers of TF32, which are f32 numbers whose last 13 bits are zero. A fragment takes
/// two; the first one has steps [0, 4) and [8, 12) of it.
class RoundingCore final : public TensorCore {
public:
  RoundingCore();
  FragmentPlace placeOf(ThreadBuilder &b, mlir::Value lane, Side side, bool isAlongDepth) const override;
  llvm::SmallVector<mlir::Value> load(ThreadBuilder &b, MatrixNumber number, mlir::ValueRange pointers,
                                      bool isAlongDepth) const override;
  llvm::SmallVector<mlir::Value> multiply(ThreadBuilder &b, MatrixNumber number, mlir::ValueRange rows,
                                          mlir::ValueRange columns, int64_t piece,
                                          mlir::ValueRange sums) const override;
  mlir::Value roundFull(ThreadBuilder &b, mlir::Value value) const override;
};

/// Begins to copy 16 bytes of a buffer to shared memory, or zeros where the condition does not hold (null: it always
/// does). Copies since the last `closeCopies` are a group.
void copyAsync(ThreadBuilder &b, mlir::Value shared, mlir::Value source, mlir::Value isThere);
void closeCopies(ThreadBuilder &b);
/// Waits for all groups of the thread but the last `pending`.
void waitForCopies(ThreadBuilder &b, int64_t pending);

} // namespace ortc::gpu
