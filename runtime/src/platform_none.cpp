// No operating system: memory comes from the host, and code runs where it is, in flash or wherever it was linked to.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"
#include "runtime/src/sha256.h"

namespace ortc {

void unmapFile(const MappedFile &) {}
void forgetPages(const MappedFile &) {}

/// A host without `allocate` has no memory.
void *allocatePages(size_t) { return nullptr; }
void releasePages(void *, size_t) {}

Error loadCode(ortc_program *program, const uint8_t *bytes, const ortc_file_section &section) {
  program->code = bytes;
  program->code_bytes = section.bytes;
  return hasDigest(bytes, section.bytes, section.sha256) ? kNoError : kDamaged;
}

} // namespace ortc

extern "C" {

uint32_t ortc_host_architecture(void) {
#if defined(__arm__) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
  return ORTC_ARCH_CORTEX_M;
#elif defined(__aarch64__)
  return ORTC_ARCH_AARCH64;
#elif defined(__riscv) && __riscv_xlen == 64
  return ORTC_ARCH_RISCV64;
#else
  return ORTC_ARCH_NONE;
#endif
}

/// Those that this file is compiled for.
uint64_t ortc_host_features(void) {
  uint64_t features = 0;
#if defined(__ARM_FP) && __ARM_ARCH_PROFILE == 'M'
#if __ARM_ARCH >= 8
  features |= ORTC_CORTEX_M_V8;
#endif
#if __ARM_FP & 8
  features |= ORTC_CORTEX_M_FP64;
#endif
#if defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE & 2
  features |= ORTC_CORTEX_M_MVE;
#endif
#elif defined(__riscv_vector)
  features |= ORTC_RISCV_V;
#endif
  return features;
}
}
