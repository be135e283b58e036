// The machine and its operating system: processor features, mapped files, executable memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__aarch64__) || defined(__riscv)
#include <sys/auxv.h>
#endif

#include "runtime/src/sha256.h"

namespace ortc {

#if defined(__x86_64__)
// __builtin_cpu_supports would pull tables of libgcc in.
static void cpuid(uint32_t leaf, uint32_t subleaf, uint32_t registers[4]) {
  __asm__("cpuid"
          : "=a"(registers[0]), "=b"(registers[1]), "=c"(registers[2]), "=d"(registers[3])
          : "a"(leaf), "c"(subleaf));
}

/// Where cpuid shows a feature. `state`: 0 none, 1 needs saved YMM registers, 2 ZMM and mask registers.
struct FeatureBit {
  uint8_t leaf; ///< index in kLeaves
  uint8_t reg, bit, state;
};
enum { Leaf1, Leaf7, Leaf7_1, LeafExtended };
static const FeatureBit kFeatures[] = {
    {Leaf1, 2, 0, 0},        // sse3
    {Leaf1, 2, 9, 0},        // ssse3
    {Leaf1, 2, 19, 0},       // sse4.1
    {Leaf1, 2, 20, 0},       // sse4.2
    {Leaf1, 2, 23, 0},       // popcnt
    {Leaf1, 2, 13, 0},       // cx16
    {LeafExtended, 2, 0, 0}, // sahf
    {Leaf1, 2, 28, 1},       // avx
    {Leaf7, 1, 5, 1},        // avx2
    {Leaf7, 1, 3, 0},        // bmi
    {Leaf7, 1, 8, 0},        // bmi2
    {Leaf1, 2, 29, 1},       // f16c
    {Leaf1, 2, 12, 1},       // fma
    {LeafExtended, 2, 5, 0}, // lzcnt
    {Leaf1, 2, 22, 0},       // movbe
    {Leaf7, 1, 16, 2},       // avx512f
    {Leaf7, 1, 30, 2},       // avx512bw
    {Leaf7, 1, 28, 2},       // avx512cd
    {Leaf7, 1, 17, 2},       // avx512dq
    {Leaf7, 1, 31, 2},       // avx512vl
    {Leaf7, 1, 21, 2},       // avx512ifma
    {Leaf7, 2, 1, 2},        // avx512vbmi
    {Leaf7, 2, 6, 2},        // avx512vbmi2
    {Leaf7, 2, 11, 2},       // avx512vnni
    {Leaf7, 2, 12, 2},       // avx512bitalg
    {Leaf7, 2, 14, 2},       // avx512vpopcntdq
    {Leaf7_1, 0, 5, 2},      // avx512bf16
    {Leaf7, 3, 23, 2},       // avx512fp16
    {Leaf7, 2, 8, 0},        // gfni
    {Leaf7_1, 0, 4, 1},      // avxvnni
};
static_assert(sizeof kFeatures / sizeof kFeatures[0] == ORTC_X86_FEATURES, "one place per feature");

static uint64_t x86Features() {
  uint32_t registers[4][4] = {}, top[4];
  cpuid(0, 0, top);
  cpuid(1, 0, registers[Leaf1]);
  if (top[0] >= 7) {
    uint32_t(&leaf7)[4] = registers[Leaf7];
    cpuid(7, 0, leaf7);
    if (leaf7[0] >= 1)
      cpuid(7, 1, registers[Leaf7_1]);
  }
  cpuid(0x80000000u, 0, top);
  if (top[0] >= 0x80000001u)
    cpuid(0x80000001u, 0, registers[LeafExtended]);
  int saved = 0; // what the operating system saves
  if (registers[Leaf1][2] >> 27 & 1) {
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    saved = (low & 0xe6) == 0xe6 ? 2 : (low & 6) == 6 ? 1 : 0;
  }
  uint64_t features = 0;
  for (unsigned i = 0; i < ORTC_X86_FEATURES; i++) {
    const FeatureBit &f = kFeatures[i];
    if (f.state <= saved)
      features |= (uint64_t)(registers[f.leaf][f.reg] >> f.bit & 1) << i;
  }
  return features;
}
#endif

ortc_status mapFile(const char *path, MappedFile &file, ortc_message *message) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return fail(message, ORTC_E_IO, "cannot open %s (errno %u)", path, (uint64_t)errno);
  struct stat about;
  ortc_status status = ORTC_OK;
  if (fstat(descriptor, &about) || !S_ISREG(about.st_mode)) {
    status = fail(message, ORTC_E_IO, "%s is not a regular file", path);
  } else if (about.st_size > 0) {
    void *data = mmap(nullptr, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED) {
      status = fail(message, ORTC_E_IO, "cannot map %s (errno %u)", path, (uint64_t)errno);
    } else {
      file.data = (const uint8_t *)data;
      file.bytes = (size_t)about.st_size;
    }
  }
  close(descriptor);
  return status;
}

void unmapFile(const MappedFile &file) {
  if (file.data)
    munmap((void *)file.data, file.bytes);
}

// Never the file's own pages: those may change after they were hashed. Writable and executable never at once.
ortc_status makeExecutable(const void *code, size_t bytes, const uint8_t digest[32], void **copy) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return ORTC_E_MEMORY;
  memcpy(memory, code, bytes);
  ortc_status status = hasDigest(memory, bytes, digest) ? ORTC_OK : ORTC_E_HASH;
  if (!status) {
    __builtin___clear_cache((char *)memory, (char *)memory + bytes);
    if (mprotect(memory, bytes, PROT_READ | PROT_EXEC))
      status = ORTC_E_TARGET;
  }
  if (status)
    munmap(memory, bytes);
  else
    *copy = memory;
  return status;
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
