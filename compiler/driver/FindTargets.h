// The targets that --target names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/Target.h"
#include "compiler/options/CompileOptions.h"

#include <string>
#include <vector>

namespace ortc::driver {

/// Adds what the options name to `targets`, each once, for as many workers as the options say. False with
/// `error` where a name is not known, or where code must be measured (`measures`) that this machine cannot
/// run.
bool findTargets(const CompileOptions &options, bool measures, std::vector<cpu::Target> &targets,
                 std::string &error);

} // namespace ortc::driver
