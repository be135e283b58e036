// Entries as planning problems.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/passes/memory/EntryGraph.h"
#include "compiler/planning/Problem.h"
#include "mlir/IR/BuiltinOps.h"

namespace ortc::memory {

/// The unit that `plan.budget` was given in, where it was given in one.
inline constexpr llvm::StringLiteral kBudgetUnit = "plan.budget_unit";

/// The steps of one block, or of several that are planned together, as a planning problem; loops have
/// problems of their own inside. Steps and buffers are numbered in the order of the graph.
struct EntryProblem {
  explicit EntryProblem(const EntryGraph &graph) : graph(graph) {}

  void build();
  /// The transient buffer of a root, made at its first use; nothing for roots that live elsewhere.
  std::optional<planning::BufferId> bufferOf(mlir::Value root);
  std::string nameOf(mlir::Value root) const;

  const EntryGraph &graph;
  planning::Problem problem;
  llvm::DenseMap<mlir::Value, planning::BufferId> buffers;
  std::map<mlir::Operation *, std::unique_ptr<EntryProblem>> loops;
};

/// The entries of a module in groups that are planned together: a gradients entry with the update entry of
/// its binding, every other one alone.
llvm::SmallVector<llvm::SmallVector<mlir::func::FuncOp>> groupEntries(mlir::ModuleOp module);

} // namespace ortc::memory
