// Instructions that multiply matrices, as processors have them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lanes of a warp hold three matrices in registers: a fragment of kFragment rows of the product and kFragment steps
// of its depth, one of as many columns, and sums. Which elements a lane has, and as which values, is the core's. All
// lanes make an instruction together: none may stand under a condition that lanes decide differently.
//
// A warp in product/ and attention/ has `MatrixCore::lanes` lanes: on AMD it is a wavefront of 32 or 64. Elsewhere it
// has kWarp lanes.
#pragma once

#include "compiler/backends/gpu/product/Product.h"

namespace ortc::gpu {

/// Rows or columns of a fragment, and its steps of the depth.
inline constexpr int64_t kFragment = 16;

/// The numbers that a core multiplies.
enum class MatrixNumber { bf16, f16, f32 };

inline int64_t bytesOf(MatrixNumber number) { return number == MatrixNumber::f32 ? 4 : 2; }

/// Where a lane begins to read a fragment in shared memory, which has lines of chunks: among the fragment's own.
struct FragmentPlace {
  mlir::Value line, chunk;
};

class MatrixCore {
public:
  virtual ~MatrixCore() = default;

  /// Whether it multiplies f16 numbers without loss, and whether it multiplies f32 numbers. All multiply bf16 numbers.
  bool hasHalf = true, hasFull = false;
  /// Lanes of a warp (NVIDIA), or of a wavefront (AMD).
  int64_t lanes = kWarp;
  /// Instructions for the columns of a fragment, one beside the other.
  int64_t pieces = 1;
  /// Chunks beside each other that a lane reads of a fragment.
  int64_t reads = 1;
  /// Whether fragments can be read where lines of shared memory are steps of the depth; else only along the depth.
  bool readsAcrossDepth = false;
  /// Whether copies to shared memory need no registers.
  bool copies = false;
  /// Whether loads for the next stage begin before the barrier of this one. ptxas moves loads that follow the barrier
  /// to a place after the products, and moves none across the barrier. A barrier of RDNA waits for loads before it.
  bool loadsBeforeBarrier = false;
  /// Whether LLVM needs all registers for addresses, sums and a tile that is loaded: there is one at a time.
  bool hasFewRegisters = false;
  /// Values that hold the sums of an instruction.
  int64_t sumValues = 1;
  /// A lane's sums of an instruction are runs of `run` neighbours of a row, each `rowStep` rows below the one before,
  /// or `columnStep` columns after it in the same row.
  int64_t run = 1, rowStep = 0, columnStep = 0;
  /// So many lanes have a row's sums together; their numbers are multiples of `rowLaneStep` apart.
  int64_t rowLanes = 4, rowLaneStep = 1;
  /// Numbers by which a row of sums in shared memory is longer, so that a warp's rows keep out of each other's banks.
  int64_t sumPadding = 0;

  int64_t pieceColumns() const { return kFragment / pieces; }
  /// Sums of an instruction that a lane has, the rows that they are of, and where the one of number `element` is among
  /// those rows and, from the lane's first sum on, among the columns.
  int64_t sumsOfLane() const { return kFragment * pieceColumns() / lanes; }
  int64_t rowsOfLane() const { return rowStep ? sumsOfLane() / run : 1; }
  int64_t rowOf(int64_t element) const { return rowStep ? element / run : 0; }
  int64_t columnOf(int64_t element) const {
    return element % run + (rowStep ? 0 : element / run * columnStep);
  }

  /// Bytes of shared memory that a lane reads at once.
  virtual int64_t chunkBytesOf(MatrixNumber number) const = 0;

  /// `isAlongDepth`: lines are rows or columns of the product; else steps of its depth.
  virtual FragmentPlace placeOf(ThreadBuilder &b, mlir::Value lane, Side side, bool isAlongDepth) const = 0;
  /// A fragment; `pointers`: to the lane's chunks. Where the core does not read across the depth, those are pointers
  /// across it to each of the numbers that it would have read along it.
  virtual llvm::SmallVector<mlir::Value> load(ThreadBuilder &b, MatrixNumber number,
                                              mlir::ValueRange pointers, bool isAlongDepth) const = 0;

  /// Sums of nothing, `sumValues` values.
  virtual llvm::SmallVector<mlir::Value> zeros(ThreadBuilder &b) const = 0;
  /// rows * columns + sums, of one piece of the columns. Sums are values of one type, or vectors of it, that can be
  /// added.
  virtual llvm::SmallVector<mlir::Value> multiply(ThreadBuilder &b, MatrixNumber number,
                                                  mlir::ValueRange rows, mlir::ValueRange columns,
                                                  int64_t piece, mlir::ValueRange sums) const = 0;

  /// Where a lane's first sum is in the results of an instruction.
  virtual mlir::Value sumRowOf(ThreadBuilder &b, mlir::Value lane) const = 0;
  virtual mlir::Value sumColumnOf(ThreadBuilder &b, mlir::Value lane) const = 0;
  /// The sums of an instruction, run by run.
  virtual llvm::SmallVector<mlir::Value> elementsOf(ThreadBuilder &b, mlir::ValueRange sums) const = 0;
  /// Such elements as the sums of an instruction.
  virtual llvm::SmallVector<mlir::Value> sumsOf(ThreadBuilder &b, mlir::ValueRange elements) const = 0;
  /// A fragment of rows whose steps are what the columns of sums were. `words`: of all pieces, in the order of
  /// `elementsOf`, two numbers of 16 bits each, or a f32 number.
  virtual llvm::SmallVector<mlir::Value> rowsOf(ThreadBuilder &b, mlir::Value lane, MatrixNumber number,
                                                mlir::ValueRange words) const = 0;

  /// Instructions before and after this point do not mix, where registers would not suffice for both.
  void separate(ThreadBuilder &b) const {
    if (hasFewRegisters)
      b.separate();
  }

  /// Two f32 values, rounded to bf16, in an i32; `low` is in its lower half.
  virtual mlir::Value roundPair(ThreadBuilder &b, mlir::Value low, mlir::Value high) const = 0;
  /// A f32 value as the core multiplies it, of 32 bits.
  virtual mlir::Value roundFull(ThreadBuilder &, mlir::Value value) const { return value; }
};

/// The core of a processor. Null if none is known.
const MatrixCore *findMatrixCore(const Processor &processor);
/// Only for f32 numbers, which it rounds to TF32. Null if the processor has no such products.
const MatrixCore *findTf32Core(const Processor &processor);

} // namespace ortc::gpu
