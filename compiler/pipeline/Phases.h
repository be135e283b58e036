// The phases of the compiler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace ortc::pipeline {

struct Phase {
  const char *name; ///< as `--compile-to` and `--dump-ir` have it
  const char *work; ///< what it does, for people who wait: "fusing kernels"
};

/// All of them, in the order in which they run.
llvm::ArrayRef<Phase> getPhases();

/// The place in that order; the number of phases where no phase has the name.
size_t findPhase(llvm::StringRef name);

} // namespace ortc::pipeline
