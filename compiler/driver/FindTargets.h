// The targets that --target names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/Backend.h"
#include "compiler/options/CompileOptions.h"

#include <memory>
#include <vector>

namespace ortc::driver {

/// The targets of one family, in the order in which the loader prefers them, most capable last.
struct FamilyTargets {
  const backends::Backend *backend = nullptr;
  std::vector<std::unique_ptr<backends::Target>> targets; ///< at least one

  /// That of backends::Target which all have: they share a program. 0 where scores are wanted in memory.
  int64_t attentionParts(const CompileOptions &options) const;
  /// The same.
  bool hasAttention(const kernels::AttentionForm &form) const;
};

/// What the options name, each target once, for as many workers as the options say; families in the order in which
/// they were named. Refuses a name that none of `known` has, a target that this machine cannot run where code must be
/// measured (`measures`), and an assembler that no target takes.
Expected<std::vector<FamilyTargets>> findTargets(const CompileOptions &options, bool measures,
                                                 const std::vector<const backends::Backend *> &known);

} // namespace ortc::driver
