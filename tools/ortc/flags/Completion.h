// Completions of shells.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/Expected.h"
#include "tools/ortc/flags/Flags.h"

namespace ortc::tool {

/// What bash, zsh or fish reads to complete commands, flags and values. Refuses other shells.
Expected<std::string> formatCompletion(const std::string &shell, const std::vector<Command> &commands);

} // namespace ortc::tool
