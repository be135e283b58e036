// Formats of object files.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace ortc {

/// `--object`: of the archive of a model that is linked into programs.
enum class ObjectFormat { Elf, MachO, Coff };

} // namespace ortc
