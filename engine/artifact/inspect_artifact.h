// What is in an artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include "support/Status.h"

namespace ortc::engine {

/// Prints bindings, entries, memory, targets, tensors and digests. Runs nothing, so that an artifact for
/// another machine can be inspected too.
Status inspectArtifact(const std::string &path);

/// Checks every structure, every digest and the space between sections, also of what no step reads; and the signature
/// by the key in the file `publicKey`, if that is not empty. Prints one line a section, unless quiet.
Status verifyArtifact(const std::string &path, const std::string &publicKey, bool quiet);

} // namespace ortc::engine
