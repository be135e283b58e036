// Element types as the ONNX file has them, and types as messages have them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace ortc::train {

/// On arguments, results, train.tensor and plan.buffer: the element type in the ONNX file (e.g. ui8) where the signless
/// one of the program leaves it open.
inline constexpr llvm::StringLiteral kDtype = "train.dtype";

/// ONNX's number (TensorProto.DataType) of an element type; 0 for a floating-point type that has none here. Integers of
/// programs are signless, and those of 2 and 4 bits are kept in wider ones: `isUnsigned` and `bits` say what
/// the file has.
inline uint8_t onnxElementType(mlir::Type element, bool isUnsigned, unsigned bits) {
  if (mlir::isa<mlir::FloatType>(element))
    return element.isF32() ? 1 : element.isF16() ? 10 : element.isF64() ? 11 : element.isBF16() ? 16 : 0;
  switch (bits) {
  case 1:
    return 9;
  case 2:
    return isUnsigned ? 25 : 26;
  case 4:
    return isUnsigned ? 21 : 22;
  case 8:
    return isUnsigned ? 2 : 3;
  case 16:
    return isUnsigned ? 4 : 5;
  case 32:
    return isUnsigned ? 12 : 6;
  default:
    return isUnsigned ? 13 : 7;
  }
}

/// A tensor's type as messages have it: "f32[4,3]", "i64[]".
inline std::string describeType(mlir::Type type) {
  auto tensor = mlir::cast<mlir::RankedTensorType>(type);
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << tensor.getElementType() << "[";
  llvm::interleave(tensor.getShape(), stream, ",");
  stream << "]";
  return text;
}

} // namespace ortc::train
