// Failures of the runtime as exceptions of Python.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <ortc/ortc.h>
#include <string>

#include "support/Status.h"

namespace ortc::python {

/// Throws the class that ortc/_errors.py has for a status. The GIL is held.
[[noreturn]] void raise(ortc_status status, const std::string &text);

/// Nothing for ORTC_OK. Texts of the runtime are "" where a look-up has failed: then `otherwise` says it.
inline void check(ortc_status status, const char *text, const std::string &otherwise = "") {
  if (status != ORTC_OK)
    raise(status, text[0] ? text : otherwise + ": " + ortc_status_name(status));
}

/// A failure of the engine: what it refuses is an ArgumentError, what fails is of the class of `failure`. Flags of
/// `ortc` that a message names are keyword arguments here: "--save-every" is "save_every". `front` begins the text.
void check(const Status &status, ortc_status failure = ORTC_E_FORMAT, const std::string &front = "");

/// A text of the engine with flags as keyword arguments.
std::string nameArguments(const std::string &text);

} // namespace ortc::python
