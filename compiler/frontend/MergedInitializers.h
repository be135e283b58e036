// Parameters stored once for many.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/SharedInitializers.h"

namespace ortc::frontend {

/// Gives nodes that read a parameter which an exporter merged with an equal one their own again, and
/// convolutions the bias of zeros that it dropped. Replaces `model` by an edited copy where there is one.
Status restoreMerged(std::shared_ptr<const Model> &model, const SharingOptions &options,
                     SharingReport &report);

} // namespace ortc::frontend
