// ONNX types, tensors and attributes in MLIR.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/ImportTypes.h"

#include "compiler/frontend/onnx.pb.h"
#include "dialects/onnx/OnnxDialect.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectResourceBlobManager.h"

#include <cstring>

using namespace mlir;

namespace ortc::frontend {

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

Type importElementType(MLIRContext *context, int32_t type) {
  Builder b(context);
  auto unsignedInteger = [&](unsigned bits) {
    return IntegerType::get(context, bits, IntegerType::Unsigned);
  };
  switch (type) {
  case proto::TensorProto::FLOAT:
    return b.getF32Type();
  case proto::TensorProto::DOUBLE:
    return b.getF64Type();
  case proto::TensorProto::FLOAT16:
    return b.getF16Type();
  case proto::TensorProto::BFLOAT16:
    return b.getBF16Type();
  case proto::TensorProto::FLOAT8E4M3FN:
    return Float8E4M3FNType::get(context);
  case proto::TensorProto::FLOAT8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case proto::TensorProto::FLOAT8E5M2:
    return Float8E5M2Type::get(context);
  case proto::TensorProto::FLOAT8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case proto::TensorProto::FLOAT8E8M0:
    return Float8E8M0FNUType::get(context);
  case proto::TensorProto::FLOAT4E2M1:
    return Float4E2M1FNType::get(context);
  case proto::TensorProto::FLOAT6E2M3:
    return Float6E2M3FNType::get(context);
  case proto::TensorProto::FLOAT6E3M2:
    return Float6E3M2FNType::get(context);
  case proto::TensorProto::BOOL:
    return b.getI1Type();
  case proto::TensorProto::INT2:
    return b.getIntegerType(2);
  case proto::TensorProto::INT4:
    return b.getIntegerType(4);
  case proto::TensorProto::INT8:
    return b.getI8Type();
  case proto::TensorProto::INT16:
    return b.getI16Type();
  case proto::TensorProto::INT32:
    return b.getI32Type();
  case proto::TensorProto::INT64:
    return b.getI64Type();
  case proto::TensorProto::UINT2:
    return unsignedInteger(2);
  case proto::TensorProto::UINT4:
    return unsignedInteger(4);
  case proto::TensorProto::UINT8:
    return unsignedInteger(8);
  case proto::TensorProto::UINT16:
    return unsignedInteger(16);
  case proto::TensorProto::UINT32:
    return unsignedInteger(32);
  case proto::TensorProto::UINT64:
    return unsignedInteger(64);
  case proto::TensorProto::COMPLEX64:
    return ComplexType::get(b.getF32Type());
  case proto::TensorProto::COMPLEX128:
    return ComplexType::get(b.getF64Type());
  case proto::TensorProto::STRING:
    return onnx::StringType::get(context);
  default:
    return onnx::AnyType::get(context);
  }
}

/// A tensor type; a dimension without a value, or with the value -1, is dynamic.
template <typename Tensor> static Type importTensorType(MLIRContext *context, const Tensor &tensor) {
  if (tensor.elem_type() == 0)
    return onnx::AnyType::get(context);
  Type element = importElementType(context, tensor.elem_type());
  if (!tensor.has_shape())
    return UnrankedTensorType::get(element);
  SmallVector<int64_t> shape;
  for (const auto &dim : tensor.shape().dim())
    shape.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : ShapedType::kDynamic);
  return RankedTensorType::get(shape, element);
}

Type importType(MLIRContext *context, const proto::TypeProto &type) {
  switch (type.value_case()) {
  case proto::TypeProto::kTensorType:
    return importTensorType(context, type.tensor_type());
  case proto::TypeProto::kSparseTensorType:
    return onnx::SparseType::get(context, importTensorType(context, type.sparse_tensor_type()));
  case proto::TypeProto::kSequenceType:
    return onnx::SequenceType::get(context, importType(context, type.sequence_type().elem_type()));
  case proto::TypeProto::kOptionalType:
    return onnx::OptionalType::get(context, importType(context, type.optional_type().elem_type()));
  case proto::TypeProto::kMapType:
    return onnx::MapType::get(context, importElementType(context, type.map_type().key_type()),
                              importType(context, type.map_type().value_type()));
  case proto::TypeProto::kOpaqueType:
    return onnx::OpaqueType::get(context, type.opaque_type().domain(), type.opaque_type().name());
  case proto::TypeProto::VALUE_NOT_SET:
    break;
  }
  return onnx::AnyType::get(context);
}

