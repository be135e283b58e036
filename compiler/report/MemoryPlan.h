// The memory of an entry, as its plan has it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plain figures for reports, read from a placed plan.program and its kernels, and from nothing else: what is
// shown is what runs.
#pragma once

#include "compiler/options/CompileOptions.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <vector>

namespace ortc::report {

/// A value in the transient region, or the scratch of a step. Where a kernel writes in place, two of them
/// meet in one step at one offset.
struct PlannedBuffer {
  std::string name; ///< of the model's value, or "scratch of step 7"; no two of an entry are equal
  std::string type; ///< "64x10xf32", the largest that it is seen as; "scratch"
  uint64_t offset = 0, bytes = 0;
  bool isScratch = false; ///< of a kernel: nothing is written in place of another buffer there
  int64_t first = 0,
          last = 0; ///< steps that need it, from 0; from the first to the last of a loop around some of them
};

/// A step, in the order in which they run; those of a loop once.
struct PlannedStep {
  std::string kernel;
  std::vector<std::string> origins; ///< "Relu:node_3", "gradient of Relu:node_3", "update of fc.weight"
  uint64_t live = 0;                ///< bytes in use while it runs, in units of 64
};

/// What recomputation has made of a plan. Times are picoseconds of one step on one core, by the cost model.
struct Recomputation {
  int64_t time = 0, plainTime = 0; ///< with it, and without it
  int64_t leastTime = 0;           ///< below which no plan within the budget can be
  int64_t leastBytes = 0;          ///< below which no schedule can be
  int64_t repeated = 0;            ///< steps that run a second time
};

/// A point of the curve of memory against time.
struct BudgetPoint {
  uint64_t budget = 0, transient = 0; ///< asked for, and taken
  double addedTime = 0,
         boundTime = 0; ///< shares of the time without recomputation; no plan adds less than the latter
  bool isPossible = false;
};

struct MemoryPlan {
  std::string entry;                                     ///< "train/default"
  uint64_t bytes = 0;                                    ///< transient, scratch included
  uint64_t maxLive = 0, orderBound = 0, sourceOrder = 0; ///< of the plan, which entries with segments share
  std::vector<PlannedStep> steps;
  std::vector<PlannedBuffer> buffers; ///< by offset, then by first step
  std::optional<Recomputation> recomputation;
  std::vector<BudgetPoint> curve; ///< empty where nobody asked for it

  /// The first step with the most bytes in use; 0 when there is no step.
  size_t findPeak() const;
  /// Buffers that `step` needs, the largest first.
  std::vector<const PlannedBuffer *> findAlive(size_t step) const;
};

/// "train/default".
std::string entryName(plan::ProgramOp program, const CompileOptions &options);

/// `entry`: the name that the artifact's entry has.
MemoryPlan describeMemory(plan::ProgramOp program, const std::string &entry);

/// What the entries of a module share.
struct SharedMemory {
  uint64_t persistent = 0, constants = 0;
  uint32_t workers = 1; ///< the most that a session may use
};

SharedMemory describeShared(mlir::ModuleOp module, uint32_t workers);

} // namespace ortc::report
