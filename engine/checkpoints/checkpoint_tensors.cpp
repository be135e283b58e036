// The tensors of checkpoints and deltas, for tools that compute with them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/checkpoints/checkpoint_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/artifact/artifact.h"
#include "engine/session/session.h"
#include "engine/session/tensor_roles.h"
#include "runtime/delta/quantize.h"
#include "runtime/src/internal.h"
#include "runtime/src/role_names.h"
#include "support/Elements.h"

namespace ortc::engine {

static constexpr char kFormatKey[] = "ortc.format", kChecksumKey[] = "ortc.checksum",
                      kBaseKey[] = "ortc.base";

static uint64_t hashTensor(const std::string &name, const uint8_t *data, size_t bytes) {
  return hashData(hashName(kHashSeed, name.data(), name.size()), data, bytes);
}

std::string checksumOf(const std::vector<OutputArray> &arrays) {
  uint64_t sum = 0;
  for (const OutputArray &array : arrays)
    sum += hashTensor(array.name, array.data.data(), array.data.size());
  return std::to_string(ortc::checksumOf(sum));
}

static Status checkSum(const DataSource &source, const std::string &expected) {
  uint64_t sum = 0;
  for (const std::string &name : source.getNames()) {
    Array array;
    ORTC_TRY(source.load(name, array));
    sum += hashTensor(name, array.data, array.bytes);
  }
  return std::to_string(ortc::checksumOf(sum)) == expected
             ? Status()
             : Status::failure(source.getPath() +
                               ": its tensors do not match its checksum; it was damaged on "
                               "its way, take it from where it was saved again");
}

Status openTensors(const std::string &path, CheckpointKind kind, std::unique_ptr<DataSource> &source) {
  ORTC_TRY(openSafetensors(path, source));
  auto get = [&](const char *key) {
    auto found = source->getMetadata().find(key);
    return found == source->getMetadata().end() ? "" : found->second;
  };
  std::string format = get(kFormatKey), checksum = get(kChecksumKey);
  bool isDelta = format == delta::kFormat;
  if (isDelta && kind == CheckpointKind::Checkpoint)
    return Status::refusal(path + ": is a delta, which is nothing without its base; ortc merge --base BASE "
                                  "makes a checkpoint of both");
  if (!isDelta && kind == CheckpointKind::Delta)
    return Status::refusal(path + ": is no delta, which --base asks for; ortc delta BASE NEW makes one of a "
                                  "checkpoint");
  if (!isDelta && !format.empty() && format != "1")
    return Status::failure(path + ": its metadata has 'ortc.format' = '" + format +
                           "', and this version reads 1");
  return checksum.empty() ? Status() : checkSum(*source, checksum);
}

Status writeTensors(const std::string &path, const std::vector<OutputArray> &arrays,
                    std::map<std::string, std::string> metadata, CheckpointKind kind) {
  std::erase_if(metadata, [](const auto &entry) {
    return entry.first.starts_with("ortc.") && !entry.first.starts_with(kRoleKey) && entry.first != kBaseKey;
  });
  metadata[kFormatKey] = kind == CheckpointKind::Delta ? delta::kFormat : "1";
  metadata[kChecksumKey] = checksumOf(arrays);
  return writeSafetensors(path, arrays, metadata);
}

const OutputArray *Base::find(const std::string &name) const {
  auto found = std::find_if(arrays.begin(), arrays.end(),
                            [&](const OutputArray &array) { return array.name == name; });
  return found == arrays.end() ? nullptr : &*found;
}

std::string Base::identify(const std::set<std::string> &names) const {
  uint64_t sum = 0;
  for (const OutputArray &array : arrays)
    if (names.count(array.name))
      sum += hashTensor(array.name, array.data.data(), array.data.size());
  return std::to_string(ortc::checksumOf(sum));
}

/// Whether deltas are of it.
static bool isChanging(DataType type, TensorRole role) {
  return isFloat(type) && (role == TensorRole::Parameter || role == TensorRole::Buffer);
}

static Status readCheckpoint(const std::string &path, Base &base) {
  std::unique_ptr<DataSource> source;
  ORTC_TRY(openTensors(path, CheckpointKind::Checkpoint, source));
  base.metadata = source->getMetadata();
  TensorRoles roles;
  ORTC_TRY(readRoles(*source, roles));
  for (const std::string &name : source->getNames()) {
    Array array;
    ORTC_TRY(source->load(name, array));
    base.arrays.push_back({name, array.type, array.shape, {array.data, array.data + array.bytes}});
    if (isChanging(array.type, roles.at(name)))
      base.changing.insert(name);
  }
  return Status();
}

/// As runtimes write it.
static TensorRole roleOf(const ortc_tensor_info &tensor) {
  return tensor.role == ORTC_ROLE_PARAMETER
             ? TensorRole::Parameter
             : TensorRole(int(TensorRole::State) + findSavedRole(tensor.role, tensor.flags));
}

static Status readArtifact(const std::string &path, Base &base) {
  Artifact artifact;
  ORTC_TRY(Artifact::open(path, artifact));
  if (!artifact.checkWeights().isOk())
    return Status::refusal(path +
                           ": was compiled with --no-weights; give the checkpoint that training began with");
  Session session;
  ORTC_TRY(Session::create(artifact, {1, false}, session));
  ortc_tensor_info tensor = ORTC_INIT(ortc_tensor_info);
  for (uint32_t i = 0; ortc_tensor_get(artifact.getProgram(), i, &tensor) == ORTC_OK; ++i) {
    if (tensor.role != ORTC_ROLE_PARAMETER && tensor.role != ORTC_ROLE_STATE &&
        tensor.role != ORTC_ROLE_SCALAR)
      continue;
    OutputArray array{tensor.name, static_cast<DataType>(tensor.dtype),
                      Shape(tensor.dims, tensor.dims + tensor.rank), std::vector<uint8_t>(tensor.bytes)};
    if (ortc_read(session.get(), tensor.name, array.data.data(), array.data.size()) != ORTC_OK)
      return Status::failure(artifact.getPath() + ": '" + tensor.name +
                             "' cannot be read: " + ortc_session_message(session.get()));
    TensorRole role = roleOf(tensor);
    if (role != TensorRole::Parameter)
      base.metadata[kRoleKey + array.name] = getRoleName(role);
    if (isChanging(array.type, role))
      base.changing.insert(array.name);
    base.arrays.push_back(std::move(array));
  }
  return Status();
}

static bool isArtifact(const std::string &path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code))
    return true;
  char magic[8] = {};
  std::ifstream file(path, std::ios::binary);
  file.read(magic, sizeof magic);
  return std::memcmp(magic, ORTC_MAGIC, sizeof magic) == 0;
}

