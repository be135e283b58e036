// A checked ONNX model in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/Status.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace ortc {
class MappedFile;
} // namespace ortc

namespace ortc::proto {
class AttributeProto;
class GraphProto;
class ModelProto;
class NodeProto;
class SparseTensorProto;
class TensorProto;
} // namespace ortc::proto

namespace ortc::frontend {

/// What a file may ask for before it is refused.
struct Limits {
  size_t modelBytes = (size_t(1) << 31) - 1;   ///< protobuf itself stops at 2 GiB
  uint64_t externalBytes = uint64_t(1) << 40;  ///< of one external data file; it is mapped, not read
  uint64_t convertedBytes = uint64_t(1) << 32; ///< of one tensor that has to be converted or made dense
  size_t sparseBytes = size_t(1) << 28; ///< of all sparse tensors made dense, beside 64 times their values
  int64_t inlinedNodes = 200'000;       ///< after all calls of model-local functions are expanded
};

/// The elements of a constant tensor.
struct TensorData {
  int32_t type = 0;          ///< proto::TensorProto::DataType
  std::vector<int64_t> dims; ///< none is negative, the product does not overflow
  /// Little-endian, packed, each element in a whole number of bytes: booleans are 0 or 1, types below 8 bits
  /// stand zero-extended in a byte. Empty for strings.
  std::string_view bytes;
  std::vector<std::string_view> strings;
  /// Keeps `bytes` and `strings` alive: the model, a mapped file, or a converted copy.
  std::shared_ptr<const void> owner;
};

/// "FLOAT", ...; "28" becomes its name, an unknown number stays a number.
std::string dataTypeName(int32_t type);
/// Bytes of one element of TensorData::bytes; 0 for strings, -1 for an unknown type.
int dataTypeBytes(int32_t type);

/// A model that passed every check that needs no shapes: names resolve, nodes stand in topological order
/// (they are sorted when the file's are not), tensors have the bytes their shapes need, standard operators
/// have the inputs and attributes their definitions allow, functions do not recurse. Immutable; may be shared
/// between threads.
class Model : public std::enable_shared_from_this<Model> {
public:
  /// Reads and checks a file.
  static Status load(const std::string &path, std::shared_ptr<const Model> &model, const Limits &limits = {});
  /// Checks bytes in memory. `name` stands for the file in messages; external data is looked for in `folder`.
  static Status parse(std::string_view bytes, const std::string &name, const std::string &folder,
                      std::shared_ptr<const Model> &model, const Limits &limits = {});
  /// A copy of this model with its message changed, checked again.
  Status edit(const std::function<void(proto::ModelProto &)> &change,
              std::shared_ptr<const Model> &edited) const;
  ~Model();

  const proto::ModelProto &getProto() const { return *proto; }
  const std::string &getName() const { return name; }
  /// The external data files that were opened.
  std::vector<std::string> getExternalFiles() const;
  /// Fails where the model's file or one of them was changed since it was opened: constants are views of them.
  Status checkFiles() const;

  /// The data of a tensor, without a copy where the file stores it packed. Messages do not name the tensor.
  Status tensor(const proto::TensorProto &tensor, TensorData &data) const;
  /// Bytes that a sparse tensor may be when made dense, because the file holds a part of it.
  static size_t sparseAllowance(const proto::SparseTensorProto &tensor);
  /// A sparse tensor made dense.
  Status sparseTensor(const proto::SparseTensorProto &tensor, TensorData &data) const;

private:
  Model(std::string name, std::string folder, const Limits &limits);
  /// Maps a file of at most `limit` bytes; what cannot be mapped is refused.
  static Status map(const std::string &path, uint64_t limit, std::shared_ptr<const MappedFile> &file);
  Status read(std::string_view bytes);
  Status externalBytes(const proto::TensorProto &tensor, size_t needed, TensorData &data) const;
  Status openExternal(const std::string &location, std::shared_ptr<const MappedFile> &file) const;

  std::string name, folder;
  Limits limits;
  std::unique_ptr<proto::ModelProto> proto;
  std::shared_ptr<const MappedFile> file; ///< null where it was parsed from memory
  mutable std::mutex lock;                ///< guards `external`
  mutable std::map<std::string, std::shared_ptr<const MappedFile>> external;
};

/// The data of a tensor that has them itself, and that lives as long as they are used.
Status readHeldData(const proto::TensorProto &tensor, TensorData &data);

/// The letter (OnnxOperators.h) of the attribute's type, from the value where old files state no type; 0 if
/// neither tells.
char attributeKind(const proto::AttributeProto &attribute);

/// The version that `imports` selects for a domain ("" and "ai.onnx" are one); 0 when it is not imported.
template <typename Imports> int64_t opsetOf(const Imports &imports, std::string_view domain) {
  auto canonical = [](std::string_view d) { return d == "ai.onnx" ? std::string_view() : d; };
  for (const auto &import : imports)
    if (canonical(import.domain()) == canonical(domain))
      return import.version();
  return 0;
}

/// The default domain has two spellings; this gives the empty one.
inline std::string_view canonicalDomain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

/// How messages call a node: "node 'conv1' (Conv)"; by its first output when it has no name.
std::string describe(const proto::NodeProto &node);

} // namespace ortc::frontend
