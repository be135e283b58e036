// One parameter of several initializers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/SharedInitializers.h"

namespace ortc::frontend {

/// Makes one parameter of the copies that are one (CopiedInitializers.h) and of what --tie says, and several
/// of what --untie says. Replaces `model` by an edited copy where there is something to do.
Status tieAndUntie(std::shared_ptr<const Model> &model, const SharingOptions &options, SharingReport &report);

} // namespace ortc::frontend
