// Messages on stderr.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string_view>

namespace ortc {

/// Writes "ortc: KIND: TEXT" as a line to stderr, after what stdout has. Characters that do not show are question
/// marks; the middle of a text of more than 8,000 bytes, which is a value that somebody gave, is left out.
void printMessage(const char *kind, std::string_view text);

} // namespace ortc
