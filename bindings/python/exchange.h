// Tensors of a framework, without a call of Python: DLPack's C exchange.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <nanobind/ndarray.h>
#include <string>

namespace ortc::python {

struct ExchangeTable;
/// Of classes whose tensors have the exchange.
inline constexpr const char *kExchangeAttribute = "__dlpack_c_exchange_api__";
using Tensor = nanobind::dlpack::dltensor;

/// Looks at tensors through the table of their class (PyTorch has one from 2.10 on), in a few nanoseconds.
class Exchange {
public:
  /// "", or why a tensor cannot be looked at, or is not on the processor. Shape and strides are the tensor's own.
  std::string borrow(nanobind::handle object, Tensor &tensor);

private:
  void find(nanobind::handle object);
  PyTypeObject *type = nullptr; ///< the one that `table` is of
  const ExchangeTable *table = nullptr;
};

inline char *placeOf(const Tensor &tensor) { return static_cast<char *>(tensor.data) + tensor.byte_offset; }
int64_t countElements(const Tensor &tensor);
/// `type`: TensorProto.DataType.
bool hasType(const Tensor &tensor, uint8_t type);
std::string describe(const Tensor &tensor);
bool isRowMajor(const Tensor &tensor);
/// Whether the elements are one piece of memory without gaps, in any order of the axes.
bool isDense(const Tensor &tensor);
/// Whether both have one shape, and elements in the same order.
bool isLike(const Tensor &tensor, const Tensor &first);

} // namespace ortc::python
