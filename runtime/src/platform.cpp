// The machine and its operating system: processor features, mapped files, executable memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__aarch64__) || defined(__riscv)
#include <sys/auxv.h>
#endif

#include "runtime/src/sha256.h"

namespace ortc {

#if defined(__x86_64__)
// __builtin_cpu_supports would pull tables of libgcc in.
__attribute__((noinline)) static void cpuid(uint32_t leaf, uint32_t subleaf, uint32_t registers[4]) {
  __asm__("cpuid"
          : "=a"(registers[0]), "=b"(registers[1]), "=c"(registers[2]), "=d"(registers[3])
          : "a"(leaf), "c"(subleaf));
}

/// Where cpuid shows a feature: leaf, register, bit, and what the operating system must save for it (0
/// nothing, 1 YMM registers, 2 ZMM and mask registers too).
enum Leaf { L1, L7, L7Next, LExtended };
enum Register { A, B, C, D };
constexpr uint16_t at(Leaf leaf, Register reg, int bit, int saved) {
  return (uint16_t)(saved << 9 | (leaf * 4 + reg) << 5 | bit);
}
static const uint16_t kFeatures[] = {
    at(L1, C, 0, 0),        // sse3
    at(L1, C, 9, 0),        // ssse3
    at(L1, C, 19, 0),       // sse4.1
    at(L1, C, 20, 0),       // sse4.2
    at(L1, C, 23, 0),       // popcnt
    at(L1, C, 13, 0),       // cx16
    at(LExtended, C, 0, 0), // sahf
    at(L1, C, 28, 1),       // avx
    at(L7, B, 5, 1),        // avx2
    at(L7, B, 3, 1),        // bmi
    at(L7, B, 8, 1),        // bmi2
    at(L1, C, 29, 1),       // f16c
    at(L1, C, 12, 1),       // fma
    at(LExtended, C, 5, 0), // lzcnt
    at(L1, C, 22, 0),       // movbe
    at(L7, B, 16, 2),       // avx512f
    at(L7, B, 30, 2),       // avx512bw
    at(L7, B, 28, 2),       // avx512cd
    at(L7, B, 17, 2),       // avx512dq
    at(L7, B, 31, 2),       // avx512vl
    at(L7, B, 21, 2),       // avx512ifma
    at(L7, C, 1, 2),        // avx512vbmi
    at(L7, C, 6, 2),        // avx512vbmi2
    at(L7, C, 11, 2),       // avx512vnni
    at(L7, C, 12, 2),       // avx512bitalg
    at(L7, C, 14, 2),       // avx512vpopcntdq
    at(L7Next, A, 5, 2),    // avx512bf16
    at(L7, D, 23, 2),       // avx512fp16
    at(L7, C, 8, 1),        // gfni
    at(L7Next, A, 4, 1),    // avxvnni
};
static_assert(sizeof kFeatures / sizeof kFeatures[0] == ORTC_X86_FEATURES, "one place per feature");

static uint64_t x86Features() {
  uint32_t registers[4][4] = {};
  cpuid(1, 0, registers[L1]);
  // Processors that have no leaf 7 may answer with anything, but then save no AVX state, which its features
  // need.
  cpuid(7, 0, registers[L7]);
  if (registers[L7][A])
    cpuid(7, 1, registers[L7Next]);
  cpuid(0x80000001u, 0, registers[LExtended]); // every 64-bit processor has it
  int saved = 0;
  if (registers[L1][C] >> 27 & 1) {
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    saved = (low & 0xe6) == 0xe6 ? 2 : (low & 6) == 6 ? 1 : 0;
  }
  uint64_t features = 0;
  for (unsigned i = 0; i < ORTC_X86_FEATURES; i++) {
    unsigned place = kFeatures[i];
    if ((int)(place >> 9) <= saved)
      features |= (uint64_t)((&registers[0][0])[place >> 5 & 15] >> (place & 31) & 1) << i;
  }
  return features;
}
#endif

Error mapFile(const char *path, MappedFile &file, Arguments &arguments) {
  file = {};
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);     // never wait for the writer of a pipe
  off_t bytes = descriptor < 0 ? -1 : lseek(descriptor, 0, SEEK_END); // -1 also for a pipe
  bool isRead = bytes >= 0;
  if (bytes > 0) {
    file = {(const uint8_t *)mmap(nullptr, (size_t)bytes, PROT_READ, MAP_PRIVATE, descriptor, 0),
            (size_t)bytes};
    isRead = file.data != MAP_FAILED;
  }
  arguments.set(0, path);
  arguments.set(1, (uint64_t)errno);
  close(descriptor);
  return isRead ? nullptr : E_IO "cannot read %s (errno %u)";
}

void unmapFile(const MappedFile &file) {
  if (file.data)
    munmap((void *)file.data, file.bytes);
}

// Never the file's own pages: those may change after they were hashed. Writable and executable never at once.
Error makeExecutable(const void *code, size_t bytes, const uint8_t digest[32], void **copy) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return E_MEMORY "out of memory";
  *copy = memory; // the caller releases it, whatever happens
  memcpy(memory, code, bytes);
  if (!hasDigest(memory, bytes, digest))
    return E_HASH "%s %u does not match its hash";
  __builtin___clear_cache((char *)memory, (char *)memory + bytes);
  if (mprotect(memory, bytes, PROT_READ | PROT_EXEC))
    return E_TARGET "%s %u cannot be executed here";
  return nullptr;
}

void releaseExecutable(void *copy, size_t bytes) {
  if (copy)
    munmap(copy, bytes);
}

} // namespace ortc

extern "C" {

uint32_t ortc_host_architecture(void) {
#if defined(__x86_64__)
  return ORTC_ARCH_X86_64;
#elif defined(__aarch64__)
  return ORTC_ARCH_AARCH64;
#elif defined(__riscv) && __riscv_xlen == 64
  return ORTC_ARCH_RISCV64;
#else
  return ORTC_ARCH_NONE;
#endif
}

uint64_t ortc_host_features(void) {
#if defined(__x86_64__)
  return ortc::x86Features();
#elif defined(__aarch64__) || defined(__riscv)
  return getauxval(AT_HWCAP);
#else
  return 0;
#endif
}
}
