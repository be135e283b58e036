// The stack of a program, and of its threads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <string>

namespace ortc::engine {

/// Calls `work` where the stack has room for a compiler: on the calling thread, or on one of its own where the limit of
/// the process (ulimit -s) is below that; threads that start from then on have as much. Returns what `work` does; where
/// there is no such thread, `fail` of the reason.
int runWithStack(const std::function<int()> &work, const std::function<int(const std::string &)> &fail);

} // namespace ortc::engine
