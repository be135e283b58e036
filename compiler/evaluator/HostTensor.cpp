//===- HostTensor.cpp - a tensor in host memory ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/evaluator/HostTensor.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/APFloat.h"

#include <cstring>

using namespace mlir;

namespace ortc::evaluator {

HostTensor::HostTensor(RankedTensorType type) : type(type) {
  if (isFloat())
    floats.assign(size(), 0.0);
  else
    ints.assign(size(), 0);
}

/// The value of one stored element, little-endian, `width` bits.
static APInt loadBits(const char *data, unsigned width) {
  uint64_t raw = 0;
  std::memcpy(&raw, data, (width + 7) / 8);
  return APInt(64, raw).trunc(width);
}

FailureOr<HostTensor> HostTensor::fromAttribute(ElementsAttr attribute) {
  auto type = dyn_cast<RankedTensorType>(attribute.getShapedType());
  if (!type || !type.hasStaticShape())
    return failure();
  HostTensor result(type);
  Type element = type.getElementType();
  auto floating = dyn_cast<FloatType>(element);
  auto toDouble = [](APFloat number) {
    bool losesInfo;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
    return number.convertToDouble();
  };
  auto toInt = [&](const APInt &bits) {
    return element.isInteger(1) ? static_cast<int64_t>(!bits.isZero()) : bits.getSExtValue();
  };
  if (auto dense = dyn_cast<DenseElementsAttr>(attribute)) {
    if (floating) {
      int64_t i = 0;
      for (const APFloat &number : dense.getValues<APFloat>())
        result.floats[i++] = toDouble(number);
    } else {
      int64_t i = 0;
      for (const APInt &number : dense.getValues<APInt>())
        result.ints[i++] = toInt(number);
    }
    return result;
  }
  auto resource = dyn_cast<DenseResourceElementsAttr>(attribute);
  if (!resource || !resource.getRawHandle().getBlob())
    return failure();
  ArrayRef<char> bytes = resource.getRawHandle().getBlob()->getData();
  unsigned width = element.getIntOrFloatBitWidth(), stride = (width + 7) / 8;
  if (static_cast<int64_t>(bytes.size()) != result.size() * stride)
    return failure();
  for (int64_t i = 0, e = result.size(); i < e; ++i) {
    APInt bits = loadBits(bytes.data() + i * stride, width);
    if (floating)
      result.floats[i] = toDouble(APFloat(floating.getFloatSemantics(), bits));
    else
      result.ints[i] = toInt(bits);
  }
  return result;
}

/// A name that no resource has yet. The blob manager would find one, too, by trying all numbers from the first on.
static std::string freshName(MLIRContext *context, StringRef name) {
  std::string fresh = name.str();
  DenseResourceElementsHandle::getManagerInterface(context).getBlobManager().getBlobMap(
      [&](const auto &known) {
        if (known.contains(name))
          fresh += "." + std::to_string(known.size());
      });
  return fresh;
}

ElementsAttr HostTensor::toAttribute(StringRef name) const {
  Type element = type.getElementType();
  unsigned width = element.getIntOrFloatBitWidth(), stride = (width + 7) / 8;
  auto floating = dyn_cast<FloatType>(element);
  auto bitsOf = [&](int64_t i) {
    if (!floating)
      return APInt(64, static_cast<uint64_t>(ints[i])).trunc(width);
    APFloat number(floats[i]);
    bool losesInfo;
    number.convert(floating.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    return number.bitcastToAPInt();
  };
  if (size() * stride <= kInlineConstantBytes) {
    if (floating) {
      SmallVector<APFloat> values;
      for (int64_t i = 0; i < size(); ++i)
        values.emplace_back(floating.getFloatSemantics(), bitsOf(i));
      return DenseElementsAttr::get(type, values);
    }
    SmallVector<APInt> values;
    for (int64_t i = 0; i < size(); ++i)
      values.push_back(bitsOf(i));
    return DenseElementsAttr::get(type, values);
  }
  AsmResourceBlob blob = HeapAsmResourceBlob::allocate(size() * stride, 64);
  char *data = blob.getMutableData().data();
  for (int64_t i = 0; i < size(); ++i) {
    uint64_t raw = bitsOf(i).getZExtValue();
    std::memcpy(data + i * stride, &raw, stride);
  }
  return DenseResourceElementsAttr::get(type, freshName(type.getContext(), name), std::move(blob));
}

HostTensor HostTensor::withType(RankedTensorType other) const {
  HostTensor result = *this;
  result.type = other;
  return result;
}

double roundTo(Type element, double value) {
  if (element.isF64())
    return value;
  if (element.isF32())
    return static_cast<float>(value);
  APFloat number(value);
  bool losesInfo;
  number.convert(cast<FloatType>(element).getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

int64_t wrapTo(Type element, int64_t value) {
  unsigned width = element.getIntOrFloatBitWidth();
  if (width == 1)
    return value & 1;
  return APInt(64, static_cast<uint64_t>(value)).trunc(width).getSExtValue();
}

bool nextIndex(MutableArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  for (int64_t i = static_cast<int64_t>(shape.size()) - 1; i >= 0; --i) {
    if (++index[i] < shape[i])
      return true;
    index[i] = 0;
  }
  return false;
}

} // namespace ortc::evaluator
