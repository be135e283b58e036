// The tensors of checkpoints and deltas, for tools that compute with them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/data/data_source.h"
#include "engine/data/writers.h"

namespace ortc::engine {

/// What "ortc.format" of the metadata says.
enum class CheckpointKind { Checkpoint, Delta };

/// Opens a safetensors file that is of this kind; one without "ortc.format" is a checkpoint with weights alone. Refuses
/// the other kind, and fails where the data do not match the checksum in the metadata.
Status openTensors(const std::string &path, CheckpointKind kind, std::unique_ptr<DataSource> &source);

/// The checksum of the metadata, as runtimes compute it; the order of arrays does not matter.
std::string checksumOf(const std::vector<OutputArray> &arrays);

/// Writes a checkpoint or delta that runtimes take. Keys of `metadata` that begin with "ortc." are replaced, except
/// "ortc.base" and the roles of tensors.
Status writeTensors(const std::string &path, const std::vector<OutputArray> &arrays,
                    std::map<std::string, std::string> metadata, CheckpointKind kind);

/// What a training begins with: all tensors of a checkpoint, or of an artifact as they are at first.
struct Base {
  std::string path;
  std::vector<OutputArray> arrays;
  std::map<std::string, std::string> metadata;
  std::set<std::string> changing; ///< the tensors that deltas are of: trained ones, and running statistics

  const OutputArray *find(const std::string &name) const;
  /// The checksum of some tensors, which a delta of them knows its base by.
  std::string identify(const std::set<std::string> &names) const;
};

/// `path`: a checkpoint, or an artifact (its folder, or the file in it), whose roles go into the metadata. Parameters
/// and buffers of floating point are what changes (engine/session/tensor_roles.h).
Status readBase(const std::string &path, Base &base);

/// The elements of a float type as doubles, and the other way round: rounded once, to nearest, ties to even.
std::vector<double> toDoubles(DataType type, const uint8_t *data, size_t count);
std::vector<double> toDoubles(const OutputArray &array);
std::vector<uint8_t> fromDoubles(DataType type, const std::vector<double> &values);

} // namespace ortc::engine
