// The command `ortc run`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <csignal>

#include "engine/training/train_options.h"

namespace ortc::engine {

/// Trains. When `interrupted` becomes nonzero the loop ends after the step in progress, saves as at the end,
/// and returns fine. A failure that is not the loss's saves what was trained before it, too; whatever happens, the last
/// complete checkpoint is there, and nothing half-written.
Status train(const TrainOptions &options, const volatile std::sig_atomic_t &interrupted);

} // namespace ortc::engine
