// Arrays of Python: those of the caller, in place, and those that are made for it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/python/arrays.h"

#include <algorithm>
#include <cstdlib>

#include "bindings/python/errors.h"
#include "bindings/python/exchange.h"
#include "bindings/python/types.h"

namespace nb = nanobind;

namespace ortc::python {

Array::Array(nb::handle from, const std::string &name, Use use) : object(nb::borrow(from)) {
  if (takeBorrowed()) {
    checkMemory(name, use);
    return;
  }
  bool isBfloat = false;
  if (!takeBuffer(object.ptr(), use == Use::Write)) {
    nb::object helper = nb::module_::import_("ortc._arrays").attr("without_buffer")(object, use == Use::Read);
    if (helper.is_none()) { // DLPack alone
      takeTensor(object, name, use);
      checkMemory(name, use);
      return;
    }
    isBfloat = nb::cast<bool>(helper[1]);
    if (!takeBuffer(nb::object(helper[0]).ptr(), use == Use::Write))
      raise(ORTC_E_SHAPE, "'" + name + "' is an array whose memory cannot be " +
                              (use == Use::Write ? "written to: it is read-only, or not dense and row-major"
                                                 : "used in place: it is not dense and row-major"));
  }
  if (isBfloat)
    type = kBfloat16;
}

Array::~Array() {
  if (buffer)
    PyBuffer_Release(buffer.get());
}

Array &Array::operator=(Array &&other) noexcept {
  std::swap(data, other.data);
  std::swap(type, other.type);
  std::swap(rank, other.rank);
  std::swap(dims, other.dims);
  std::swap(deviceType, other.deviceType);
  std::swap(deviceId, other.deviceId);
  std::swap(object, other.object);
  std::swap(isBorrowed, other.isBorrowed);
  std::swap(hasAddress, other.hasAddress);
  std::swap(buffer, other.buffer);
  std::swap(tensor, other.tensor);
  return *this;
}

bool Array::takeBuffer(PyObject *from, bool isWritten) {
  auto taken = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(from, taken.get(),
                         PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (isWritten ? PyBUF_WRITABLE : 0))) {
    PyErr_Clear();
    return false;
  }
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "shapes are used as they are");
  buffer = std::move(taken);
  data = buffer->buf;
  rank = size_t(buffer->ndim);
  dims = reinterpret_cast<const int64_t *>(buffer->shape);
  type = fromFormat(buffer->format, size_t(buffer->itemsize));
  return true;
}

/// What a tensor says of itself without an export. Anything unusual is left to other ways, and their messages.
bool Array::takeBorrowed() {
  Tensor from;
  if (PyObject_CheckBuffer(object.ptr()) || !nb::hasattr(object.type(), kExchangeAttribute) ||
      !Exchange().borrow(object, from).empty() || !isRowMajor(from) ||
      (nb::hasattr(object, "is_neg") && nb::cast<bool>(object.attr("is_neg")())))
    return false;
  data = placeOf(from);
  rank = size_t(from.ndim);
  dims = from.shape;
  type = fromDlpack(from.dtype);
  isBorrowed = true;
  return true;
}

/// A tensor of PyTorch may claim more than its storage has, once that was resized. For one call only the
/// usual case is looked for, storage without any memory: asking costs as much as all else.
void Array::checkMemory(const std::string &name, Use use) const {
  uint64_t bytes = getElementBytes(type);
  for (size_t i = 0; i < rank; ++i)
    bytes *= uint64_t(dims[i]);
  bool isShort = bytes && !data;
  if (bytes && use != Use::Read && nb::hasattr(object, "untyped_storage")) {
    nb::object storage = object.attr("untyped_storage")();
    const auto begin = nb::cast<uintptr_t>(storage.attr("data_ptr")());
    const auto size = nb::cast<uint64_t>(storage.attr("nbytes")());
    const auto offset = uint64_t(reinterpret_cast<uintptr_t>(data) - begin);
    isShort |= offset > size || bytes > size - offset;
  }
  if (isShort)
    raise(ORTC_E_SHAPE, "'" + name + "' is " + describe() + ", but its storage has less memory than that");
}

