// Models up to where MLIR begins: the checker, the data of every constant, and what exporters merged.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/Model.h"
#include "compiler/frontend/SharedInitializers.h"
#include "compiler/frontend/onnx.pb.h"
#include "test/fuzz/Models.h"

namespace ortc::fuzz {

using namespace frontend;

std::shared_ptr<const Model> readModel(Input file) {
  Limits limits;
  limits.convertedBytes = 1 << 20;
  limits.inlinedNodes = 1000;
  std::shared_ptr<const Model> model;
  (void)Model::parse(asText(file), "model", "/nonexistent", model, limits);
  SharingReport shared;
  if (model && !resolveSharedInitializers(model, {}, shared).isOk())
    model = nullptr;
  return model;
}

bool fuzzOnnx(Input file) {
  std::shared_ptr<const Model> model = readModel(file);
  if (!model)
    return false;
  TensorData data;
  for (const proto::TensorProto &tensor : model->getProto().graph().initializer())
    if (model->tensor(tensor, data).isOk())
      touch(data.bytes.data(), data.bytes.size());
  for (const proto::SparseTensorProto &tensor : model->getProto().graph().sparse_initializer())
    if (model->sparseTensor(tensor, data).isOk())
      touch(data.bytes.data(), data.bytes.size());
  return true;
}

} // namespace ortc::fuzz
