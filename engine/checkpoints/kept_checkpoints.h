// The last checkpoints of a training, beside the newest one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include "support/Status.h"

namespace ortc::engine {

/// "a.safetensors" of step 20: "a.step-20.safetensors".
std::string nameKept(const std::string &path, int64_t step);

/// Whether `file` has such a name of `path`, whatever the step, so that it may be replaced or removed.
bool isKeptName(const std::string &path, const std::string &file);

/// Gives the checkpoint at `path`, which is of `step`, such a name, too, and removes the oldest ones until `most` are
/// there, but never `spared`, nor those of later steps, which another training has left. No bytes are copied where the
/// file system has links.
Status keepCheckpoint(const std::string &path, int64_t step, int64_t most, const std::string &spared);

} // namespace ortc::engine
