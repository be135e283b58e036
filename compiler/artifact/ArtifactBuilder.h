// A placed program as an artifact's tables.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/artifact/Artifact.h"
#include "compiler/kernels/ProgramKernels.h"
#include "compiler/options/CompileOptions.h"

#include <set>
#include <string>

namespace ortc::artifact {

/// Fills everything but code, manifest and source. `initializers` are the names of the model's initializers. False when
/// a tensor's data cannot be read; `error` says which.
bool buildArtifact(mlir::ModuleOp module, const CompileOptions &options,
                   const kernels::ProgramKernels &kernels, const std::set<std::string> &initializers,
                   Artifact &artifact, std::string &error);

} // namespace ortc::artifact
