// A tensor in host memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/evaluator/HostTensor.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace mlir;

namespace ortc::evaluator {

HostTensor::HostTensor(RankedTensorType type) : type(type) {
  if (isFloat())
    floats.assign(size(), 0.0);
  else
    ints.assign(size(), 0);
}

/// Element `i` of little-endian data in whole bytes.
template <typename T> static T load(const char *data, int64_t i) {
  T value;
  std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

/// Fills `values` with the elements of `data` as they are stored, widened.
template <typename T, typename Wide> static void loadAll(const char *data, std::vector<Wide> &values) {
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<Wide>(load<T>(data, static_cast<int64_t>(i)));
}

static double toDouble(APFloat number) {
  bool losesInfo;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

/// The bits of `value` in a floating-point type of at most 64 bits.
static uint64_t floatBits(FloatType type, double value) {
  APFloat number(value);
  bool losesInfo;
  number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number.bitcastToAPInt().getZExtValue();
}

static int64_t strideOf(Type element) { return (element.getIntOrFloatBitWidth() + 7) / 8; }

void HostTensor::read(const char *data) {
  Type element = type.getElementType();
  if (element.isF64())
    return loadAll<double>(data, floats);
  if (element.isF32())
    return loadAll<float>(data, floats);
  if (auto floating = dyn_cast<FloatType>(element)) {
    unsigned width = element.getIntOrFloatBitWidth();
    int64_t stride = strideOf(element);
    for (size_t i = 0; i < floats.size(); ++i) {
      uint64_t raw = 0;
      std::memcpy(&raw, data + static_cast<int64_t>(i) * stride, stride);
      floats[i] = toDouble(APFloat(floating.getFloatSemantics(), APInt(64, raw).trunc(width)));
    }
    return;
  }
  switch (strideOf(element)) {
  case 1:
    loadAll<int8_t>(data, ints);
    break;
  case 2:
    loadAll<int16_t>(data, ints);
    break;
  case 4:
    loadAll<int32_t>(data, ints);
    break;
  default:
    loadAll<int64_t>(data, ints);
  }
  unsigned width = element.getIntOrFloatBitWidth();
  if (width == 1)
    for (int64_t &value : ints)
      value = value != 0;
  else if (width % 8 != 0)
    for (int64_t &value : ints)
      value = wrapTo(element, value);
}

void HostTensor::write(char *data) const {
  Type element = type.getElementType();
  int64_t stride = strideOf(element);
  auto store = [&](int64_t i, const auto &value) { std::memcpy(data + i * stride, &value, stride); };
  if (size() == 0)
    return; // there may be no memory at all
  if (element.isF64()) {
    std::memcpy(data, floats.data(), floats.size() * sizeof(double));
  } else if (element.isF32()) {
    for (int64_t i = 0, e = size(); i < e; ++i)
      store(i, static_cast<float>(floats[i]));
  } else if (auto floating = dyn_cast<FloatType>(element)) {
    for (int64_t i = 0, e = size(); i < e; ++i)
      store(i, floatBits(floating, floats[i]));
  } else {
    unsigned width = element.getIntOrFloatBitWidth();
    uint64_t mask = width < 64 ? (uint64_t(1) << width) - 1 : ~uint64_t(0);
    for (int64_t i = 0, e = size(); i < e; ++i)
      store(i, static_cast<uint64_t>(ints[i]) & mask);
  }
}

FailureOr<HostTensor> HostTensor::fromAttribute(ElementsAttr attribute) {
  auto type = dyn_cast<RankedTensorType>(attribute.getShapedType());
  if (!type || !type.hasStaticShape())
    return failure();
  HostTensor result(type);
  if (auto dense = dyn_cast<DenseElementsAttr>(attribute)) {
    bool isPacked = type.getElementType().isInteger(1) || dense.isSplat(); // bits, or one element
    if (!isPacked) {
      result.read(dense.getRawData().data());
      return result;
    }
    if (dense.isSplat() && result.isFloat())
      llvm::fill(result.floats, toDouble(dense.getSplatValue<APFloat>()));
    else if (dense.isSplat())
      llvm::fill(result.ints, type.getElementType().isInteger(1)
                                  ? !dense.getSplatValue<APInt>().isZero()
                                  : dense.getSplatValue<APInt>().getSExtValue());
    else
      for (auto [value, bit] : llvm::zip_equal(result.ints, dense.getValues<bool>()))
        value = bit;
    return result;
  }
  auto resource = dyn_cast<DenseResourceElementsAttr>(attribute);
  if (!resource || !resource.getRawHandle().getBlob())
    return failure();
  ArrayRef<char> bytes = resource.getRawHandle().getBlob()->getData();
  if (static_cast<int64_t>(bytes.size()) != result.size() * strideOf(type.getElementType()))
    return failure();
  result.read(bytes.data());
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
  int64_t stride = strideOf(element);
  if (size() * stride > kInlineConstantBytes) {
    AsmResourceBlob blob = HeapAsmResourceBlob::allocate(size() * stride, 64);
    write(blob.getMutableData().data());
    return DenseResourceElementsAttr::get(type, freshName(type.getContext(), name), std::move(blob));
  }
  if (element.isInteger(1))
    return DenseElementsAttr::get(
        type, ArrayRef<bool>(llvm::map_to_vector(ints, [](int64_t value) { return value != 0; })));
  std::vector<char> bytes(size() * stride);
  write(bytes.data());
  return DenseElementsAttr::getFromRawBuffer(type, bytes);
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
  auto type = cast<FloatType>(element);
  uint64_t bits = floatBits(type, value);
  return toDouble(APFloat(type.getFloatSemantics(), APInt(64, bits).trunc(type.getWidth())));
}

int64_t wrapTo(Type element, int64_t value) {
  unsigned width = element.getIntOrFloatBitWidth();
  return width == 1 ? value & 1 : llvm::SignExtend64(static_cast<uint64_t>(value), width);
}

void HostTensor::round() {
  Type element = type.getElementType();
  if (element.isF64())
    return;
  if (element.isF32())
    for (double &value : floats)
      value = static_cast<float>(value);
  else
    for (double &value : floats)
      value = roundTo(element, value);
}

void HostTensor::wrap() {
  Type element = type.getElementType();
  unsigned width = element.getIntOrFloatBitWidth();
  if (width == 1)
    for (int64_t &value : ints)
      value &= 1;
  else if (width < 64)
    for (int64_t &value : ints)
      value = llvm::SignExtend64(static_cast<uint64_t>(value), width);
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
