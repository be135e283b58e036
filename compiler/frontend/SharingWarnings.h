// What nothing in the file decides.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/SharedInitializers.h"

namespace ortc::frontend {

/// Reports initializers that norms share and that may have been merged, copies of embeddings, what was
/// computed from parameters and is trained in their place, and parameters of the exported program that are
/// not in the file.
void warnOfSharing(const Model &model, SharingReport &report);

} // namespace ortc::frontend
