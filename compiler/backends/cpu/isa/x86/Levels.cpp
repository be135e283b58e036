// The levels of x86-64 and detection of this machine.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/x86/X86.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ortc::cpu::x86 {
namespace {

/// LLVM's names of the features of ortc_x86_feature, in its order.
constexpr llvm::StringLiteral kFeatureNames[] = {"sse3",         "ssse3",
                                                 "sse4.1",       "sse4.2",
                                                 "popcnt",       "cx16",
                                                 "sahf",         "avx",
                                                 "avx2",         "bmi",
                                                 "bmi2",         "f16c",
                                                 "fma",          "lzcnt",
                                                 "movbe",        "avx512f",
                                                 "avx512bw",     "avx512cd",
                                                 "avx512dq",     "avx512vl",
                                                 "avx512ifma",   "avx512vbmi",
                                                 "avx512vbmi2",  "avx512vnni",
                                                 "avx512bitalg", "avx512vpopcntdq",
                                                 "avx512bf16",   "avx512fp16",
                                                 "gfni",         "avxvnni",
                                                 "amx-bf16"};
static_assert(std::size(kFeatureNames) == ORTC_X86_FEATURES, "one name per feature bit");

} // namespace

/// Whether this process may use tile registers: Linux gives them to who asks.
#if defined(__x86_64__)
static bool mayUseTiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}
#endif

std::optional<uint64_t> findHostFeatures() {
#if defined(__x86_64__)
  uint64_t bits = 0;
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  for (auto [index, name] : llvm::enumerate(kFeatureNames))
    if (features.lookup(name))
      bits |= uint64_t(1) << index;
  if (!mayUseTiles())
    bits &= ~(uint64_t(1) << ORTC_X86_AMX_BF16);
  return bits;
#else
  return std::nullopt;
#endif
}

bool hasFastPairs(llvm::StringRef cpu) { return cpu.starts_with("znver"); }

/// What generators read, from the feature bits.
static Target makeTarget(llvm::StringRef cpu, uint64_t features, llvm::StringRef tune) {
  auto hasFeature = [&](unsigned feature) { return (features >> feature & 1) != 0; };
  bool avx512 = (features & ORTC_X86_64_V4) == ORTC_X86_64_V4;
  Target target;
  Isa &isa = target.isa;
  isa.architecture = &architecture();
  isa.triple = "x86_64-unknown-linux-gnu";
  isa.cpu = cpu.str();
  isa.tuneCpu = tune.str();
  isa.requiredFeatures = features;
  isa.vectorBits = avx512 ? 512 : hasFeature(ORTC_X86_AVX2) ? 256 : 128;
  isa.vectorRegisters = avx512 ? 32 : 16;
  isa.set(Instruction::FusedMultiplyAdd, hasFeature(ORTC_X86_FMA));
  isa.set(Instruction::Rounding, hasFeature(ORTC_X86_SSE4_1));
  isa.set(Instruction::Scaling, avx512);
  isa.set(Instruction::HalfConversion, hasFeature(ORTC_X86_F16C));
  isa.set(Instruction::MatrixUnit, avx512 && hasFeature(ORTC_X86_AMX_BF16));
  isa.set(Instruction::ByteLookup, avx512 && hasFeature(ORTC_X86_AVX512VBMI));
  isa.set(Instruction::PairProduct, avx512 && hasFeature(ORTC_X86_AVX512BF16) && hasFastPairs(tune));
  target.machine = makeMachine(isa);
  return target;
}

Target makeV1() { return makeTarget("x86-64", ORTC_X86_64_V1, "generic"); }
Target makeV3() { return makeTarget("x86-64-v3", ORTC_X86_64_V3, "haswell"); }
Target makeV4() { return makeTarget("x86-64-v4", ORTC_X86_64_V4, "skylake-avx512"); }

std::optional<Target> makeNative() {
  std::optional<uint64_t> features = findHostFeatures();
  if (!features)
    return std::nullopt;
  Target target = makeTarget("x86-64", *features, llvm::sys::getHostCPUName());
  for (auto [index, feature] : llvm::enumerate(kFeatureNames))
    if ((*features >> index & 1) &&
        index != ORTC_X86_AVX512FP16) // LLVM would compute in f16 where that rounds alike
      target.isa.features += (target.isa.features.empty() ? "+" : ",+") + feature.str();
#ifdef _SC_LEVEL2_CACHE_SIZE                                  // of glibc
  if (long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) // zero where a hypervisor hides it
    target.machine.l2Bytes = bytes;
#endif
  return target;
}

} // namespace ortc::cpu::x86
