// No operating system: memory comes from the host, and code runs where it is, in flash or wherever it was linked to.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"
#include "runtime/src/sha256.h"

namespace ortc {

void unmapFile(const FileMapping &) {}
void forgetPages(const FileMapping &) {}

/// A host without `allocate` has no memory.
void *allocatePages(size_t) { return nullptr; }
void releasePages(void *, size_t) {}

Error loadCode(ortc_program *program, const uint8_t *bytes, const ortc_file_section &section) {
  program->code = bytes;
  program->code_bytes = section.bytes;
  return hasDigest(bytes, section.bytes, section.sha256) ? kNoError : kDamaged;
}

} // namespace ortc
