// LLVM's linker, in this process.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/Expected.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ortc::emit {

enum class LinkerFlavour { Elf, WebAssembly };

/// Links objects with `flags`. The linker takes and writes files: they are in a TemporaryFolder while it runs. One link
/// at a time. Fails with what the linker says.
Expected<std::vector<uint8_t>> runLinker(LinkerFlavour flavour, const std::vector<std::string> &flags,
                                         llvm::ArrayRef<llvm::StringRef> objects);

} // namespace ortc::emit
