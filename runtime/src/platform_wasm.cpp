// WebAssembly: memory is what the module's grows by, and code is a module that JavaScript makes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"
#include "runtime/src/sha256.h"

extern "C" {
/// Makes an instance of the module at `module`, on this memory, and writes the table's indices of its exports "0", "1",
/// ... to `functions`. 0 where it cannot be made.
__attribute__((import_module("ortc"), import_name("load"))) uint32_t ortc_load(const void *module,
                                                                               uint32_t bytes,
                                                                               ortc_step_fn *functions,
                                                                               uint32_t count);
}

namespace ortc {

void unmapFile(const FileMapping &) {}
void forgetPages(const FileMapping &) {}

constexpr size_t kPage = 65536;
static size_t countPages(size_t bytes) { return bytes / kPage + (bytes % kPage != 0); }

/// Pages that were released. Neighbours stay apart: what comes and goes is sessions of one program, all of one size.
struct Free {
  size_t pages;
  Free *next;
};
static Free *firstFree;

/// The first that are free and enough, or more memory.
void *allocatePages(size_t bytes) {
  size_t pages = countPages(bytes);
  for (Free **place = &firstFree; Free *free = *place; place = &free->next) {
    if (free->pages < pages)
      continue;
    if (free->pages == pages)
      *place = free->next;
    char *taken = (char *)free + (free->pages -= pages) * kPage;
    return memset(taken, 0, pages * kPage);
  }
  size_t first = __builtin_wasm_memory_grow(0, pages);
  return first == (size_t)-1 ? nullptr : (void *)(first * kPage);
}

void releasePages(void *memory, size_t bytes) {
  Free *free = (Free *)memory;
  *free = {countPages(bytes), firstFree};
  firstFree = free;
}

Error loadCode(ortc_program *program, const uint8_t *bytes, const ortc_file_section &section) {
  program->code = bytes;
  program->code_bytes = section.bytes;
  if (!hasDigest(bytes, section.bytes, section.sha256))
    return kDamaged;
  if (program->functions)
    return kNoError;
  const ortc_blob *head = (const ortc_blob *)bytes;
  uint64_t rows = (uint64_t)head->count * head->entry_bytes;
  uint64_t module = (sizeof *head + rows + ORTC_ALIGNMENT - 1) / ORTC_ALIGNMENT * ORTC_ALIGNMENT;
  if (module > section.bytes)
    return kMalformed;
  for (uint64_t at = sizeof *head; at < sizeof *head + rows; at += head->entry_bytes)
    if (head->entry_bytes < sizeof(ortc_blob_entry) ||
        ((const ortc_blob_entry *)(bytes + at))->offset >= head->count)
      return kMalformed;
  ortc_step_fn *functions = (ortc_step_fn *)allocate(program->host, head->count * sizeof(ortc_step_fn));
  if (!functions)
    return kNoMemory;
  program->functions = functions;
  return ortc_load(bytes + module, (uint32_t)(section.bytes - module), functions, head->count)
             ? kNoError
             : kNotExecutable;
}

} // namespace ortc

extern "C" {

uint32_t ortc_host_architecture(void) { return ORTC_ARCH_WASM32; }
uint64_t ortc_host_features(void) { return 0; }
}
