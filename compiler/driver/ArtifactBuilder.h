// A placed program as an artifact's tables.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/artifact/Artifact.h"
#include "compiler/driver/KernelCompiler.h"
#include "compiler/options/CompileOptions.h"

#include <set>
#include <string>

namespace ortc::driver {

/// Fills everything but manifest and source. `initializers` are the names of the model's initializers. False when a
/// tensor's data cannot be read; `error` says which.
bool buildArtifact(mlir::ModuleOp module, const CompileOptions &options, const ProgramKernels &kernels,
                   const std::vector<TargetCode> &codes, const std::set<std::string> &initializers,
                   artifact::Artifact &artifact, std::string &error);

} // namespace ortc::driver
