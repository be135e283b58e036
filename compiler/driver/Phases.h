// The phases of the compiler; their table is in Compile.cpp, beside what they run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstddef>

namespace ortc::driver {

/// The place in the order in which phases run; their number where no phase has the name.
size_t findPhase(llvm::StringRef name);

/// The work of a phase that there is, for people who wait: "fusing kernels".
const char *describePhase(llvm::StringRef name);

} // namespace ortc::driver
