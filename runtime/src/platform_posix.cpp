// POSIX: memory, and memory that is executed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

#include <sys/mman.h>

#include "runtime/src/sha256.h"

namespace ortc {

void forgetPages(const MappedFile &file) { madvise((void *)file.data, file.bytes, MADV_DONTNEED); }

void *allocatePages(size_t bytes) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
#if defined(MADV_HUGEPAGE)
  madvise(memory, bytes, MADV_HUGEPAGE); // a wish
#endif
  return memory;
}

void releasePages(void *memory, size_t bytes) { munmap(memory, bytes); }

// Never the file's own pages: those may change after they were hashed. Writable and executable never at once.
Error loadCode(ortc_program *program, const uint8_t *bytes, const ortc_file_section &section) {
  char *memory = (char *)allocatePages(section.bytes);
  program->code = memory; // closing the program releases it, whatever happens
  program->code_bytes = section.bytes;
  if (!memory)
    return kNoMemory;
  memcpy(memory, bytes, section.bytes);
  if (!hasDigest(memory, section.bytes, section.sha256))
    return kDamaged;
  __builtin___clear_cache(memory, memory + section.bytes);
  int access = program->host.device || program->functions ? PROT_READ : PROT_READ | PROT_EXEC;
  return mprotect(memory, section.bytes, access) ? kNotExecutable : kNoError;
}

} // namespace ortc
