// Gradients of a model against differences.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/options/CompileOptions.h"
#include "support/Status.h"

#include <optional>
#include <string>
#include <vector>

namespace ortc::check {

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

struct CheckResult {
  std::vector<std::string> notes, warnings; ///< of the compilation
  std::string table;                        ///< what was compared, and what to suspect
  bool isGood = false;                      ///< all are right
};

/// Compiles the model in float64 and compares what the generated code gives with central differences, or with the
/// evaluator. Refuses a model or flags; fails where a file or memory does. `result` has what was found until then.
Status checkGradients(const CheckOptions &options, CheckResult &result);

} // namespace ortc::check
