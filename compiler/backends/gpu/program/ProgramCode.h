// All kernels of a module for one GPU, and the section of the artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/Backend.h"
#include "compiler/backends/gpu/KernelBuilder.h"
#include "compiler/kernels/SumOrder.h"

namespace ortc::gpu {

/// Seconds of a launch that does nothing.
inline constexpr double kLaunchSeconds = kernels::ReferenceGpu::kLaunchCycles / kernels::ReferenceGpu::kClock;

/// Seconds of a kernel whose launches are not known, by a table.
double estimateSeconds(const kernels::KernelWork &work, bool isDouble, const Processor &processor);

/// Seconds of a kernel by its launches: products as they are cut (product/ProductCut.h), others by the bytes that so
/// many threads have on their way at once.
double estimateSeconds(const GpuKernel &kernel, const kernels::KernelWork &work, bool isDouble,
                       const Processor &processor);

/// Backend::Target::survey.
Status annotateKernels(mlir::ModuleOp module, const Processor &processor,
                       const backends::CodeOptions &options);

/// Backend::Target::link.
Expected<backends::TargetCode> compilePrograms(mlir::ModuleOp module, const kernels::ProgramKernels &kernels,
                                               const Processor &processor,
                                               const backends::CodeOptions &options);

} // namespace ortc::gpu
