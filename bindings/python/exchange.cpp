// Tensors of a framework, without a call of Python: DLPack's C exchange.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/python/exchange.h"

#include <algorithm>
#include <vector>

#include "bindings/python/types.h"

namespace nb = nanobind;

namespace ortc::python {

/// DLPackExchangeAPI of DLPack 1.x, of which one function is called.
struct ExchangeTable {
  uint32_t major, minor;
  const ExchangeTable *previous;
  void *allocate, *fromObject, *toObject;
  int (*borrow)(void *object, nb::dlpack::dltensor *tensor);
  void *stream;
};

void Exchange::find(nb::handle object) {
  type = Py_TYPE(object.ptr());
  table = nullptr;
  nb::object capsule = nb::getattr(object.type(), kExchangeAttribute, nb::none());
  if (!capsule.is_none())
    table = static_cast<const ExchangeTable *>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  PyErr_Clear();
  while (table && table->major != 1)
    table = table->previous;
  if (table && !table->borrow)
    table = nullptr;
}

std::string Exchange::borrow(nb::handle object, Tensor &tensor) {
  if (Py_TYPE(object.ptr()) != type)
    find(object);
  if (!table)
    return "it has no __dlpack_c_exchange_api__, as tensors of PyTorch have from 2.10 on";
  if (table->borrow(object.ptr(), &tensor) != 0)
    return nb::python_error().what();
  if (tensor.device.device_type != nb::device::cpu::value)
    return "it is on a device of DLPack's type " + std::to_string(tensor.device.device_type);
  return "";
}

int64_t countElements(const Tensor &tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i)
    count *= tensor.shape[i];
  return count;
}

bool hasType(const Tensor &tensor, uint8_t type) { return fromDlpack(tensor.dtype) == type; }

std::string describe(const Tensor &tensor) {
  auto list = [&](const int64_t *numbers) {
    std::string text;
    for (int32_t i = 0; i < tensor.ndim; ++i)
      text += (i ? ", " : "") + std::to_string(numbers[i]);
    return "[" + text + "]";
  };
  const bool isFloat = tensor.dtype.code == uint8_t(nb::dlpack::dtype_code::Float);
  return (isFloat ? "float" : "DLPack's type " + std::to_string(tensor.dtype.code) + " of ") +
         std::to_string(tensor.dtype.bits) + list(tensor.shape) +
         (tensor.strides ? " with strides " + list(tensor.strides) : "");
}

bool isRowMajor(const Tensor &tensor) {
  if (!tensor.strides)
    return true;
  int64_t stride = 1;
  bool isSo = true;
  for (int32_t i = tensor.ndim; i-- > 0;) {
    isSo &= tensor.shape[i] == 1 || tensor.strides[i] == stride;
    stride *= tensor.shape[i];
  }
  return isSo || stride == 0;
}

bool isDense(const Tensor &tensor) {
  if (isRowMajor(tensor))
    return true;
  std::vector<std::pair<int64_t, int64_t>> axes;
  for (int32_t i = 0; i < tensor.ndim; ++i)
    if (tensor.shape[i] != 1)
      axes.push_back({tensor.strides[i], tensor.shape[i]});
  std::sort(axes.begin(), axes.end());
  int64_t stride = 1;
  for (auto [own, size] : axes) {
    if (own != stride)
      return false;
    stride *= size;
  }
  return true;
}

bool isLike(const Tensor &tensor, const Tensor &first) {
  if (tensor.ndim != first.ndim || !tensor.strides != !first.strides)
    return false;
  for (int32_t i = 0; i < tensor.ndim; ++i)
    if (tensor.shape[i] != first.shape[i] ||
        (tensor.strides && tensor.shape[i] != 1 && tensor.strides[i] != first.strides[i]))
      return false;
  return true;
}

} // namespace ortc::python
