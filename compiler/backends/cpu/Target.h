// The CPUs that kernels are generated for, with the figures that kernel generators read.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/isa/Isa.h"
#include "compiler/backends/cpu/isa/MachineModel.h"
#include "compiler/backends/emit/MathExpansion.h"
#include "compiler/options/Numerics.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ortc::cpu {

using ortc::Numerics;

/// A CPU target. Plain data: copy freely.
struct Target {
  std::string name; ///< name on the command line, e.g. "x86-64-v3"
  Isa isa;
  MachineModel machine;
  bool prefersSize = false; ///< where nothing is said of it, code for it is small

  /// Threads that kernels are cut for and that scratch is planned for: the most that a session may use. Only cuts that
  /// change no bits may depend on it.
  int64_t workers = 2;

  /// Lanes of a vector register for elements of `bits` bits.
  int64_t lanes(unsigned bits) const { return isa.lanes(bits); }
  bool has(Instruction instruction) const { return isa.has(instruction); }
  /// True when kernels may contain fused multiply-adds under `numerics`.
  bool usesFma(Numerics numerics) const {
    return has(Instruction::FusedMultiplyAdd) && numerics == Numerics::Fast;
  }
};

/// How kernels of `target` compute elementary functions.
emit::MathOptions mathOptionsOf(const Target &target, Numerics numerics);

/// Names that `findTarget` knows, in order of preference of the loader (most capable last), "native" excluded.
llvm::ArrayRef<llvm::StringRef> targetNames();

/// Those of them that have an operating system.
llvm::ArrayRef<llvm::StringRef> hostedTargetNames();

/// Those of them that are of the architecture that the compiler runs on.
llvm::ArrayRef<llvm::StringRef> hostTargetNames();

/// The target called `name`: one of `targetNames()` or "native" (this machine). Empty when there is none.
std::optional<Target> findTarget(llvm::StringRef name, Numerics numerics = Numerics::Fast);

/// Makes the target's code small: nothing is unrolled that need not be.
void preferSize(Target &target);

/// True when this machine can execute code made for `target`.
bool canRunHere(const Target &target);

/// What measurements depend on: "native znver1, 8 lanes, 16 registers, 512 KiB, fma, 2 workers", with the size of the
/// second-level cache.
std::string describeMachine(const Target &target, Numerics numerics);

} // namespace ortc::cpu
