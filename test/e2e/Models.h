// Pieces of ONNX models that tests build.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "compiler/frontend/onnx.pb.h"

namespace ortc::test {

/// Fills in a graph input or output: a tensor of that element type (TensorProto.DataType) and shape.
inline void describe(proto::ValueInfoProto *value, const std::string &name, int type,
                     const std::vector<int64_t> &dims) {
  value->set_name(name);
  auto *tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (int64_t dim : dims)
    tensor->mutable_shape()->add_dim()->set_dim_value(dim);
}

} // namespace ortc::test
