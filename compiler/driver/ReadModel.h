// The phase `import`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/driver/Compiled.h"
#include "compiler/driver/Diagnostics.h"
#include "compiler/frontend/QuantizedBase.h"
#include "compiler/options/CompileOptions.h"

#include <functional>
#include <optional>

namespace ortc::driver {

/// What later phases need of the file.
struct ModelFacts {
  std::shared_ptr<const frontend::Model> written; ///< what `ortc export` gives
  std::optional<NamePattern> trainable, frozen;   ///< of the model's metadata
  std::vector<NamePattern> detached;              ///< initializers that no gradient goes to
  std::optional<NamePattern> adapters;            ///< the factors of --lora
  frontend::PackedWeights packed;                 ///< what --base quantises
  std::optional<NamePattern> scales;              ///< those that --qat learns
  std::optional<NamePattern> teacher;             ///< initializers of --teacher, which are constants
};

/// The outputs, or the values, that the options say losses are computed from.
std::vector<std::string> namedLossInputs(const CompileOptions &options);

/// Reads the model, shares and parts its initializers as the options say, and imports the graph: `model`, `source`,
/// facts and notes of `compiled`. The loss that --teacher adds is then among those of the options.
Status readModel(CompileOptions &options, const Diagnostics &diagnostics,
                 const std::function<Status(const frontend::Model &)> &afterReading, Compiled &compiled,
                 ModelFacts &facts);

} // namespace ortc::driver
