// What the project adds to ortc-opt.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/DialectRegistry.h"

namespace ortc::opt {

/// Registers the project's dialects, passes and extensions. The build writes the definition.
void registerProject(mlir::DialectRegistry &registry);

} // namespace ortc::opt