ArrayAttr importDimNames(MLIRContext *context, const proto::TypeProto &type) {
  Builder b(context);
  SmallVector<Attribute> names;
  bool any = false;
  if (type.has_tensor_type() && type.tensor_type().elem_type() != 0)
    for (const auto &dim : type.tensor_type().shape().dim()) {
      names.push_back(b.getStringAttr(dim.dim_param()));
      any |= !dim.dim_param().empty();
    }
  return b.getArrayAttr(any ? ArrayRef<Attribute>(names) : ArrayRef<Attribute>());
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// Whether all elements have the same bytes.
static bool isSplat(StringRef bytes, size_t width) {
  // Comparing the data with itself one element further needs no loop over elements.
  return bytes.size() >= width && std::memcmp(bytes.data(), bytes.data() + width, bytes.size() - width) == 0;
}

/// A resource over the data where it lies; copied only when its address is not aligned for its elements.
static ElementsAttr importResource(RankedTensorType type, StringRef name, const TensorData &data,
                                   size_t width) {
  size_t alignment = std::min<size_t>(width, 8);
  ArrayRef<char> bytes(data.bytes.data(), data.bytes.size());
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignment != 0)
    return DenseResourceElementsAttr::get(
        type, name, HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, alignment, false));
  AsmResourceBlob blob(bytes, alignment, [owner = data.owner](void *, size_t, size_t) {}, false);
  return DenseResourceElementsAttr::get(type, name, std::move(blob));
}

ElementsAttr importTensor(MLIRContext *context, StringRef name, const TensorData &data) {
  auto type = RankedTensorType::get(data.dims, importElementType(context, data.type));
  if (data.type == proto::TensorProto::STRING) {
    SmallVector<StringRef> strings(data.strings.begin(), data.strings.end());
    return DenseStringElementsAttr::get(type, strings);
  }
  size_t width = static_cast<size_t>(dataTypeBytes(data.type));
  StringRef bytes(data.bytes.data(), data.bytes.size());
  if (bytes.empty())
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  bool splat = isSplat(bytes, width);
  if (splat)
    bytes = bytes.take_front(width);
  else if (bytes.size() > kLargestDense)
    return importResource(type, name, data, width);
  if (data.type == proto::TensorProto::BOOL)
    return DenseElementsAttr::get(type,
                                  ArrayRef<bool>(reinterpret_cast<const bool *>(bytes.data()), bytes.size()));
  return DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(bytes.data(), bytes.size()));
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

Attribute importAttribute(MLIRContext *context, const Model &model, StringRef name,
                          const proto::AttributeProto &a, Status &status) {
  Builder b(context);
  auto tensor = [&](const proto::TensorProto &t) -> Attribute {
    TensorData data;
    status = model.tensor(t, data);
    return status.isOk() ? importTensor(context, name, data) : Attribute();
  };
  auto sparse = [&](const proto::SparseTensorProto &t) -> Attribute {
    TensorData data;
    status = model.sparseTensor(t, data);
    return status.isOk() ? importTensor(context, name, data) : Attribute();
  };
  auto list = [&](const auto &values, auto one) -> Attribute {
    SmallVector<Attribute> attributes;
    for (const auto &value : values) {
      attributes.push_back(one(value));
      if (!attributes.back())
        return {};
    }
    return b.getArrayAttr(attributes);
  };
  auto type = [&](const proto::TypeProto &t) -> Attribute { return TypeAttr::get(importType(context, t)); };
  auto string = [&](const std::string &s) -> Attribute { return b.getStringAttr(s); };
  switch (attributeKind(a)) {
  case 'f':
    return b.getF32FloatAttr(a.f());
  case 'i':
    return b.getI64IntegerAttr(a.i());
  case 's':
    return string(a.s());
  case 'F':
    return b.getDenseF32ArrayAttr(ArrayRef<float>(a.floats().data(), a.floats_size()));
  case 'I':
    return b.getDenseI64ArrayAttr(SmallVector<int64_t>(a.ints().begin(), a.ints().end()));
  case 'S':
    return list(a.strings(), string);
  case 't':
    return tensor(a.t());
  case 'T':
    return list(a.tensors(), tensor);
  case 'p':
    return sparse(a.sparse_tensor());
  case 'P':
    return list(a.sparse_tensors(), sparse);
  case 'y':
    return type(a.tp());
  case 'Y':
    return list(a.type_protos(), type);
  default:
    status = Status::refusal("attribute '" + a.name() + "' has no value");
    return {};
  }
}

} // namespace ortc::frontend
