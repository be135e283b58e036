// x86-64: its levels and the code that only it has.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/cpu/isa/Architecture.h"

namespace ortc::cpu::x86 {

const Architecture &architecture();

// Levels, without names: SSE2; AVX2 with fused multiply-add; AVX-512 with masks and 32 registers.
Target makeV1();
Target makeV3();
Target makeV4();

/// This machine: its features as far as the artifact format knows them, tuned for its CPU. Nothing on other machines.
std::optional<Target> makeNative();

/// Whether a processor with AVX512-BF16, by LLVM's name, begins a vdpbf16ps in every cycle: twice the multiply-adds of
/// vfmadd. Intel's take two cycles for one, half of them (0.74 ns where vfmadd takes 0.18 on a Sapphire Rapids), so
/// that products there are faster in f32 where the matrix unit does not do them.
bool hasFastPairs(llvm::StringRef cpu);

/// Figures for cores with the vectors of `isa` (Machine.cpp has their sources).
MachineModel makeMachine(const Isa &isa);

/// Architecture::hostFeatures.
std::optional<uint64_t> findHostFeatures();

// The matrix unit (MatrixUnit.cpp): AMX.
void emitUnitBegin(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value configuration);
void emitUnitEnd(mlir::OpBuilder &builder, mlir::Location loc);
void emitBlockProduct(mlir::OpBuilder &builder, mlir::Location loc, const BlockProduct &product);

/// Architecture::emitLookup (Lookup.cpp). 64 lanes need Instruction::ByteLookup.
mlir::Value emitLookup(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<mlir::Value> table,
                       mlir::Value index);

} // namespace ortc::cpu::x86
