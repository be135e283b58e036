// The values of `--device`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include "support/Status.h"

namespace ortc::host {

/// Takes "cpu", "cuda" (the first GPU) or "cuda:N" apart; refuses everything else.
Status parseDevice(const std::string &name, bool &isCuda, uint32_t &ordinal);

} // namespace ortc::host
