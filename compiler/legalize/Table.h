// Which handler legalises an operator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One entry for each operator and range of since-versions; the entries are in Operators.inc.
#pragma once

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace ortc::legalize {

class Node;
using Handler = mlir::LogicalResult (*)(Node &);

/// What the walk guarantees about operands before it calls the handler.
enum class OperandKind {
  any,       ///< anything; f16 and bf16 operands are extended to f32 and results rounded back
  floats,    ///< the same, and all operands have one floating-point type
  moved,     ///< anything, as it is: the handler only moves elements
  sequences, ///< as it is, and an operand may be a sequence
  spread,    ///< as it is, or as `any` in training: where elements are repeated, gradients are summed
};

struct Operator {
  llvm::StringRef domain; ///< empty for the default one
  llvm::StringRef name;
  int64_t first, last; ///< since-versions, both included
  Handler handler;
  OperandKind operands;
};

/// All entries, sorted by name.
llvm::ArrayRef<Operator> getOperators();

/// The entry for an operator; null when there is none. `known` tells whether another version of it is
/// supported.
const Operator *findOperator(llvm::StringRef domain, llvm::StringRef name, int64_t since, bool &known);

} // namespace ortc::legalize
