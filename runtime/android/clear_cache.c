/* What compilers call for __builtin___clear_cache, and take from their own library elsewhere: on Android there is none
 * without the NDK.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdint.h>

__attribute__((visibility("hidden"))) void __clear_cache(void *begin, void *end);

void __clear_cache(void *begin, void *end) {
#if defined(__aarch64__)
  /* As the Arm architecture's manual has it: data to where instructions are read from, then instructions away. Sizes of
   * lines are powers of two words, in CTR_EL0. */
  uint64_t sizes;
  __asm__ volatile("mrs %0, ctr_el0" : "=r"(sizes));
  const uintptr_t data = (uintptr_t)4 << (sizes >> 16 & 15), code = (uintptr_t)4 << (sizes & 15);
  for (uintptr_t line = (uintptr_t)begin & -data; line < (uintptr_t)end; line += data)
    __asm__ volatile("dc cvau, %0" ::"r"(line) : "memory");
  __asm__ volatile("dsb ish" ::: "memory");
  for (uintptr_t line = (uintptr_t)begin & -code; line < (uintptr_t)end; line += code)
    __asm__ volatile("ic ivau, %0" ::"r"(line) : "memory");
  __asm__ volatile("dsb ish\n\tisb" ::: "memory");
#elif defined(__arm__)
  /* The kernel does it: cacheflush(begin, end, 0). */
  register uintptr_t first __asm__("r0") = (uintptr_t)begin;
  register uintptr_t last __asm__("r1") = (uintptr_t)end;
  register int flags __asm__("r2") = 0;
  register int number __asm__("r12") = 0xf0002;
  __asm__ volatile("push {r7}\n\tmov r7, r12\n\tsvc 0\n\tpop {r7}"
                   : "+r"(first)
                   : "r"(last), "r"(flags), "r"(number)
                   : "memory");
#else
  (void)begin, (void)end;
#endif
}
