// Averages of parameters in place of these.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "host/session.h"

namespace ortc::host {

/// `--weights`: refuses what is no kind of averages. "" stands for the parameters themselves.
Status checkWeightsName(const std::string &name);

/// Copies the averages of a kind ("ema", "swa") that a session has to the parameters that they are of, one after the
/// other; "" copies nothing. Refuses where the artifact has none, or nothing was averaged yet.
Status takeAverages(const Artifact &artifact, Session &session, const std::string &kind);

} // namespace ortc::host