Status readBase(const std::string &path, Base &base) {
  base = Base();
  base.path = path;
  return isArtifact(path) ? readArtifact(path, base) : readCheckpoint(path, base);
}

std::vector<double> toDoubles(DataType type, const uint8_t *data, size_t count) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = loadAsDouble(type, data + i * getElementBytes(type));
  return values;
}

std::vector<double> toDoubles(const OutputArray &array) {
  return toDoubles(array.type, array.data.data(), array.data.size() / getElementBytes(array.type));
}

/// Rounded so that a second rounding, to a type with a mantissa of at most 22 bits, gives what one would.
static float roundToOdd(double value) {
  float near = static_cast<float>(value);
  if (double(near) == value || !std::isfinite(near))
    return near;
  if (std::abs(double(near)) > std::abs(value))
    near = std::nextafter(near, 0.0f);
  uint32_t bits;
  std::memcpy(&bits, &near, sizeof bits);
  bits |= 1;
  std::memcpy(&near, &bits, sizeof bits);
  return near;
}

std::vector<uint8_t> fromDoubles(DataType type, const std::vector<double> &values) {
  size_t size = getElementBytes(type);
  std::vector<uint8_t> data(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    uint8_t *to = data.data() + i * size;
    auto put = [&](auto value) { std::memcpy(to, &value, sizeof value); };
    if (type == DataType::Float64)
      put(values[i]);
    else if (type == DataType::Float32)
      put(static_cast<float>(values[i]));
    else if (type == DataType::Float16)
      put(floatToHalf(roundToOdd(values[i])));
    else
      put(floatToBfloat(roundToOdd(values[i])));
  }
  return data;
}

} // namespace ortc::engine
