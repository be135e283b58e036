// What the compiler has made of a model.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/artifact/Artifact.h"
#include "compiler/backends/cpu/program/KernelCompiler.h"
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

/// Everything that is known after the last phase that ran: what a phase makes is empty before it.
struct Compiled {
  std::unique_ptr<mlir::MLIRContext> context;   ///< of the modules
  std::shared_ptr<const frontend::Model> model; ///< the graph that was compiled
  mlir::OwningOpRef<mlir::ModuleOp> source;     ///< import: the graph
  mlir::OwningOpRef<mlir::ModuleOp> program;    ///< legalize to code: what becomes of it
  /// differentiate: forward, loss and backward functions; null unless CompileExtras::keepsParts.
  mlir::OwningOpRef<mlir::ModuleOp> parts;
  report::CompileFacts facts;         ///< warnings among them
  std::vector<std::string> notes;     ///< what a user should know, but need not change
  kernels::ProgramKernels kernels;    ///< place
  std::vector<cpu::TargetCode> codes; ///< code: one for each target
  std::vector<report::PhaseTime> phases;
  artifact::Artifact artifact; ///< after the last phase
  artifact::Bytes file;        ///< the contents of model.ortc, likewise

  /// The program, or the graph while there is none.
  mlir::ModuleOp getIR() { return program && !program->getBody()->empty() ? *program : *source; }
};

} // namespace ortc::driver
