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
  std::map<std::string, std::optional<bool>> labels;          ///< of the labels that losses add, by name
  std::map<std::string, size_t> axes; ///< of outputs that have the batch along one other dimension: which one
};

/// The label that a loss adds.
struct LabelSource {
  std::string name, output;           ///< of the label; of what feeds the loss
  std::optional<int64_t> droppedAxis; ///< of the output: the axis that the label lacks, if any
};

/// `source` is the imported graph.
BatchFacts findBatch(mlir::ModuleOp source, const std::vector<LabelSource> &labels);

} // namespace ortc::report
