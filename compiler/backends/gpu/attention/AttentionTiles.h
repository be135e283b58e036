// The tiles that a block of attention keeps in shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/product/SharedTile.h"
#include "compiler/kernels/attention/AttentionForm.h"

#include <optional>

namespace ortc::gpu {

/// Shared memory that every processor of NVIDIA gives a block that asks for it. Those of AMD give kAmdSharedBytes.
inline constexpr int64_t kAttentionBytes = 96 << 10;

/// Elements of one operand, by two strides.
class StridedAccess final : public ProductAccess {
public:
  StridedAccess(mlir::Value buffer, mlir::Value base, int64_t along, int64_t depth)
      : buffer(buffer), base(base), along(along), depth(depth) {}

  void begin(ThreadBuilder &, mlir::Value) override {}
  ElementPlace locate(ThreadBuilder &b, Side, mlir::Value index, const DepthPosition &k) override {
    mlir::Value at = b.add(base, b.mul(index, along));
    return {buffer, b.add(at, b.mul(b.add(k.start, k.step), depth)), {}};
  }
  std::optional<ElementStrides> stridesOf(Side, int64_t) const override {
    return ElementStrides{along, depth};
  }
  void store(ThreadBuilder &, mlir::Value, mlir::Value, mlir::Value) override {
    llvm_unreachable("results are stored otherwise");
  }

private:
  mlir::Value buffer, base;
  int64_t along, depth;
};

/// One operand of a product as a tile: where it is in memory, and how it is cut.
struct AttentionTile {
  Side side = Side::row;
  ProductShape shape;
  MatrixPlan plan;
  unsigned buffer = 0;
  int64_t offset = 0, along = 0,
          depth = 0; ///< of the first element; strides of rows or columns and of the depth
  llvm::SmallVector<AttentionForm::ScoreDim> dims; ///< of the head
  unsigned operand = 0;                            ///< whose strides these are, in `dims`
  int64_t place = 0;                               ///< in shared memory, in bytes
  bool isCopyOfOther = false;                      ///< the tile at `place` has the same numbers

  int64_t bytes() const { return plan.sideBytes(side); }
};

/// The tiles of a kernel. Each warp has 16 of its rows.
struct AttentionLayout {
  using AlignmentOf = llvm::function_ref<int64_t(unsigned buffer)>;
  struct Scores {
    AttentionTile rows, keys;
  };
  llvm::SmallVector<Scores, 2> scores;
  llvm::SmallVector<AttentionTile, 2> mixed;
  int64_t rows = 64, keys = 64; ///< of a block, and of a step
  int64_t bytes = 0;

  /// The first of some sizes whose tiles a block of the processor has shared memory for, if there is one.
  static std::optional<AttentionLayout> plan(const AttentionForm &form, const Processor &processor,
                                             AlignmentOf alignmentOf);

private:
  bool multipliesFull() const; ///< f32 numbers, by whatever they are stored as
  AttentionLayout(const AttentionForm &form, int64_t rows, int64_t keys, const MatrixCore &core,
                  AlignmentOf alignmentOf);
};

} // namespace ortc::gpu
