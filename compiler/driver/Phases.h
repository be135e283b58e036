// The names of the phases.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/options/CompileOptions.h"

namespace ortc::driver {

/// Names of the phases that `--compile-to` takes, in order; null at the end.
extern const char *const kPhaseNames[];

/// What each of them does, for people who wait.
extern const char *const kPhaseWork[];

/// Whether `--compile-to`, where it is given, names a phase, and does not end before what else is asked for.
/// `measures`: --tune is given. False with `error`.
bool checkPhase(const CompileOptions &options, bool measures, std::string &error);

} // namespace ortc::driver
