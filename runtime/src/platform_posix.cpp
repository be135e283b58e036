// POSIX: memory, and memory that is executed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/src/sha256.h"

namespace ortc {

void forgetPages(const FileMapping &file) { madvise((void *)file.data, file.bytes, MADV_DONTNEED); }

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

/// Where memory may not become executable (execmem of SELinux, MemoryDenyWriteExecute of systemd), a file may be that
/// nobody can write to: it takes the place of `memory`, with the same bytes.
static bool mapSealed(char *memory, size_t bytes) {
#if defined(__linux__) && !defined(__ANDROID__) // whose C library has it from another level on
  int file = memfd_create("", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Without jumps, which take space: what fails makes the rest fail or is not looked at.
  int isBad = write(file, memory, bytes) != (ssize_t)bytes;
  isBad |= fcntl(file, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  isBad |= mmap(memory, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED;
  close(file);
  return !isBad;
#else
  (void)memory, (void)bytes;
  return false;
#endif
}

// Never the file's own pages: those may change after they were hashed. Writable and executable never at once; hashed
// when it is as it stays.
Error loadCode(ortc_program *program, const uint8_t *bytes, const ortc_file_section &section) {
  char *memory = (char *)allocatePages(section.bytes);
  program->code = memory; // closing the program releases it, whatever happens
  program->code_bytes = section.bytes;
  if (!memory)
    return kNoMemory;
  memcpy(memory, bytes, section.bytes);
  __builtin___clear_cache(memory, memory + section.bytes);
  bool isCalled = !((uintptr_t)program->host.device | (uintptr_t)program->functions);
  int access = PROT_READ | PROT_EXEC * isCalled;
  if (mprotect(memory, section.bytes, access) && !mapSealed(memory, section.bytes))
    return kNotExecutable;
  return hasDigest(memory, section.bytes, section.sha256) ? kNoError : kDamaged;
}

} // namespace ortc
