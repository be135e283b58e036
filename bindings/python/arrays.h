// Arrays of Python: those of the caller, in place, and those that are made for it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bindings/python/exchange.h"
#include "bindings/python/program.h"

namespace ortc::python {

enum class Use {
  Read,  ///< dense memory, a copy where the array's is not
  Place, ///< the array's own memory, to be read
  Write  ///< the same, to be written
};

/// An array of the caller's and a claim on its memory: an object with Python's buffers, or with DLPack. The memory of
/// a framework's tensor is the tensor's own to replace (`data =`, `set_`, `resize_`): who keeps an array beyond a call
/// asks hasMoved() before each use.
class Array {
public:
  Array() = default;
  /// `name` is that of the tensor, for messages. Raises TypeError for what is no array, ShapeError for an array that
  /// cannot be used so.
  Array(nanobind::handle object, const std::string &name, Use use);
  ~Array();
  Array(Array &&other) noexcept { *this = std::move(other); }
  Array &operator=(Array &&other) noexcept;

  void *data = nullptr;
  uint8_t type = 0; ///< TensorProto.DataType, or 0
  size_t rank = 0;
  const int64_t *dims = nullptr;
  int deviceType = 1, deviceId = 0;
  nanobind::object object; ///< as it was given

  bool fits(const Spec &spec) const;
  std::string describe() const;
  /// Whether a tensor has other memory, another shape or other strides than `spec`, which it fitted. In nanoseconds;
  /// `exchange` knows its class by then.
  bool hasMoved(const Spec &spec, Exchange &exchange) const;

private:
  bool takeBorrowed();
  bool takeBuffer(PyObject *from, bool isWritten);
  void takeTensor(nanobind::handle from, const std::string &name, Use use);
  void checkMemory(const std::string &name, Use use) const;

  bool isBorrowed = false;           ///< through the exchange: nothing else keeps the memory than the tensor
  bool hasAddress = false;           ///< through DLPack, of an object with a method data_ptr()
  std::unique_ptr<Py_buffer> buffer; ///< does not move: shapes may point into it
  nanobind::ndarray<nanobind::ro> tensor;
};

/// The address that a method data_ptr() gives.
void *readAddress(nanobind::handle tensor);

/// A new array of numpy's, of elements that are not set. Of bfloat16 it is one of ml_dtypes, or of uint16 without that
/// package.
nanobind::object makeArray(uint8_t type, size_t rank, const int64_t *dims, void *&data);

/// An array of numpy's over memory that `owner` keeps; strides in bytes, or nullptr.
nanobind::object viewAsArray(void *data, uint8_t type, size_t rank, const int64_t *dims,
                             const int64_t *strides, nanobind::handle owner);

} // namespace ortc::python
