// Checks that end a step: indices out of range, a loss that is not finite.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"

namespace ortc::gpu {

/// Adds the launch of an index check. One block copies the indices, with a valid one in place of each that is out of
/// range; the lowest position of those goes into the status block, where that is still good.
void generateCheck(KernelBuilder &kernel, mlir::func::FuncOp function, const GeneratorOptions &options);

/// Makes `func.func @symbol(%loss, %status)`: writes that the loss is not finite, where the host wants to know and the
/// status is still good. One thread.
void createGuard(mlir::ModuleOp module, llvm::StringRef symbol, mlir::FloatType loss,
                 const Processor &processor);

} // namespace ortc::gpu
