//===- MissingMemory.h - the end where memory runs out --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_TOOLS_ORTC_MISSINGMEMORY_H
#define ORTC_TOOLS_ORTC_MISSINGMEMORY_H

namespace ortc::tool {

/// From now on what std::terminate finds missing, memory or a thread, ends the process with a message and status 1.
void endOnMissingMemory();

/// From now on the first allocation of any library that fails ends it in the same way. For commands that compile: LLVM and MLIR
/// are built without exceptions and use much of what malloc gives unseen; an exception that passes through them leaves locks behind.
void endOnFailedAllocation();

} // namespace ortc::tool

#endif // ORTC_TOOLS_ORTC_MISSINGMEMORY_H
