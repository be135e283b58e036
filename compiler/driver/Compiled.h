// What the compiler has made of a model.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/artifact/Artifact.h"
#include "compiler/artifact/OutputFolder.h"
#include "compiler/driver/FindTargets.h"
#include "compiler/frontend/Model.h"
#include "compiler/kernels/ProgramKernels.h"
#include "compiler/report/Manifest.h"
#include "compiler/report/Reports.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

#include <memory>
#include <string>
#include <vector>

namespace ortc::driver {

/// The program as one family of targets runs it.
struct FamilyProgram {
  FamilyTargets family;
  std::string name;        ///< of the family; empty where there is only one
  std::string entrySuffix; ///< "@NAME" for families after the first: no two entries have one name
  mlir::OwningOpRef<mlir::ModuleOp>
      ir; ///< what becomes of it: from simplify on where limits differ, else from fuse on
  kernels::ProgramKernels kernels; ///< place
  /// code: one for each target.
  std::vector<std::unique_ptr<backends::TargetCode>> codes;
};

/// Everything that is known after the last phase that ran: what a phase makes is empty before it.
struct Compiled {
  std::unique_ptr<mlir::MLIRContext> context;   ///< of the modules
  std::shared_ptr<const frontend::Model> model; ///< the graph that was compiled
  mlir::OwningOpRef<mlir::ModuleOp> source;     ///< import: the graph
  mlir::OwningOpRef<mlir::ModuleOp>
      program; ///< from legalize on: what becomes of it, as long as families share it
  /// differentiate: forward, loss and backward functions of the first family; null unless CompileExtras::keepsParts.
  mlir::OwningOpRef<mlir::ModuleOp> parts;
  std::vector<FamilyProgram> families; ///< never empty; their programs take over from `program`
  report::CompileFacts facts;          ///< warnings among them
  std::vector<std::string> notes;      ///< what a user should know, but need not change
  std::vector<report::PhaseTime> phases;
  artifact::Artifact artifact; ///< after the last phase; views what the modules have
  std::vector<artifact::OutputFile>
      linked; ///< what programs are linked with, where options ask for it, likewise

  /// Writes model.ortc, after the last phase. Refuses what runtimes would refuse; fails where a file that constants are
  /// views of has changed.
  Status writeFile(artifact::ByteSink &sink) const;
  /// The same to a folder, with the manifest and what programs are linked with; OutputFolder::commit() comes after it.
  Status writeTo(artifact::OutputFolder &folder) const;

  /// The graph, the program, or the program of each family: what the last phase left.
  std::vector<mlir::ModuleOp> getIR();
};

} // namespace ortc::driver
