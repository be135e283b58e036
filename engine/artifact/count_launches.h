// How many launches a step is on a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/artifact/Artifact.h"

#include <optional>

namespace ortc::engine {

/// Launches of the entry of that role and binding, every iteration of loops counted; none where `code` is not for a
/// device, has no such entry or is damaged.
std::optional<uint64_t> countLaunches(const artifact::Code &code, uint32_t role, uint32_t binding);

} // namespace ortc::engine
