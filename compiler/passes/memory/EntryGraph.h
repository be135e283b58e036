// The steps of entries and of loop bodies, and their order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/nn/NnDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <memory>

namespace ortc::memory {

/// The kernels of a module, found by name without going through all of them.
class Kernels {
public:
  explicit Kernels(mlir::ModuleOp module);

  /// The kernel that a step calls.
  mlir::func::FuncOp calleeOf(mlir::func::CallOp call) const {
    return symbols.lookup<mlir::func::FuncOp>(call.getCallee());
  }
  /// A kernel that gives back its operand of type `type`, made when there is none.
  mlir::func::FuncOp getCopy(mlir::Type type, mlir::Location loc);

private:
  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  llvm::DenseMap<mlir::FunctionType, mlir::func::FuncOp> copies; ///< by type
  unsigned numberOfCopies = 0;
};

/// Blocks that are planned together: an entry function, a gradients entry and its update entry, forward, backward and
/// update entries, or the body of a loop. All their work is steps: func.call operations of kernels and nn.scan
/// operations, with reshapes between them. To the body of a loop a carried value is what a tensor is to an entry: read
/// as an argument, overwritten by a result.
///
/// Preparation makes every result with a destination (an update, an output, a gradient, the loss) the result
/// of a call of its own, inserting copies where it is an argument, has two destinations, or cannot overwrite
/// the tensor it updates. A loop works on its carried values in place: what they start from is made the
/// result of a call that nobody else reads.
class EntryGraph {
public:
  /// Where a call's result must be written.
  struct Destination {
    enum Kind { update, output, gradient, loss, saved } kind;
    mlir::StringAttr name; ///< symbol, output name
    /// of outputs: position among the external values of its entry; of a loop: among carried or stacked values
    int64_t index = 0;
    mlir::Type type;                         ///< as the block returns it
    mlir::Attribute dtype = {}, layout = {}; ///< `train.dtype` and `train.layout` of the result
  };

  /// Fails, with a diagnostic, when a function holds anything but steps, reshapes and its return.
  static mlir::FailureOr<EntryGraph> build(llvm::ArrayRef<mlir::func::FuncOp> entries);

  llvm::ArrayRef<mlir::Block *> getBlocks() const { return blocks; }
  /// All steps in an order in which everything is legal.
  llvm::ArrayRef<mlir::Operation *> getSteps() const { return order; }
  /// Steps that must come before `step` although no transient buffer says so.
  llvm::ArrayRef<mlir::Operation *> getAfter(mlir::Operation *step) const;
  /// Where `value` lies: what it is a reshape of, following gradients and saved values from one entry to the next and
  /// carried values of loops back to where they start.
  mlir::Value rootOf(mlir::Value value) const;
  /// The destination of a root, or null.
  const Destination *getDestination(mlir::Value root) const;
  /// Position of the block a step belongs to.
  uint32_t getSegment(mlir::Operation *step) const;
  /// Whether a step writes a tensor.
  bool isUpdate(mlir::Operation *step) const;
  /// Whether a step may stop the program.
  bool isCheck(mlir::Operation *step) const;
  mlir::func::FuncOp calleeOf(mlir::func::CallOp call) const { return kernels->calleeOf(call); }
  /// The steps in the body of a loop.
  const EntryGraph &getBody(mlir::Operation *loop) const { return *bodies.at(loop); }

  /// The tensor whose value an argument is (of a loop body: the carried value), or null.
  static mlir::StringAttr tensorOf(mlir::BlockArgument argument);
  /// Whether the host has the place of an argument: of an input, of an output that an earlier entry has written, or of
  /// a tensor that is bound.
  static bool isExternal(mlir::BlockArgument argument);
  /// The tensor whose gradient an argument of an entry is, or null.
  static mlir::StringAttr gradientOf(mlir::BlockArgument argument);

private:
  static mlir::FailureOr<EntryGraph> build(llvm::SmallVector<mlir::Block *, 2> blocks,
                                           std::shared_ptr<Kernels> kernels);
  mlir::Value makeCopy(mlir::Value value, mlir::Operation *user);
  mlir::LogicalResult checkContents() const;
  void prepareLoops();
  void assignDestinations();
  std::optional<Destination> describeResult(mlir::Block *block, unsigned result, int64_t &externals) const;
  void assignDestination(mlir::Block *block, unsigned result, int64_t &externals);
  bool canOverwrite(mlir::Value root, mlir::StringAttr tensor) const;
  bool sort();
  /// The value in whose place `value` lies: one step on the way to its root; null at the root.
  mlir::Value sourceOf(mlir::Value value) const;
  /// The steps that `value` comes from: the one that writes it, and loops that have gone over it.
  llvm::SmallVector<mlir::Operation *> producersOf(mlir::Value value) const;
  bool reaches(mlir::Operation *from, mlir::Operation *to) const;
  llvm::SmallVector<mlir::Operation *> readersOf(mlir::StringAttr tensor) const;
  bool isBefore(mlir::Operation *a, mlir::Operation *b) const;

  llvm::SmallVector<mlir::Block *, 2> blocks;
  std::shared_ptr<Kernels> kernels;
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<mlir::BlockArgument>> argumentsOf; ///< by tensor
  llvm::SmallVector<mlir::Operation *> order;
  llvm::MapVector<mlir::Value, Destination> destinations;
  llvm::DenseMap<mlir::Value, mlir::Value>
      carried; // arguments to the results of an earlier entry that they are
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *>> after;
  std::map<mlir::Operation *, std::unique_ptr<EntryGraph>> bodies;
  bool copyAllUpdates = false;
};

} // namespace ortc::memory
