// Table of CPU targets and detection of this machine.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/Target.h"

#include "ortc/format.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ortc::cpu {
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

constexpr llvm::StringLiteral kTriple = "x86_64-unknown-linux-gnu";

} // namespace

/// Whether this process may use tile registers: Linux gives them to who asks.
static bool mayUseTiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

/// Features of this machine as bits of ortc_x86_feature.
static uint64_t hostFeatures() {
  uint64_t bits = 0;
#if defined(__x86_64__)
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  for (auto [index, name] : llvm::enumerate(kFeatureNames))
    if (features.lookup(name))
      bits |= uint64_t(1) << index;
  if (!mayUseTiles())
    bits &= ~(uint64_t(1) << ORTC_X86_AMX_BF16);
#endif
  return bits;
}

/// Fills in what kernel generators read from the feature bits.
static void deriveFigures(Target &target) {
  auto has = [&](unsigned feature) { return (target.requiredFeatures >> feature & 1) != 0; };
  bool avx512 = (target.requiredFeatures & ORTC_X86_64_V4) == ORTC_X86_64_V4;
  target.vectorLanes = avx512 ? 16 : has(ORTC_X86_AVX2) ? 8 : 4;
  target.vectorRegisters = avx512 ? 32 : 16;
  target.hasFma = has(ORTC_X86_FMA);
  target.hasRounding = has(ORTC_X86_SSE4_1);
  target.hasMatrixUnit = avx512 && has(ORTC_X86_AMX_BF16);
  target.l2Bytes = avx512 ? 1 << 20 : 512 << 10;
}

static Target level(llvm::StringRef name, uint64_t features, llvm::StringRef tune) {
  Target target;
  target.name = target.cpu = name.str();
  target.triple = kTriple.str();
  target.tuneCpu = tune.str();
  target.requiredFeatures = features;
  deriveFigures(target);
  return target;
}

/// This machine: its features as far as the artifact format knows them, tuned for its CPU.
static std::optional<Target> nativeTarget() {
#if defined(__x86_64__)
  Target target;
  target.name = "native";
  target.triple = kTriple.str();
  target.cpu = "x86-64";
  target.tuneCpu = llvm::sys::getHostCPUName().str();
  target.requiredFeatures = hostFeatures();
  for (auto [index, feature] : llvm::enumerate(kFeatureNames))
    if (target.requiredFeatures >> index & 1)
      target.features += (target.features.empty() ? "+" : ",+") + feature.str();
  deriveFigures(target);
#ifdef _SC_LEVEL2_CACHE_SIZE                                  // of glibc
  if (long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) // zero where a hypervisor hides it
    target.l2Bytes = bytes;
#endif
  return target;
#else
  return std::nullopt;
#endif
}

llvm::ArrayRef<llvm::StringRef> targetNames() {
  static constexpr llvm::StringRef names[] = {"x86-64", "x86-64-v3", "x86-64-v4"};
  return names;
}

std::optional<Target> findTarget(llvm::StringRef name) {
  if (name == "x86-64")
    return level(name, ORTC_X86_64_V1, "generic");
  if (name == "x86-64-v3")
    return level(name, ORTC_X86_64_V3, "haswell");
  if (name == "x86-64-v4")
    return level(name, ORTC_X86_64_V4, "skylake-avx512");
  if (name == "native")
    return nativeTarget();
  return std::nullopt;
}

bool canRunHere(const Target &target) {
#if defined(__x86_64__)
  return (target.requiredFeatures & ~hostFeatures()) == 0;
#else
  return false;
#endif
}

} // namespace ortc::cpu
