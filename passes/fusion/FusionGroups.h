//===- FusionGroups.h - which operations become one kernel ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/codegen/loop/LoopProgram.h"
#include "mlir/IR/Block.h"
#include "passes/fusion/GroupOrder.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <vector>

namespace ortc::fusion {

/// Operations of one kernel, in program order. Reshapes and constants belong to no group: they are copied into the
/// kernels that look through them.
struct FusionGroup {
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::SmallVector<mlir::Value> inputs;  ///< what the operations take from outside, reshaped as they see it
  llvm::SmallVector<mlir::Value> outputs; ///< results that others take, in program order
};

/// Groups the operations of a straight-line block. Starts from one group per operation and joins producers with consumers,
/// then groups that read the same, as long as one loop nest computes the whole, nothing expensive is repeated, memory
/// is read in order, and no cycle of kernels appears. Depends on the program's text only.
class FusionGroups {
public:
  explicit FusionGroups(mlir::Block &block);

  void fuse();
  /// The groups in the order of their last operations.
  std::vector<FusionGroup> take();

private:
  struct Quality {
    bool valid = false;
    int64_t wasted = 0;    ///< operations repeated along a dimension they do not change with
    int64_t scattered = 0; ///< loads that are not contiguous
    int64_t parallel = 0;  ///< pieces of work side by side
    size_t nodes = 0;      ///< values of the expression
  };

  void classify();
  unsigned groupOf(mlir::Operation *op) const;
  void describe(FusionGroup &group) const;
  Quality judge(const FusionGroup &group) const;
  bool isUpdateOnly(mlir::Operation *op) const { return updateOnly.lookup(op); }
  FusionGroup united(unsigned a, unsigned b) const;
  /// Whether `reader` takes a result of `other`, if through reshapes.
  bool reads(unsigned reader, unsigned other) const;
  /// Whether a path leads from group `from` to group `to` through anything but reshapes and members of the two.
  bool hasIndirectPath(unsigned from, unsigned to);
  /// Visits the groups that take a result of `group`, if through reshapes.
  void forReaders(unsigned group, llvm::function_ref<void(unsigned)> visit) const;
  /// Group `b` becomes part of `a`, which is `whole` then.
  void join(unsigned a, unsigned b, FusionGroup whole);
  bool tryJoin(unsigned a, unsigned b);
  bool joinProducers();
  bool joinSiblings();
  /// Gives the groups that take a cheap output of another group a copy of what computes it.
  void recomputeCheap(unsigned group);
  void removeUnused(unsigned group);
  void copyInto(unsigned consumer, llvm::ArrayRef<mlir::Operation *> ops,
                llvm::ArrayRef<mlir::OpOperand *> uses, llvm::SmallVectorImpl<mlir::Operation *> &copies);
  bool collectCheap(mlir::Value value, unsigned group, llvm::ArrayRef<unsigned> consumers,
                    llvm::SmallVectorImpl<mlir::Operation *> &ops) const;
  void renumber();
  bool isUpdateApart(unsigned dot, unsigned other, const FusionGroup &whole) const;
  bool tryJoinContraction(unsigned dot, unsigned other);
  void joinContractions();
  int64_t sharedBytes(unsigned a, unsigned b) const;

  mlir::Block &block;
  llvm::DenseMap<mlir::Operation *, unsigned> position; ///< in the block
  llvm::DenseMap<mlir::Operation *, unsigned> groupIndex;
  llvm::DenseMap<mlir::Operation *, bool> updateOnly;
  std::vector<FusionGroup> groups; ///< empty once joined to another
  std::vector<Quality> qualities;
  /// Pairs that could not be joined, with the numbers of their operations then.
  llvm::DenseMap<std::pair<unsigned, unsigned>, std::pair<size_t, size_t>> refused;
  std::optional<GroupOrder> order; ///< of the groups: what one reads is before it
};

} // namespace ortc::fusion
