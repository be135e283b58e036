// Names of roles in checkpoints.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stdint.h>

#include "ortc/format.h"

/// Values of "ortc.role.NAME" in checkpoints, each terminated; parameters, which are most, have none. A literal: arrays
/// take more of the library's 16 KiB.
#define ORTC_SAVED_ROLES "state\0scalar\0buffer"

namespace ortc {

/// Where ORTC_SAVED_ROLES has the role of a state or scalar: a state that is in the model is a buffer.
inline uint32_t findSavedRole(uint32_t role, uint32_t flags) {
  return flags & ORTC_TENSOR_IN_MODEL ? 2 : role - ORTC_ROLE_STATE;
}

} // namespace ortc
