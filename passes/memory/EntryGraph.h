//===- EntryGraph.h - the kernel calls of entries and their order ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace ortc::memory {

/// Entry functions that are planned together: one, or a gradients entry and its update entry. All their work is
/// func.call operations of kernels, with reshapes between them.
///
/// Preparation makes every result with a destination (an update, an output, a gradient, the loss) the result of a call of its
/// own, inserting copies where it is an argument, has two destinations, or cannot overwrite the tensor it updates.
class EntryGraph {
public:
  /// Where a call's result must be written.
  struct Destination {
    enum Kind { update, output, gradient, loss } kind;
    mlir::StringAttr name; ///< symbol, output name
    int64_t index = 0;     ///< of outputs: position among the external values of its entry
    mlir::Type type;       ///< as the function returns it
    mlir::Attribute dtype = {}; ///< `train.dtype` of the result
  };

  /// Fails, with a diagnostic, when a function holds anything but calls, reshapes and its return.
  static mlir::FailureOr<EntryGraph> build(llvm::ArrayRef<mlir::func::FuncOp> entries);

  llvm::ArrayRef<mlir::func::FuncOp> getEntries() const { return entries; }
  /// All calls in an order in which everything is legal.
  llvm::ArrayRef<mlir::func::CallOp> getCalls() const { return order; }
  /// Calls that must come before `call` although no transient buffer says so.
  llvm::ArrayRef<mlir::Operation *> getAfter(mlir::func::CallOp call) const;
  /// What `value` is a reshape of, following gradients from one entry to the next.
  mlir::Value rootOf(mlir::Value value) const;
  /// The destination of a root, or null.
  const Destination *getDestination(mlir::Value root) const;
  /// Position of the entry a call belongs to.
  uint32_t getSegment(mlir::func::CallOp call) const;
  /// Whether a call writes a persistent tensor.
  bool isUpdate(mlir::func::CallOp call) const;
  static bool isCheck(mlir::func::CallOp call);

private:
  mlir::LogicalResult checkContents() const;
  void assignDestinations();
  void assignDestination(mlir::func::FuncOp entry, unsigned result, int64_t &externals);
  bool canOverwrite(mlir::Value root, mlir::StringAttr symbol) const;
  void insertCopy(mlir::func::FuncOp entry, unsigned result);
  bool sort();
  llvm::SmallVector<mlir::func::CallOp> readersOf(mlir::StringAttr symbol) const;

  llvm::SmallVector<mlir::func::FuncOp, 2> entries;
  llvm::SmallVector<mlir::func::CallOp> order;
  llvm::MapVector<mlir::Value, Destination> destinations;
  llvm::DenseMap<mlir::Value, mlir::Value> carried; // gradient arguments to the gradients they carry
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *>> after;
  bool copyAllUpdates = false;
};

} // namespace ortc::memory
