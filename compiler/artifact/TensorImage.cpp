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

/// The elements of an attribute as ONNX has them, without a copy where they are a resource.
struct InitialElements {
  ElementsAttr attribute;
  int64_t elementBytes;

  /// All of them, packed; nothing where they are not stored so.
  ArrayRef<char> packed() const {
    if (auto resource = dyn_cast<DenseResourceElementsAttr>(attribute)) {
      AsmResourceBlob *blob = resource.getRawHandle().getBlob();
      return blob ? blob->getData() : ArrayRef<char>();
    }
    auto dense = dyn_cast<DenseElementsAttr>(attribute);
    return dense && !dense.isSplat() && !dense.getElementType().isInteger(1) ? dense.getRawData()
                                                                             : ArrayRef<char>();
  }
  int64_t bytes() const { return attribute.getNumElements() * elementBytes; }
  bool isReadable() const {
    return isa<DenseElementsAttr>(attribute) || static_cast<int64_t>(packed().size()) == bytes();
  }
  /// Calls `put` with each element, in order.
  void visit(llvm::function_ref<void(const void *)> put) const {
    if (ArrayRef<char> all = packed(); !all.empty()) {
      for (int64_t i = 0; i < attribute.getNumElements(); ++i)
        put(all.data() + i * elementBytes);
      return;
    }
    auto dense = cast<DenseElementsAttr>(attribute);
    if (dense.getElementType().isInteger(1)) {
      for (bool bit : dense.getValues<bool>())
        put(&bit);
      return;
    }
    for (int64_t i = 0; i < dense.getNumElements(); ++i)
      put(dense.getRawData().data());
  }
};

bool addInitial(train::TensorOp tensor, uint64_t offset, Image &image) {
  auto initial = tensor.getInitialAttr();
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!initial || type.getNumElements() == 0)
    return true;
  InitialElements elements{initial, bytesOf(elementOf(tensor))};
  if (!elements.isReadable())
    return false;
  if (ArrayRef<char> all = elements.packed(); !all.empty() && !tensor.getPermutation()) {
    image.addView(offset, {reinterpret_cast<const uint8_t *>(all.data()), all.size()});
    return true;
  }
  SmallVector<int64_t> shape(type.getShape());
  std::vector<int64_t> strides = storedStrides(tensor);
  image.addMade(offset, elements.bytes(), [elements, shape, strides](uint8_t *to) {
    SmallVector<int64_t> index(shape.size(), 0);
    int64_t place = 0;
    elements.visit([&](const void *element) {
      std::memcpy(to + place, element, elements.elementBytes);
      for (auto d = static_cast<int64_t>(shape.size()) - 1; d >= 0; --d) {
        place += strides[d];
        if (++index[d] < shape[d])
          break;
        place -= strides[d] * shape[d];
        index[d] = 0;
      }
    });
  });
  return true;
}

} // namespace ortc::artifact
