// The passes of each phase, in order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Phases that need more than a module (a file, flags, a target) are functions that the driver calls between these.
#pragma once

#include "compiler/kernels/FusionLimits.h"
#include "compiler/kernels/TrainingLimits.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"

#include <cstdint>
#include <string>

namespace ortc::pipeline {

/// Inlines calls of model-local functions of an imported graph.
void buildImport(mlir::OpPassManager &passes);

/// Cleans up what legalisation left, and lets transposes meet.
void buildSimplify(mlir::OpPassManager &passes);

/// Computes attention of at least `least` scores a head in tiles of `rows` rows, 0 for by their size, within the limits
/// of a family.
void buildAttention(mlir::OpPassManager &passes, int64_t least, int64_t rows,
                    const kernels::TrainingLimits &limits);

/// Computes of gradients what is trained.
void buildRaise(mlir::OpPassManager &passes);

/// Rounds what products read and give to `type` (bf16 or f16): of forward functions, and once they are `differentiated`
/// of the rest.
void buildNarrow(mlir::OpPassManager &passes, llvm::StringRef type, bool differentiated);

/// Cleans up composed entries, and makes tensors of their constants.
void buildEntries(mlir::OpPassManager &passes);

/// Gives every tensor its place: what all families of targets have in common.
void buildRegions(mlir::OpPassManager &passes);

/// Cuts the entries into kernels, within the limits of a family. `narrow`: the type for what they keep for their
/// backward part, bf16 or f16; empty: as it is.
void buildFuse(mlir::OpPassManager &passes, const kernels::FusionLimits &limits, llvm::StringRef narrow = "");

/// Makes kernels functions of their own: what a backend surveys. Updates are joined within the limits of a family.
void buildOutline(mlir::OpPassManager &passes, const kernels::FusionLimits &limits);

struct PlaceOptions {
  uint64_t budget = UINT64_MAX; ///< most bytes of the transient region of any entry
  bool curve = false;           ///< also notes what smaller budgets would cost
  std::string ofUpdates;        ///< what the refusal of an entry with updates says besides
  std::string unit;             ///< that the budget was given in
};

/// Orders the steps and places their buffers. Kernels say before what time and scratch they take.
void buildPlace(mlir::OpPassManager &passes, const PlaceOptions &options);

/// Registers each as `--ortc-pipeline=NAME` (import, simplify, entries, fuse, outline, place) with ortc-opt.
void registerPipelines(mlir::DialectRegistry &registry);

} // namespace ortc::pipeline
