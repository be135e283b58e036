// What the two targets for models share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/Model.h"
#include "test/fuzz/Target.h"

namespace ortc::fuzz {

/// The checked model, or null. Limits are those of a small machine, so that a run is short.
std::shared_ptr<const frontend::Model> readModel(Input file);

} // namespace ortc::fuzz
