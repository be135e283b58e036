// No operating system: memory comes from the hooks of the host alone, and code is linked to the program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"
#include "runtime/src/sha256.h"

namespace ortc {

void unmapFile(const MappedFile &) {}
void forgetPages(const MappedFile &) {}
void *allocatePages(size_t) { return nullptr; }
void releasePages(void *, size_t) {}

/// What there is of it says only which function an entry is: it is used where it lies.
Error loadCode(ortc_program *program, const uint8_t *bytes, const ortc_file_section &section) {
  program->code = bytes;
  program->code_bytes = section.bytes;
  return hasDigest(bytes, section.bytes, section.sha256) ? kNoError : kDamaged;
}

} // namespace ortc

extern "C" {

uint32_t ortc_host_architecture(void) {
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
  return ORTC_ARCH_CORTEX_M;
#else
  return ORTC_ARCH_NONE;
#endif
}

uint64_t ortc_host_features(void) { return 0; }
}
