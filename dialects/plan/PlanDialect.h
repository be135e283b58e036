//===- PlanDialect.h - the plan dialect -----------------------------------===//
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

/// Bytes of a tensor in memory: booleans and narrower take one byte each.
int64_t storedBytes(mlir::ShapedType type);

} // namespace ortc::plan
