// The train dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"

#include "dialects/train/TrainDialect.h.inc"
#include "dialects/train/TrainEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/train/TrainAttributes.h.inc"
#define GET_OP_CLASSES
#include "dialects/train/TrainOps.h.inc"

namespace ortc::train {

// Names of the attributes on function arguments and results.
inline constexpr llvm::StringLiteral kTensor = "train.tensor"; // argument: symbol
inline constexpr llvm::StringLiteral kInput = "train.input";   // argument: name
inline constexpr llvm::StringLiteral kOutput = "train.output"; // result: name
inline constexpr llvm::StringLiteral kLoss = "train.loss";     // result: unit; of "accumulation" also "last"
inline constexpr llvm::StringLiteral kUpdate = "train.update"; // result: symbol
inline constexpr llvm::StringLiteral kGradient = "train.gradient"; // result: symbol
inline constexpr llvm::StringLiteral kBackward =
    "train.backward"; // unit; result of "forward_backward": it follows from cotangents; of "update": from gradients
inline constexpr llvm::StringLiteral kSaved =
    "train.saved"; // result of "forward", argument of "backward": i64, the number of the value
inline constexpr llvm::StringLiteral kLayout =
    "train.layout"; // output that is a gradient: symbol of its parameter, in whose layout it is
// On a train.tensor, and on arguments that are its value: its place is the host's.
inline constexpr llvm::StringLiteral kBound = "train.bound"; // unit
// On functions.
inline constexpr llvm::StringLiteral kEntry =
    "train.entry"; // "train", "eval", "predict", "gradients", "update", "accumulate", "forward", "backward"
inline constexpr llvm::StringLiteral kBinding = "train.binding"; // i64

// On parameters.
inline constexpr llvm::StringLiteral kSparse = "train.sparse"; // unit: a step updates the gathered rows alone
inline constexpr llvm::StringLiteral kChannels =
    "train.channels"; // array<i64: axis, count>: of the axis of `type`, the first `count` are trained

/// The value of `train.entry` of a function that is to be cut behind its forward part.
inline constexpr llvm::StringLiteral kForwardBackward = "forward_backward";
inline bool isForwardBackward(mlir::Operation *function) {
  auto entry = function->getAttrOfType<mlir::StringAttr>(kEntry);
  return entry && entry.getValue() == kForwardBackward;
}

/// The name that a label has as a `train.input`.
inline constexpr llvm::StringLiteral kLabel = "label";

} // namespace ortc::train
