// From a module of kernels to code of a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/Processor.h"
#include "compiler/options/Numerics.h"
#include "mlir/IR/BuiltinOps.h"
#include "support/Expected.h"

#include <string>
#include <vector>

namespace ortc::backends {
class KernelCache;
}

namespace ortc::gpu {

/// Lowers `module`, whose launched functions are marked `ortc.threads`, and emits it: PTX as text without its head, or
/// bitcode for AMD. Denormal numbers of f32 are zeros where `denormalsAreZero`; those of f64 are numbers: GPUs have no
/// mode for them. Fails where something outside the module is called. `cache`: of code that LLVM has made before, or
/// null.
Expected<std::string> emitDeviceCode(mlir::ModuleOp module, const Processor &processor, Numerics numerics,
                                     backends::KernelCache *cache = nullptr);

/// One image of what emitDeviceCode made, piece by piece: PTX text with its NUL, or a shared object.
Expected<std::vector<uint8_t>> linkDeviceCode(const std::vector<std::string> &pieces,
                                              const Processor &processor,
                                              backends::KernelCache *cache = nullptr);

} // namespace ortc::gpu
