// Tensors of a session as data of an ONNX file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/onnx.pb.h"
#include "engine/session/session.h"

namespace ortc::engine {

/// The bytes of a tensor of the session in the dtype of the file: a float16 weight has a float32 master.
Status readTensor(const Artifact &artifact, Session &session, const ortc_tensor_info &tensor, DataType type,
                  std::string &bytes);

/// The elements of a floating-point initializer, in whichever field the file has them.
std::vector<double> valuesOf(const proto::TensorProto &tensor);

/// Puts `bytes` in as the only data of the initializer.
void replaceData(proto::TensorProto &tensor, std::string bytes);

} // namespace ortc::engine
