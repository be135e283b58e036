// What a checkpoint has and an artifact lacks, or the other way round.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <ortc/ortc.h>
#include <string>

#include "engine/artifact/artifact.h"
#include "engine/data/data_source.h"

namespace ortc::engine {

/// The message for a checkpoint that the runtime has refused with `status` and `message`: what it does not
/// say, as a library of a few KiB, is shapes, types and what to do.
std::string explainRefusal(const Artifact &artifact, const DataSource &checkpoint, ortc_status status,
                           const std::string &message);

/// Says how many tensors the program has no use for, when there is optimizer state among them, or gradients
/// that wait for an update; else "".
std::string describeUnused(const ortc_program *program, const DataSource &checkpoint);

/// Values of hyper-parameters by name.
using Scalars = std::map<std::string, double>;

/// Those of a session, without the learning rate, which has flags of its own.
Scalars readScalars(const ortc_program *program, ortc_session *session);
/// Says which of them a checkpoint has changed; "" when it has changed none.
std::string describeChanges(const std::string &path, const Scalars &before, const Scalars &after);

} // namespace ortc::engine
