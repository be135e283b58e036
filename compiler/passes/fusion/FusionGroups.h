// Which operations become one kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/kernels/FusionLimits.h"
#include "compiler/passes/fusion/GroupOrder.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

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

/// The value that `value` is a reshape of, through any number of them.
mlir::Value throughReshapes(mlir::Value value);
int64_t bytesOf(mlir::Value value);
/// Whether kernels of `op`, a product or convolution, extend narrow operands themselves.
bool readsNarrow(mlir::Operation *op);

/// Groups the operations of a straight-line block. Starts from one group per operation and joins producers
/// with consumers, then groups that read the same, as long as one loop nest computes the whole, nothing
/// expensive is repeated, memory is read in order, and no cycle of kernels appears. Depends on the program's
/// text and the limits only.
class FusionGroups {
public:
  /// `formed`: operations that are a group from the start.
  FusionGroups(mlir::Block &block, const kernels::FusionLimits &limits,
               llvm::ArrayRef<llvm::SmallVector<mlir::Operation *>> formed);

  void fuse();
  /// Behind fuse(): what operations that the loss needs keep in f32 for others is stored as `type`.
  void narrowSaved(mlir::FloatType type);
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

  /// What was copied or added, and what was there before.
  struct Copies {
    llvm::SmallVector<mlir::Operation *> ops;
    llvm::SmallVector<std::pair<mlir::OpOperand *, mlir::Value>> uses;
    llvm::SmallVector<std::pair<unsigned, FusionGroup>> before; ///< groups that took copies
    llvm::SetVector<unsigned> readers;                          ///< others that take results of copies
  };

  struct Expression {
    llvm::SmallVector<mlir::Operation *> ops; ///< producers first
    llvm::SmallVector<mlir::Value> large;     ///< what has to be read for it
  };

  void addGroup(llvm::ArrayRef<mlir::Operation *> ops);
  void sortGroups();
  void classify();
  /// The product that alone reads `op`, which extends narrow numbers for it, or that `op` alone reads, and
  /// rounds: a part of its kernel from the start.
  static mlir::Operation *findConvertedProduct(mlir::Operation *op);
  unsigned groupOf(mlir::Operation *op) const;
  void describe(FusionGroup &group) const;
  Quality judge(const FusionGroup &group) const;
  /// The part of the program that needs an operation first. Kernels do not mix them, but for updates behind products.
  enum class Part : uint8_t { forward, backward, update };
  Part partOf(mlir::Operation *op) const { return parts.lookup(op); }
  Part partOf(unsigned group) const { return partOf(groups[group].ops.front()); }
  FusionGroup united(unsigned a, unsigned b) const;
  /// Whether `reader` takes a result of `other`, if through reshapes.
  bool reads(unsigned reader, unsigned other) const;
  /// Whether a path leads from group `from` to group `to` through anything but reshapes and members of the two.
  bool hasIndirectPath(unsigned from, unsigned to);
  /// Visits the groups that take a result of `group`, if through reshapes.
  void forReaders(unsigned group, llvm::function_ref<void(unsigned)> visit) const;
  void forReaders(mlir::Value value, llvm::function_ref<void(unsigned)> visit) const;
  /// Group `b` becomes part of `a`, which is `whole` then.
  void join(unsigned a, unsigned b, FusionGroup whole);
  bool tryJoin(unsigned a, unsigned b);
  bool joinProducers();
  bool joinSiblings();
  /// Gives the groups that take a cheap output of another group a copy of what computes it.
  void recomputeCheap(unsigned group);
  /// How `value`, an output of `group`, is computed from what every consumer reads anyway, from small tensors
  /// and from others, which are large; whether through other outputs of the group as well, `expandsKept`
  /// says.
  Expression collect(mlir::Value value, unsigned group, llvm::ArrayRef<unsigned> consumers,
                     bool expandsKept) const;
  /// Copies `ops` to the place before `place`, for the group `owner`, but for those in `mapping`, and lets
  /// `uses` take the copies.
  void copyInto(unsigned owner, mlir::Operation *place, llvm::ArrayRef<mlir::Operation *> ops,
                llvm::ArrayRef<mlir::OpOperand *> uses, Copies &copies, mlir::IRMapping mapping = {});
  /// Operations of `owner` that compute what `ops` compute.
  mlir::IRMapping findSame(llvm::ArrayRef<mlir::Operation *> ops, unsigned owner) const;
  /// Lets products that take outputs of `group` take them from a kernel that reads what they are computed
  /// from, where that kernel comes later than other consumers of them: they need not be kept in between.
  void emitAgain(unsigned group);
  bool emitAgain(mlir::Value value, unsigned group, unsigned owner);
  /// Takes copies of operations of `group` back when a kernel could no longer be one loop nest, or a worse one.
  bool keepIfGood(unsigned group, const Copies &copies);
  /// As it was before: uses, operations and groups.
  void takeBack(const Copies &copies);
  /// Erases the operations of a group that nobody uses, with the reshapes behind them.
  void removeUnused(unsigned group);
  /// Whether all that use `value`, if through reshapes, are in groups. Its uses in other groups, by group.
  bool findUses(mlir::Value value,
                llvm::MapVector<unsigned, llvm::SmallVector<mlir::OpOperand *>> &uses) const;
  bool readsValue(unsigned reader, mlir::Value value) const;
  void renumber();
  /// Numbers `copies`, which stand in a row.
  void number(llvm::ArrayRef<mlir::Operation *> copies);
  /// Whether more operations read a value, if through reshapes, than are looked at in pairs.
  bool hasManyReaders(mlir::Value value) const;
  /// Visits groups behind `group` that read `value`: all, or where they are many, the next ones.
  void forSiblings(unsigned group, mlir::Value value, llvm::function_ref<void(unsigned)> visit);
  bool isUpdateApart(unsigned dot, unsigned other, const FusionGroup &whole) const;
  bool tryJoinContraction(unsigned dot, unsigned other);
  /// Lets products read through the movement in front of them that nothing else reads.
  void joinViews();
  void joinContractions();
  /// The operations that the loss, or the forward part of a program that is cut, needs.
  llvm::DenseSet<mlir::Operation *> findForward() const;
  bool mayBeNarrow(unsigned group) const;
  /// Whether one kernel computes the group.
  bool isPossible(unsigned group) const;
  /// A new operation of the block becomes part of a group.
  void insert(mlir::Operation *op, unsigned group);
  /// Stores an output of `group` for these readers as `type`, if their kernels stay possible.
  void narrow(mlir::Value value, mlir::FloatType type, unsigned group, llvm::ArrayRef<unsigned> readers);
  int64_t sharedBytes(unsigned a, unsigned b) const;

  mlir::Block &block;
  const kernels::FusionLimits &limits;
  llvm::DenseMap<mlir::Operation *, uint64_t> position; ///< in the block; with gaps, for copies
  llvm::DenseMap<mlir::Operation *, unsigned> groupIndex;
  llvm::DenseMap<mlir::Operation *, Part> parts;
  std::vector<FusionGroup> groups; ///< empty once joined to another
  std::vector<Quality> qualities;
  /// Pairs that could not be joined, with the numbers of their operations then.
  llvm::DenseMap<std::pair<unsigned, unsigned>, std::pair<size_t, size_t>> refused;
  llvm::DenseMap<mlir::Value, std::vector<unsigned>>
      crowds;                      ///< sorted readers of what many read, in a round of joinSiblings
  std::optional<GroupOrder> order; ///< of the groups: what one reads is before it
};

} // namespace ortc::fusion
