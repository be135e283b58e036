// The processor: its instruction set, and the features of it that a process may use.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

#if defined(__linux__) && (defined(__aarch64__) || defined(__riscv) || defined(__arm__))
#define ORTC_HAS_AUXV
#include <sys/auxv.h>
#endif

namespace ortc {

#if defined(__x86_64__)
// __builtin_cpu_supports would pull tables of libgcc in.
__attribute__((noinline)) static void cpuid(uint32_t leaf, uint32_t subleaf, uint32_t registers[4]) {
  __asm__("cpuid"
          : "=a"(registers[0]), "=b"(registers[1]), "=c"(registers[2]), "=d"(registers[3])
          : "a"(leaf), "c"(subleaf));
}

/// Where cpuid shows a feature: leaf, register, bit, and the bit of XCR0 that says that the operating system saves its
/// registers. Mask registers stand for ZMM, whose bits are set together; the first bit is always set.
enum Leaf { L1, L7, L7Next, LExtended };
enum Register { A, B, C, D };
enum Saved { Any = 0, Ymm = 2, Zmm = 5, Tiles = 18 };
constexpr uint16_t at(Leaf leaf, Register reg, int bit, Saved saved) {
  return (uint16_t)(saved << 9 | (leaf * 4 + reg) << 5 | bit);
}
static const uint16_t kFeatures[] = {
    at(L1, C, 0, Any),        // sse3
    at(L1, C, 9, Any),        // ssse3
    at(L1, C, 19, Any),       // sse4.1
    at(L1, C, 20, Any),       // sse4.2
    at(L1, C, 23, Any),       // popcnt
    at(L1, C, 13, Any),       // cx16
    at(LExtended, C, 0, Any), // sahf
    at(L1, C, 28, Ymm),       // avx
    at(L7, B, 5, Ymm),        // avx2
    at(L7, B, 3, Ymm),        // bmi
    at(L7, B, 8, Ymm),        // bmi2
    at(L1, C, 29, Ymm),       // f16c
    at(L1, C, 12, Ymm),       // fma
    at(LExtended, C, 5, Any), // lzcnt
    at(L1, C, 22, Any),       // movbe
    at(L7, B, 16, Zmm),       // avx512f
    at(L7, B, 30, Zmm),       // avx512bw
    at(L7, B, 28, Zmm),       // avx512cd
    at(L7, B, 17, Zmm),       // avx512dq
    at(L7, B, 31, Zmm),       // avx512vl
    at(L7, B, 21, Zmm),       // avx512ifma
    at(L7, C, 1, Zmm),        // avx512vbmi
    at(L7, C, 6, Zmm),        // avx512vbmi2
    at(L7, C, 11, Zmm),       // avx512vnni
    at(L7, C, 12, Zmm),       // avx512bitalg
    at(L7, C, 14, Zmm),       // avx512vpopcntdq
    at(L7Next, A, 5, Zmm),    // avx512bf16
    at(L7, D, 23, Zmm),       // avx512fp16
    at(L7, C, 8, Ymm),        // gfni
    at(L7Next, A, 4, Ymm),    // avxvnni
    at(L7, D, 22, Tiles),     // amx-bf16
};
static_assert(sizeof kFeatures / sizeof kFeatures[0] == ORTC_X86_FEATURES, "one place per feature");

static uint64_t x86Features() {
  uint32_t registers[4][4] = {};
  cpuid(1, 0, registers[L1]);
  // Processors that have no leaf 7 may answer with anything, but then save no AVX state, which its features
  // need. Where only its second part is missing, it is zero.
  cpuid(7, 0, registers[L7]);
  cpuid(7, 1, registers[L7Next]);
  cpuid(0x80000001u, 0, registers[LExtended]); // every 64-bit processor has it
  uint32_t saved = 1;
  if (registers[L1][C] >> 27 & 1) {
    uint32_t high;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
#if defined(__linux__)
    // A process has tile registers when it asks: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA).
    int denied = 158;
    __asm__ volatile("syscall" : "+a"(denied) : "D"(0x1023), "S"(Tiles) : "rcx", "r11", "memory");
    if (denied)
#endif
      saved &= (1u << Tiles) - 1;
  }
  uint64_t features = 0;
  for (unsigned i = 0; i < ORTC_X86_FEATURES; i++) {
    unsigned place = kFeatures[i];
    if (saved >> (place >> 9) & 1)
      features |= (uint64_t)((&registers[0][0])[place >> 5 & 15] >> (place & 31) & 1) << i;
  }
  return features;
}
#endif

} // namespace ortc

extern "C" {

uint32_t ortc_host_architecture(void) {
#if defined(__x86_64__)
  return ORTC_ARCH_X86_64;
#elif defined(__aarch64__)
  return ORTC_ARCH_AARCH64;
#elif defined(__riscv) && __riscv_xlen == 64
  return ORTC_ARCH_RISCV64;
#elif defined(__arm__) && __ARM_ARCH_PROFILE == 'M'
  return ORTC_ARCH_CORTEX_M;
#elif defined(__arm__)
  return ORTC_ARCH_ARMV7;
#else
  return ORTC_ARCH_NONE;
#endif
}

uint64_t ortc_host_features(void) {
#if defined(__x86_64__)
  return ortc::x86Features();
#elif defined(ORTC_HAS_AUXV)
  return getauxval(AT_HWCAP);
#elif defined(__arm__) && __ARM_ARCH_PROFILE == 'M'
  // Those that this file is compiled for.
  return (__ARM_ARCH >= 8 ? ORTC_CORTEX_M_V8 : 0)
#if __ARM_FP & 8
         | ORTC_CORTEX_M_FP64
#endif
#if __ARM_FEATURE_MVE & 2
         | ORTC_CORTEX_M_MVE
#endif
      ;
#else
  return 0;
#endif
}
}
