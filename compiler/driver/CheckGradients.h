// Gradients of a model against differences.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/options/CompileOptions.h"

#include <optional>

namespace ortc::driver {

enum class CheckAgainst {
  Differences, ///< gradients against central differences of the loss: is every rule right?
  Evaluator,   ///< outputs, loss and gradients against the compiler's evaluator: is the generated code right?
};

struct CheckOptions {
  /// The model and its flags. `model` may be an artifact (or its folder): then its graph, weights and flags
  /// are taken, and the flags here are to be left alone. Output, precision, targets and entries are chosen by
  /// the check.
  CompileOptions compile;
  std::string data; ///< empty: random inputs
  std::string load; ///< of an artifact: a checkpoint
  CheckAgainst against = CheckAgainst::Differences;
  std::optional<double> tolerance; ///< relative; none: 1e-5 for differences, 1e-9 for the evaluator
};

/// Compiles the model in float64 and compares what the generated code gives with central differences, or with the
/// evaluator. Prints a table on stdout. Returns the exit status: 0 all are right, 1 some are not or it failed
/// while running, 2 the model or the flags are refused.
int checkGradients(const CheckOptions &options);

} // namespace ortc::driver
