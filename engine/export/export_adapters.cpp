// Adapters in files of their own, and merged into weights.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/export/export_adapters.h"

#include <cstring>
#include <filesystem>

#include "compiler/frontend/QuantizedBase.h"
#include "engine/artifact/adapters.h"
#include "engine/checkpoints/checkpoint_tensors.h"
#include "engine/data/writers.h"
#include "engine/export/exported_data.h"
#include "support/AtomicFile.h"
#include "support/Convert.h"

namespace ortc::engine {

static Status read(const Artifact &artifact, Session &session, const std::string &name, OutputArray &array) {
  ortc_tensor_info tensor = ORTC_INIT(ortc_tensor_info);
  if (ortc_tensor_find(artifact.getProgram(), name.c_str(), &tensor) != ORTC_OK)
    return Status::failure(artifact.getPath() + ": there is no tensor '" + name +
                           "', which its manifest names");
  auto type = static_cast<DataType>(tensor.dtype);
  std::string bytes;
  ORTC_TRY(readTensor(artifact, session, tensor, type, bytes));
  array = {name, type, Shape(tensor.dims, tensor.dims + tensor.rank), {bytes.begin(), bytes.end()}};
  return Status();
}

/// The numbers of a weight that is stored as integers, which are those that its adapter was trained beside.
static Status readQuantized(const Artifact &artifact, Session &session, const Adapter &adapter,
                            const proto::TensorProto &weight, std::vector<double> &values) {
  OutputArray data, scales;
  ORTC_TRY(read(artifact, session, adapter.quantized, data));
  ORTC_TRY(read(artifact, session, adapter.quantizedScale, scales));
  bool isTransposed = adapter.kind == "linear" && adapter.isTransposed;
  frontend::PackedShape shape;
  bool fits = weight.dims_size() == 2 && data.shape.size() == 3 && scales.shape.size() == 2 &&
              scales.shape[1] > 0 && data.type == DataType::Int8 && scales.type == DataType::Float32;
  if (fits) {
    shape = {weight.dims(isTransposed ? 1 : 0),
             weight.dims(isTransposed ? 0 : 1),
             {data.shape[2] * 8 / frontend::PackedFormat::kGroup,
              data.shape[1] * frontend::PackedFormat::kGroup / scales.shape[1]}};
    fits = (shape.format.bits == 4 || shape.format.bits == 8) &&
           shape.format.block >= frontend::PackedFormat::kGroup && data.shape == shape.getDataDims() &&
           scales.shape == shape.getScaleDims();
  }
  if (!fits)
    return Status::failure(artifact.getPath() + ": the integers of '" + adapter.weight + "' do not fit it");
  std::vector<float> scaleValues(scales.data.size() / sizeof(float));
  std::memcpy(scaleValues.data(), scales.data.data(), scaleValues.size() * sizeof(float));
  std::vector<float> numbers = frontend::unpackWeight(
      shape, isTransposed, reinterpret_cast<const int8_t *>(data.data.data()), scaleValues.data());
  values.assign(numbers.begin(), numbers.end());
  return Status();
}

/// scale B A, [out, in]: `in` is all that A has behind its rank.
static std::vector<double> productOf(const std::vector<double> &a, const std::vector<double> &b, size_t rank,
                                     double scale) {
  size_t in = a.size() / rank, out = b.size() / rank;
  std::vector<double> product(out * in);
  for (size_t o = 0; o < out; ++o)
    for (size_t r = 0; r < rank; ++r) {
      double factor = scale * b[o * rank + r];
      for (size_t i = 0; i < in; ++i)
        product[o * in + i] += factor * a[r * in + i];
    }
  return product;
}

static Status merge(const Artifact &artifact, Session &session, const Adapter &adapter,
                    proto::TensorProto &weight) {
  OutputArray a, b;
  ORTC_TRY(read(artifact, session, adapter.a, a));
  ORTC_TRY(read(artifact, session, adapter.b, b));
  auto type = static_cast<DataType>(weight.data_type());
  auto rank = static_cast<size_t>(adapter.rank);
  std::vector<double> values, left = toDoubles(b), right = toDoubles(a);
  if (adapter.quantized.empty())
    values = valuesOf(weight);
  else
    ORTC_TRY(readQuantized(artifact, session, adapter, weight, values));
  if (left.size() % rank != 0 || right.size() % rank != 0 ||
      left.size() / rank * (right.size() / rank) != values.size())
    return Status::failure(artifact.getPath() + ": the adapter of '" + adapter.weight + "' does not fit it");
  std::vector<double> product = productOf(right, left, rank, adapter.scale);
  size_t out = left.size() / rank, in = right.size() / rank;
  for (size_t o = 0; o < out; ++o)
    for (size_t i = 0; i < in; ++i)
      values[adapter.isTransposed ? i * out + o : o * in + i] += product[o * in + i];
  Array array{weight.name(),
              DataType::Float64,
              {int64_t(values.size())},
              reinterpret_cast<const uint8_t *>(values.data()),
              values.size() * sizeof(double),
              nullptr};
  Conversion conversion;
  ORTC_TRY(planConversion(array, type, "the merged weight '" + adapter.weight + "'", conversion));
  std::string bytes(values.size() * getElementBytes(type), 0);
  if (conversion.convert)
    conversion.convert(array.data, reinterpret_cast<uint8_t *>(bytes.data()), values.size());
  else
    bytes.assign(reinterpret_cast<const char *>(array.data), array.bytes);
  replaceData(weight, std::move(bytes));
  return Status();
}

Status mergeAdapters(const Artifact &artifact, Session &session, proto::GraphProto &graph) {
  std::map<std::string, proto::TensorProto *> weights;
  for (proto::TensorProto &initializer : *graph.mutable_initializer())
    weights[initializer.name()] = &initializer;
  for (const Adapter &adapter : artifact.getAdapters()) {
    auto found = weights.find(adapter.weight);
    if (found == weights.end())
      return Status::failure(artifact.getPath() + ": its source section has no weight '" + adapter.weight +
                             "', which its manifest names");
    ORTC_TRY(merge(artifact, session, adapter, *found->second));
  }
  return Status();
}

Status writePeftFolder(const Artifact &artifact, Session &session, const std::string &folder) {
  if (artifact.getAdapters().empty())
    return Status::refusal(artifact.getPath() + ": has no adapters; --lora of ortc train adds them");
  std::string config;
  ORTC_TRY(makePeftConfig(artifact.getAdapters(), config));
  std::vector<OutputArray> arrays;
  for (const Adapter &adapter : artifact.getAdapters())
    for (const std::string &name : {adapter.a, adapter.b}) {
      ORTC_TRY(read(artifact, session, name, arrays.emplace_back()));
      arrays.back().name = peftName(name);
    }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Status::failure(folder + ": cannot be created: " + error.message());
  ORTC_TRY(writeSafetensors(folder + "/" + kPeftTensors, arrays, {{"format", "pt"}}));
  return writeFile(folder + "/" + kPeftConfig, config);
}

} // namespace ortc::engine
