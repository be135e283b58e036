// Tensors as the artifact stores them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/TensorImage.h"

#include "compiler/passes/memory/Passes.h"
#include "dialects/train/ElementTypes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectResourceBlobManager.h"

#include <cstring>

using namespace mlir;

namespace ortc::artifact {

uint8_t onnxDataType(Operation *declaration, Type element) {
  if (auto dtype = declaration->getAttrOfType<TypeAttr>(train::kDtype))
    element = dtype.getValue();
  return train::onnxElementType(element, element.isUnsignedInteger(), element.getIntOrFloatBitWidth());
}

std::vector<int64_t> stridesOf(ArrayRef<int64_t> stored, ArrayRef<int64_t> permutation,
                               int64_t elementBytes) {
  std::vector<int64_t> strides(stored.size());
  int64_t step = elementBytes;
  for (int64_t i = static_cast<int64_t>(stored.size()) - 1; i >= 0; --i) {
    strides[permutation.empty() ? i : permutation[i]] = step;
    step *= stored[i];
  }
  return strides;
}

static int64_t bytesOf(Type element) { return (element.getIntOrFloatBitWidth() + 7) / 8; }

static Type elementOf(train::TensorOp tensor) { return cast<ShapedType>(tensor.getType()).getElementType(); }

std::vector<int64_t> storedStrides(train::TensorOp tensor) {
  return storedStrides(tensor, elementOf(tensor));
}

std::vector<int64_t> storedStrides(train::TensorOp tensor, Type element) {
  ArrayRef<int64_t> permutation;
  if (auto stored = tensor.getPermutation())
    permutation = *stored;
  return stridesOf(tensor.getStoredType().getShape(), permutation, bytesOf(element));
}

/// The attribute's elements, packed, in ONNX layout; empty on failure.
static std::vector<uint8_t> denseBytes(ElementsAttr value, int64_t elementBytes) {
  int64_t count = value.getNumElements();
  std::vector<uint8_t> bytes(count * elementBytes);
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob || blob->getData().size() != bytes.size())
      return {};
    std::memcpy(bytes.data(), blob->getData().data(), bytes.size());
    return bytes;
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return {};
  if (dense.getElementType().isInteger(1)) {
    int64_t i = 0;
    for (bool bit : dense.getValues<bool>())
      bytes[i++] = bit;
    return bytes;
  }
  ArrayRef<char> raw = dense.getRawData();
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(&bytes[i * elementBytes], raw.data() + (dense.isSplat() ? 0 : i * elementBytes),
                elementBytes);
  return bytes;
}

bool writeInitial(train::TensorOp tensor, uint8_t *image) {
  auto initial = tensor.getInitialAttr();
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!initial || type.getNumElements() == 0)
    return true;
  int64_t elementBytes = bytesOf(elementOf(tensor));
  std::vector<uint8_t> bytes = denseBytes(initial, elementBytes);
  if (bytes.empty())
    return false;
  if (!tensor.getPermutation()) {
    std::memcpy(image, bytes.data(), bytes.size());
    return true;
  }
  std::vector<int64_t> strides = storedStrides(tensor);
  SmallVector<int64_t> index(type.getRank(), 0);
  for (int64_t i = 0, count = type.getNumElements(); i < count; ++i) {
    int64_t to = 0;
    for (auto [position, stride] : llvm::zip_equal(index, strides))
      to += position * stride;
    std::memcpy(image + to, &bytes[i * elementBytes], elementBytes);
    for (int64_t d = type.getRank() - 1; d >= 0 && ++index[d] == type.getDimSize(d); --d)
      index[d] = 0;
  }
  return true;
}

} // namespace ortc::artifact
