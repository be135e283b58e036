// Windows: memory, and memory that is executed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "runtime/src/sha256.h"

namespace ortc {

/// Takes pages that are not locked out of the working set.
void forgetPages(const FileMapping &file) { VirtualUnlock((void *)file.data, file.bytes); }

void *allocatePages(size_t bytes) {
  return VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void releasePages(void *memory, size_t) { VirtualFree(memory, 0, MEM_RELEASE); }

// Never the file's own pages: those may change after they were hashed. Writable and executable never at once.
Error loadCode(ortc_program *program, const uint8_t *bytes, const ortc_file_section &section) {
  void *memory = allocatePages(section.bytes);
  program->code = memory; // closing the program releases it, whatever happens
  program->code_bytes = section.bytes;
  if (!memory)
    return kNoMemory;
  memcpy(memory, bytes, section.bytes);
  if (!hasDigest(memory, section.bytes, section.sha256))
    return kDamaged;
  DWORD before, access = program->host.device || program->functions ? PAGE_READONLY : PAGE_EXECUTE_READ;
  if (!VirtualProtect(memory, section.bytes, access, &before))
    return kNotExecutable;
  FlushInstructionCache(GetCurrentProcess(), memory, section.bytes);
  return kNoError;
}

} // namespace ortc