bool Array::hasMoved(const Spec &spec, Exchange &exchange) const {
  if (hasAddress)
    return readAddress(object) != data;
  if (!isBorrowed)
    return false;
  Tensor now;
  return !exchange.borrow(object, now).empty() || placeOf(now) != data || size_t(now.ndim) != spec.rank ||
         !std::equal(now.shape, now.shape + now.ndim, spec.dims) || !hasType(now, spec.type) ||
         !isRowMajor(now);
}

void *readAddress(nb::handle tensor) {
  static PyObject *const name = PyUnicode_InternFromString("data_ptr");
  PyObject *const arguments[] = {tensor.ptr()};
  nb::object address = nb::steal(PyObject_VectorcallMethod(name, arguments, 1, nullptr));
  if (!address.is_valid())
    throw nb::python_error();
  return reinterpret_cast<void *>(nb::cast<uintptr_t>(address));
}

void Array::takeTensor(nb::handle from, const std::string &name, Use use) {
  nb::ndarray<nb::ro> read;
  if (use == Use::Write) {
    nb::ndarray<> written;
    if (nb::try_cast(from, written))
      read = nb::ndarray<nb::ro>(written);
  } else {
    nb::try_cast(from, read);
  }
  if (!read.is_valid())
    raise(ORTC_E_SHAPE,
          "'" + name + "' is no array that can be " + (use == Use::Write ? "written to" : "read"));
  tensor = read;
  int64_t dense = 1;
  for (size_t i = tensor.ndim(); i-- > 0; dense *= int64_t(tensor.shape(i)))
    if (tensor.shape(i) != 1 && tensor.stride(i) != dense && tensor.size())
      raise(ORTC_E_SHAPE, "'" + name + "' is a tensor that is not dense and row-major; make it contiguous");
  data = const_cast<void *>(tensor.data());
  rank = tensor.ndim();
  dims = tensor.shape_ptr();
  type = fromDlpack(tensor.dtype());
  deviceType = tensor.device_type();
  deviceId = tensor.device_id();
  hasAddress = nb::hasattr(from, "data_ptr");
}

bool Array::fits(const Spec &spec) const {
  return type == spec.type && rank == spec.rank && std::equal(dims, dims + rank, spec.dims);
}

std::string Array::describe() const {
  return type ? python::describe(type, rank, dims)
              : "of another type" + python::describe(type, rank, dims).substr(nameType(type).size());
}

nb::object viewAsArray(void *data, uint8_t type, size_t rank, const int64_t *dims, const int64_t *strides,
                       nb::handle owner) {
  const bool isBfloat = type == kBfloat16;
  auto element = int64_t(getElementBytes(type));
  if (!element)
    raise(ORTC_E_SHAPE, "numpy has no arrays of " + nameType(type));
  size_t shape[ORTC_MAX_RANK];
  int64_t steps[ORTC_MAX_RANK];
  for (size_t i = 0; i < rank; ++i) {
    shape[i] = size_t(dims[i]);
    steps[i] = strides ? strides[i] / element : 0;
  }
  nb::ndarray<nb::numpy> array(data, rank, shape, owner, strides ? steps : nullptr,
                               toDlpack(isBfloat ? 4 : type));
  nb::object result = array.cast(nb::rv_policy::reference);
  return isBfloat ? nb::module_::import_("ortc._arrays").attr("as_bfloat16")(result) : result;
}

nb::object makeArray(uint8_t type, size_t rank, const int64_t *dims, void *&data) {
  size_t bytes = std::max<size_t>(getElementBytes(type), 1);
  for (size_t i = 0; i < rank; ++i)
    bytes *= size_t(dims[i]);
  data = std::aligned_alloc(ORTC_ALIGNMENT, (std::max<size_t>(bytes, 1) + ORTC_ALIGNMENT - 1) /
                                                ORTC_ALIGNMENT * ORTC_ALIGNMENT);
  if (!data)
    throw std::bad_alloc();
  nb::capsule owner(data, [](void *memory) noexcept { std::free(memory); });
  return viewAsArray(data, type, rank, dims, nullptr, owner);
}

} // namespace ortc::python
