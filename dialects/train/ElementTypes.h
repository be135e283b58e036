//===- ElementTypes.h - element types as the ONNX file has them -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/StringRef.h"

namespace ortc::train {

/// On arguments, results, train.tensor and plan.buffer: the element type in the ONNX file (e.g. ui8) where the signless
/// one of the program leaves it open.
inline constexpr llvm::StringLiteral kDtype = "train.dtype";

} // namespace ortc::train
