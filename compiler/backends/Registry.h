// The families of machines that there are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/Backend.h"

namespace ortc::backends {

/// All of them, in the order in which targets are looked up.
std::vector<const Backend *> listBackends();

} // namespace ortc::backends
