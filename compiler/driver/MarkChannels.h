// Which output channels are trained.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/options/CompileOptions.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>

namespace ortc::driver {

/// Marks parameters of `program` of which `--train REGEX:channels=` trains a part, and gives the elements that are
/// trained of each. `source` is the imported graph. Refuses parameters that have no output channels.
Expected<std::map<std::string, int64_t>> markChannels(mlir::ModuleOp source, mlir::ModuleOp program,
                                                      const CompileOptions &options);

} // namespace ortc::driver
