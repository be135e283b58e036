// Tensors of a session as data of an ONNX file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/export/exported_data.h"

#include "compiler/frontend/GraphEdits.h"
#include "engine/checkpoints/checkpoint_tensors.h"
#include "support/Convert.h"
#include "support/Elements.h"

namespace ortc::engine {

Status readTensor(const Artifact &artifact, Session &session, const ortc_tensor_info &tensor, DataType type,
                  std::string &bytes) {
  auto stored = static_cast<DataType>(tensor.dtype);
  std::string name = tensor.name;
  std::vector<uint8_t> values(tensor.bytes);
  if (ortc_read(session.get(), tensor.name, values.data(), values.size()) != ORTC_OK)
    return Status::failure(artifact.getPath() + ": tensor '" + name +
                           "' cannot be read: " + ortc_session_message(session.get()));
  if (stored == type) {
    bytes.assign(values.begin(), values.end());
    return Status();
  }
  Array array{name,          stored,        {int64_t(values.size() / getElementBytes(stored))},
              values.data(), values.size(), nullptr};
  Conversion conversion;
  ORTC_TRY(planConversion(array, type, artifact.getPath() + ": tensor '" + name + "'", conversion));
  bytes.resize(size_t(array.shape[0]) * getElementBytes(type));
  conversion.convert(values.data(), reinterpret_cast<uint8_t *>(bytes.data()), size_t(array.shape[0]));
  return Status();
}

std::vector<double> valuesOf(const proto::TensorProto &tensor) {
  if (tensor.double_data_size())
    return {tensor.double_data().begin(), tensor.double_data().end()};
  if (tensor.float_data_size())
    return {tensor.float_data().begin(), tensor.float_data().end()};
  auto type = static_cast<DataType>(tensor.data_type());
  std::string bytes = tensor.raw_data();
  for (int32_t value : tensor.int32_data()) { // 16 bits in each
    auto bits = static_cast<uint16_t>(value);
    bytes.append(reinterpret_cast<const char *>(&bits), sizeof bits);
  }
  return toDoubles(type, reinterpret_cast<const uint8_t *>(bytes.data()),
                   bytes.size() / getElementBytes(type));
}

void replaceData(proto::TensorProto &tensor, std::string bytes) {
  frontend::dropData(tensor);
  tensor.set_raw_data(std::move(bytes));
}

} // namespace ortc::engine
