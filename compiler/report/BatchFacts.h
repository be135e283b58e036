// Which leading dimensions are the batch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/options/CompileOptions.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <optional>

namespace ortc::report {

/// What the model declares of leading dimensions: whether they are the batch, so that rows are samples;
/// nullopt where it does not say.
struct BatchFacts {
  std::string
      input; ///< the first one whose leading dimension has a symbol, which is the batch; "": none has, nothing is known
  std::map<std::string, std::optional<bool>> inputs, outputs; ///< of the graph, by name
  std::optional<bool> label;                                  ///< of the label that the loss adds
};

/// `source` is the imported graph. `lossOutput` feeds the loss; `droppedAxis` of it is the one that the label
/// lacks, if any.
BatchFacts findBatch(mlir::ModuleOp source, const std::string &lossOutput,
                     std::optional<int64_t> droppedAxis);

} // namespace ortc::report
