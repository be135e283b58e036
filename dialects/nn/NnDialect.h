// The nn dialect and its operations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/nn/NnDialect.h.inc"
#include "dialects/nn/NnEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/nn/NnAttributes.h.inc"
#define GET_OP_CLASSES
#include "dialects/nn/NnOps.h.inc"
