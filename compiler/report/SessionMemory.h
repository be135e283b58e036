// The memory of a session of a planned program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

namespace ortc::report {

/// Bytes, as ortc_session_sizes has them; constants may stay in flash.
struct SessionMemory {
  uint64_t persistent = 0, constants = 0, transient = 0;
};

} // namespace ortc::report
