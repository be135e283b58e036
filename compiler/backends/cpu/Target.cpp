// The table of CPU targets. docs/adding-a-target.md has the steps to add one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/Target.h"

#include "compiler/backends/cpu/isa/Architecture.h"
#include "compiler/backends/cpu/isa/aarch64/Aarch64.h"
#include "compiler/backends/cpu/isa/arm/Arm.h"
#include "compiler/backends/cpu/isa/riscv/Riscv.h"
#include "compiler/backends/cpu/isa/wasm/Wasm.h"
#include "compiler/backends/cpu/isa/x86/X86.h"

#include "llvm/ADT/STLExtras.h"

#include <array>
#include <sstream>

namespace ortc::cpu {

using namespace emit;

namespace {

struct NamedTarget {
  llvm::StringRef name;
  Target (*make)();
  Target (*makePortable)() = nullptr; ///< with portable numerics, where that takes other instructions
};

constexpr NamedTarget kTargets[] = {{"x86-64", x86::makeV1},
                                    {"x86-64-v3", x86::makeV3},
                                    {"x86-64-v4", x86::makeV4},
                                    {"aarch64", aarch64::makeBase},
                                    {"riscv64", riscv::makeBase},
                                    {"riscv64-v", riscv::makeVector},
                                    {"armv7", arm::makeV7, arm::makeV7Scalar},
                                    {"wasm32", wasm::makeBase},
                                    {"cortex-m4", arm::makeM4},
                                    {"cortex-m7", arm::makeM7},
                                    {"cortex-m33", arm::makeM33},
                                    {"cortex-m55", arm::makeM55, arm::makeM55Scalar}};

/// One for each architecture: the target that this machine is, if it is of that architecture.
constexpr std::optional<Target> (*kNative[])() = {x86::makeNative};

} // namespace

static Target withName(Target target, llvm::StringRef name) {
  target.name = name.str();
  return target;
}

llvm::ArrayRef<llvm::StringRef> targetNames() {
  static const auto names = [] {
    std::array<llvm::StringRef, std::size(kTargets)> names;
    llvm::transform(kTargets, names.begin(), [](const NamedTarget &target) { return target.name; });
    return names;
  }();
  return names;
}

llvm::ArrayRef<llvm::StringRef> hostedTargetNames() {
  static const auto names = [] {
    std::vector<llvm::StringRef> names;
    for (const NamedTarget &target : kTargets)
      if (target.make().isa.architecture->format() != ORTC_ARCH_CORTEX_M)
        names.push_back(target.name);
    return names;
  }();
  return names;
}

llvm::ArrayRef<llvm::StringRef> hostTargetNames() {
  auto isHost = [](const NamedTarget &target) {
    return target.make().isa.architecture->hostFeatures().has_value();
  };
  const NamedTarget *first = llvm::find_if(kTargets, isHost),
                    *last = std::find_if_not(first, std::end(kTargets), isHost);
  return targetNames().slice(first - std::begin(kTargets),
                             last - first); // an architecture's rows stand together
}

std::optional<Target> findTarget(llvm::StringRef name, Numerics numerics) {
  for (const NamedTarget &target : kTargets)
    if (target.name == name)
      return withName(target.makePortable && numerics == Numerics::Portable ? target.makePortable()
                                                                            : target.make(),
                      name);
  if (name == "native")
    for (auto make : kNative)
      if (auto target = make())
        return withName(std::move(*target), name);
  return std::nullopt;
}

void preferSize(Target &target) {
  target.isa.forSize = true;
  target.machine.tiles.accumulators = 4;
  target.machine.tiles.convVectors = 1;
}

bool canRunHere(const Target &target) {
  auto host = target.isa.architecture->hostFeatures();
  return host && (target.isa.requiredFeatures & ~*host) == 0;
}

std::string describeMachine(const Target &target, Numerics numerics) {
  std::ostringstream text;
  text << target.name << (target.isa.tuneCpu.empty() ? "" : " ") << target.isa.tuneCpu << ", "
       << target.lanes(32) << " lanes, " << target.isa.vectorRegisters << " registers, "
       << target.machine.l2Bytes / 1024 << " KiB, " << (target.usesFma(numerics) ? "fma" : "no fma") << ", "
       << target.workers << " workers";
  return text.str();
}

MathOptions mathOptionsOf(const Target &target, Numerics numerics) {
  return {target.usesFma(numerics), target.has(Instruction::Rounding),
          target.has(Instruction::Scaling) ? target.isa.architecture : nullptr,
          /*flushesExp=*/!denormalsAreZero(numerics)};
}

} // namespace ortc::cpu
