// Where programs and sessions of the tool have their memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/host/memory.h"

#include <stdlib.h>
#include <sys/mman.h>

namespace ortc::host {

static constexpr size_t kHugePage = 2 << 20;

static void *allocate(void *, size_t bytes, size_t alignment) {
  bool isLarge = bytes >= 2 * kHugePage;
  void *memory = nullptr;
  if (posix_memalign(&memory, isLarge ? kHugePage : alignment, bytes))
    return nullptr;
#ifdef MADV_HUGEPAGE
  if (isLarge)
    madvise(memory, bytes, MADV_HUGEPAGE); // a wish
#endif
  return memory;
}

ortc_host memoryHooks() {
  ortc_host hooks{};
  hooks.size = sizeof hooks;
  hooks.allocate = allocate;
  hooks.release = [](void *, void *memory, size_t) { free(memory); };
  return hooks;
}

} // namespace ortc::host
