// An object of a GPU's code as a shared object.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/Expected.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ortc::gpu {

/// Links an ELF object by LLVM's linker in this process, which takes and writes files: they are in a TemporaryFolder
/// while it runs. One link at a time.
Expected<std::vector<uint8_t>> linkSharedObject(const std::string &object);

} // namespace ortc::gpu
