// Where the file of an artifact is.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "support/Status.h"

namespace ortc::engine {

/// The file of the artifact at `path`, which is a folder with `model.ortc` in it, or that file. Fails with what would
/// make it exist where there is none.
Status findArtifactFile(const std::string &path, std::string &file);

} // namespace ortc::engine
