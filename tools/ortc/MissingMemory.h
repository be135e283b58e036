// The end where memory runs out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace ortc::tool {

/// From now on what std::terminate finds missing, memory or a thread, ends the process with a message and status 1.
void endOnMissingMemory();

/// From now on the first allocation of any library that fails ends it in the same way. For commands that
/// compile: LLVM and MLIR are built without exceptions and use much of what malloc gives unseen; an exception
/// that passes through them leaves locks behind.
void endOnFailedAllocation();

} // namespace ortc::tool
