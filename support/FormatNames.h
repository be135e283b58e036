// Names of numbers in the artifact's format (ortc/format.h, ortc/call.h).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <ortc/call.h>
#include <ortc/format.h>

namespace ortc {

/// "parameter", "constant", ...; "unknown" past the end.
inline const char *getTensorRoleName(uint32_t role) {
  static constexpr const char *kNames[ORTC_ROLES] = {"parameter", "constant", "state",    "scalar",
                                                     "input",     "output",   "gradient", "loss"};
  return role < ORTC_ROLES ? kNames[role] : "unknown";
}

/// "train", "eval", ...; "unknown" past the end.
inline const char *getEntryRoleName(uint32_t role) {
  static constexpr const char *kNames[ORTC_ENTRY_ROLES] = {"train",  "eval",       "predict", "gradients",
                                                           "update", "accumulate", "forward", "backward"};
  return role < ORTC_ENTRY_ROLES ? kNames[role] : "unknown";
}

} // namespace ortc
