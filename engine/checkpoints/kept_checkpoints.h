// The last checkpoints of a training, beside the newest one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/OutputPaths.h"
#include "support/Status.h"

namespace ortc::engine {

/// "a.safetensors" of step 20: "a.step-20.safetensors".
std::string nameKept(const std::string &path, int64_t step);

/// Refuses files that have such a name of `path`, whatever the step, so that they may be replaced or removed.
Status checkKeptNames(const std::string &path, const std::vector<NamedFile> &files);

/// Gives the checkpoint at `path`, which is of `step`, such a name, too, and removes the oldest ones until `most` are
/// there, but never `spared`, nor those of later steps, which another training has left. No bytes are copied where the
/// file system has links.
Status keepCheckpoint(const std::string &path, int64_t step, int64_t most, const std::string &spared);

} // namespace ortc::engine
