// A placed program as an artifact's tables.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/artifact/Artifact.h"
#include "compiler/kernels/ProgramKernels.h"
#include "compiler/options/CompileOptions.h"
#include "support/Expected.h"

#include <set>
#include <string>
#include <vector>

namespace ortc::artifact {

/// A program as one family of targets runs it, with its code.
struct PlacedProgram {
  PlacedProgram(mlir::ModuleOp ir, const kernels::ProgramKernels &kernels, std::string entrySuffix)
      : ir(ir), kernels(kernels), entrySuffix(std::move(entrySuffix)) {}

  mlir::ModuleOp ir;
  const kernels::ProgramKernels &kernels;
  std::string entrySuffix; ///< of the names of its entries
  std::vector<Code> codes;
};

/// Everything but manifest and source. `programs`, at least one, have the same tensors and entries
/// (driver::checkFamily). Where there are several, every code has entries of its own. `initializers` are the names of
/// the model's initializers. Refuses a tensor whose data cannot be read.
Expected<Artifact> buildArtifact(const std::vector<PlacedProgram> &programs, const CompileOptions &options,
                                 const std::set<std::string> &initializers);

} // namespace ortc::artifact
