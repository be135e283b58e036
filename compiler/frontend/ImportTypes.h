// ONNX types, tensors and attributes in MLIR.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/Model.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace ortc::proto {
class TypeProto;
class ValueInfoProto;
} // namespace ortc::proto

namespace ortc::frontend {

/// Dense constants up to this size (or of one repeated value) are attributes, larger ones resources.
constexpr size_t kLargestDense = 4096;

/// The element type of ONNX's number for it; `!onnx.any` for UNDEFINED.
mlir::Type importElementType(mlir::MLIRContext *context, int32_t type);

/// A declared type; `!onnx.any` where the file states none.
mlir::Type importType(mlir::MLIRContext *context, const proto::TypeProto &type);

/// The names of the dimensions of a declared tensor type: a string for each, or empty when none has a name.
mlir::ArrayAttr importDimNames(mlir::MLIRContext *context, const proto::TypeProto &type);

/// Constant data. `name` becomes the name of the resource when there is one.
mlir::ElementsAttr importTensor(mlir::MLIRContext *context, llvm::StringRef name, const TensorData &data);

/// An attribute that is no graph and no reference. `name` as above. Null when a tensor's data cannot be read
/// any more (an external file that changed); then `status` says why.
mlir::Attribute importAttribute(mlir::MLIRContext *context, const Model &model, llvm::StringRef name,
                                const proto::AttributeProto &attribute, Status &status);

} // namespace ortc::frontend
