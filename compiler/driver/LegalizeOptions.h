// The options of the phase `legalize`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/driver/ReadModel.h"
#include "compiler/legalize/Legalize.h"
#include "compiler/options/CompileOptions.h"

namespace ortc::driver {

/// Flags win over what the model's metadata says. `binding`: its number among those of the options.
legalize::LegalizeOptions makeLegalizeOptions(const CompileOptions &options, const ModelFacts &model,
                                              unsigned binding, legalize::Mode mode);

} // namespace ortc::driver
