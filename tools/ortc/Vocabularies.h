// What values of flags are made of, from the tables of the compiler and the tools.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "tools/ortc/flags/Flags.h"

namespace ortc::tool {

Vocabulary describeLosses();
Vocabulary describeOptimizers();
/// Of --schedule; with plateau, of --lr-schedule.
Vocabulary describeSchedules(bool hasPlateau);
Vocabulary describeMetrics();

} // namespace ortc::tool
