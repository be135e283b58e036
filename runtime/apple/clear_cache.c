/* What compilers call for __builtin___clear_cache, and take from a library of their SDK elsewhere.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/apple/darwin.h"

__attribute__((visibility("hidden"))) void __clear_cache(void *begin, void *end);

void __clear_cache(void *begin, void *end) { sys_icache_invalidate(begin, (size_t)((char *)end - (char *)begin)); }
