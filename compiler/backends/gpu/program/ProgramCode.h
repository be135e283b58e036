// All kernels of a module for one GPU, and the section of the artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/Backend.h"
#include "compiler/backends/gpu/KernelBuilder.h"

namespace ortc::gpu {

/// Seconds of a launch that does nothing.
inline constexpr double kLaunchSeconds = 3e-6;

/// Seconds of a kernel, by a table.
double estimateSeconds(const kernels::KernelWork &work, bool isDouble, const Processor &processor);

/// Backend::Target::survey.
Status annotateKernels(mlir::ModuleOp module, const Processor &processor,
                       const backends::CodeOptions &options);

/// Backend::Target::link.
Expected<backends::TargetCode> compilePrograms(mlir::ModuleOp module, const kernels::ProgramKernels &kernels,
                                               const Processor &processor,
                                               const backends::CodeOptions &options);

} // namespace ortc::gpu
