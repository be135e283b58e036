// Weights that stay, as integers of few bits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/QuantizedBase.h"

#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/onnx.pb.h"
#include "support/Elements.h"
#include "support/Plural.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace ortc::frontend {

/// Where column `c` of a row lies in its data: byte and whether it is the high half. Groups of 4 bits have their
/// first 16 numbers in the low halves of their bytes.
static std::pair<int64_t, bool> placeOf(const PackedFormat &format, int64_t c) {
  int64_t group = c / PackedFormat::kGroup, within = c % PackedFormat::kGroup,
          half = PackedFormat::kGroup / 2;
  if (format.bits == 8)
    return {c, false};
  return {group * half + within % half, within >= half};
}

static int64_t placeInFile(const PackedShape &shape, bool isTransposed, int64_t r, int64_t c) {
  return isTransposed ? c * shape.rows + r : r * shape.columns + c;
}

PackedWeight packWeight(const std::vector<float> &values, const PackedShape &shape, bool isTransposed) {
  PackedWeight packed;
  packed.shape = shape;
  packed.isTransposed = isTransposed;
  int64_t bytes = shape.getGroups() * shape.getGroupBytes(), blocks = shape.getBlocks();
  packed.data.resize(size_t(shape.rows * bytes));
  packed.scales.resize(size_t(shape.rows * blocks));
  const float most = shape.format.bits == 8 ? 127 : 7;
  for (int64_t r = 0; r < shape.rows; ++r)
    for (int64_t b = 0; b < blocks; ++b) {
      int64_t begin = b * shape.format.block, end = std::min(begin + shape.format.block, shape.columns);
      float largest = 0;
      for (int64_t c = begin; c < end; ++c)
        largest = std::max(largest, std::fabs(values[size_t(placeInFile(shape, isTransposed, r, c))]));
      float scale = largest / most;
      packed.scales[size_t(r * blocks + b)] = scale;
      for (int64_t c = begin; c < end && scale > 0; ++c) {
        float quotient = values[size_t(placeInFile(shape, isTransposed, r, c))] / scale;
        auto integer = static_cast<int>(std::clamp(std::nearbyint(quotient), -most, most));
        auto [at, isHigh] = placeOf(shape.format, c);
        int8_t &byte = packed.data[size_t(r * bytes + at)];
        byte = shape.format.bits == 8
                   ? static_cast<int8_t>(integer)
                   : static_cast<int8_t>(static_cast<uint8_t>(byte) | (integer & 15) << (isHigh ? 4 : 0));
      }
    }
  return packed;
}

std::vector<float> unpackWeight(const PackedShape &shape, bool isTransposed, const int8_t *data,
                                const float *scales) {
  int64_t bytes = shape.getGroups() * shape.getGroupBytes(), blocks = shape.getBlocks();
  std::vector<float> values(size_t(shape.rows * shape.columns));
  for (int64_t r = 0; r < shape.rows; ++r)
    for (int64_t c = 0; c < shape.columns; ++c) {
      auto [at, isHigh] = placeOf(shape.format, c);
      int integer = data[r * bytes + at];
      if (shape.format.bits == 4) {
        int half = (static_cast<uint8_t>(integer) >> (isHigh ? 4 : 0)) & 15;
        integer = half < 8 ? half : half - 16;
      }
      values[size_t(placeInFile(shape, isTransposed, r, c))] =
          static_cast<float>(integer) * scales[r * blocks + c / shape.format.block];
    }
  return values;
}

/// The numbers of a floating-point tensor.
static Status readFloats(const Model &model, const proto::TensorProto &tensor, std::vector<float> &values) {
  TensorData data;
  ORTC_TRY(model.tensor(tensor, data));
  auto type = static_cast<DataType>(data.type);
  auto width = static_cast<size_t>(dataTypeBytes(data.type));
  values.resize(data.bytes.size() / width);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(
        loadAsDouble(type, reinterpret_cast<const uint8_t *>(data.bytes.data()) + i * width));
  return Status();
}

Status packBase(const Model &model, const std::vector<LoraAdapter> &adapters, const PackedFormat &format,
                const std::string &flag, PackedWeights &weights) {
  const proto::GraphProto &graph = model.getProto().graph();
  std::map<std::string, const proto::TensorProto *> initializers;
  for (const proto::TensorProto &tensor : graph.initializer())
    initializers[tensor.name()] = &tensor;
  std::set<std::string> taken = listNames(graph);
  for (const LoraAdapter &adapter : adapters) {
    auto refuse = [&](const std::string &why) {
      return Status::refusal(flag + ": '" + adapter.weight + "' " + why);
    };
    if (adapter.kind == LoraKind::conv)
      return refuse(
          "is the filter of a convolution; weights of MatMul, Gemm and Gather can be quantised, so give "
          "--lora a pattern without it, or leave --base out");
    const proto::TensorProto &tensor = *initializers.at(adapter.weight);
    // rows of a table are its vectors
    bool isTransposed = adapter.kind == LoraKind::linear && adapter.isTransposed;
    PackedShape shape{tensor.dims(isTransposed ? 1 : 0), tensor.dims(isTransposed ? 0 : 1), format};
    int64_t least = std::max(format.block, 2 * PackedFormat::kGroup);
    if (shape.columns < least)
      return refuse("has rows of " + formatCount(shape.columns, "number") + ", fewer than the " +
                    std::to_string(least) +
                    " that quantising needs (a whole block, at least 64); give --lora a pattern without it" +
                    (shape.columns >= 2 * PackedFormat::kGroup ? ", or a smaller block" : ""));
    std::vector<float> values;
    if (Status read = readFloats(model, tensor, values); !read.isOk())
      return refuse("cannot be read: " + read.getMessage());
    if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }))
      return refuse("has numbers that are not finite float32 numbers, which no scale brings to integers");
    auto packed = std::make_shared<PackedWeight>(packWeight(values, shape, isTransposed));
    packed->quantized = adapter.weight + "_quantized";
    packed->scale = adapter.weight + "_scale";
    for (const std::string &name : {packed->quantized, packed->scale})
      if (!taken.insert(name).second)
        return refuse("cannot be quantised: the name '" + name + "' is taken");
    weights[adapter.weight] = std::move(packed);
  }
  return Status();
}

} // namespace ortc::frontend
