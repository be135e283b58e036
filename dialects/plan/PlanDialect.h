// The plan dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/plan/PlanDialect.h.inc"
#include "dialects/plan/PlanEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/plan/PlanAttributes.h.inc"
#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.h.inc"

namespace ortc::plan {

/// On functions that hold an outlined kernel: its KernelKind as an attribute.
inline constexpr llvm::StringLiteral kKind = "plan.kind";
/// On the same functions: their `inPlace` pairs (see plan.kernel).
inline constexpr llvm::StringLiteral kInPlace = "plan.in_place";

/// On the same functions, where a survey has been made: picoseconds that a call is estimated to take, and the
/// bytes of scratch that it needs while it runs, of all workers together.
inline constexpr llvm::StringLiteral kTime = "plan.time", kScratch = "plan.scratch";
/// On a call or plan.step: it computes again what another call has computed.
inline constexpr llvm::StringLiteral kRepeated = "plan.repeated";
/// On a plan.step, array<i64>: the external values, gradients of the host's, that are final behind it.
inline constexpr llvm::StringLiteral kReady = "plan.ready";
/// On an entry with a memory budget: the most transient bytes that it may take (i64).
inline constexpr llvm::StringLiteral kBudget = "plan.budget";
/// On an entry or program: what recomputation found. Picoseconds of all steps (`time`), of each once
/// (`plain_time`) and that no schedule within the budget is below (`least_time`); bytes that no schedule is
/// below (`least_bytes`); how many calls are repeated (`repeated`).
inline constexpr llvm::StringLiteral kRecompute = "plan.recompute";
/// On an entry or program: an array of what budgets would take, each [budget, transient bytes, time, least
/// time, time of each step once, whether it can be kept].
inline constexpr llvm::StringLiteral kCurve = "plan.curve";

/// Bytes of a tensor in memory: booleans and narrower take one byte each.
int64_t storedBytes(mlir::ShapedType type);
/// What kScratch says on the function of a kernel; 0 where it says nothing.
int64_t scratchOf(mlir::Operation *kernel);

} // namespace ortc::plan
