// From a file to a checked model.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/Model.h"

#include "compiler/frontend/ModelChecker.h"
#include "compiler/frontend/onnx.pb.h"
#include "support/MappedFile.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

namespace ortc::frontend {

Model::Model(std::string name, std::string folder, const Limits &limits)
    : name(std::move(name)), folder(std::move(folder)), limits(limits),
      proto(std::make_unique<proto::ModelProto>()) {}
Model::~Model() = default;

/// Reads a varint; false at the end of the bytes or after ten of them.
static bool readVarint(std::string_view bytes, size_t &at, uint64_t &value) {
  value = 0;
  for (int shift = 0; shift < 70 && at < bytes.size(); shift += 7) {
    uint64_t byte = static_cast<unsigned char>(bytes[at++]);
    value |= (byte & 0x7f) << (shift < 64 ? shift : 63);
    if (!(byte & 0x80))
      return true;
  }
  return false;
}

/// Why the bytes do not parse: walks the fields of the outermost message, where a file that was cut short
/// shows.
static std::string explainParseFailure(std::string_view bytes) {
  if (bytes.substr(0, 4) == std::string_view("PK\3\4", 4))
    return "is a zip archive (a PyTorch or NumPy file?), not an ONNX model; export the network to ONNX first";
  if (bytes.substr(0, 23) == "version https://git-lfs")
    return "is a Git LFS pointer, not the model itself; fetch it with 'git lfs pull'";
  static const char *kNot = "is not an ONNX model: ";
  for (size_t at = 0; at < bytes.size();) {
    size_t start = at;
    uint64_t tag = 0, value = 0;
    std::string where = "at byte " + std::to_string(start);
    if (!readVarint(bytes, at, tag))
      return "is cut short: it ends inside a field that starts " + where + "; copy or export it again";
    uint64_t field = tag >> 3;
    if (field == 0 || field > 536870911)
      return kNot + ("there is no protobuf field " + where);
    size_t fixed = 0;
    switch (tag & 7) {
    case 0:
      if (!readVarint(bytes, at, value))
        return "is cut short: it ends inside field " + std::to_string(field) + ", which starts " + where +
               "; copy or export it again";
      continue;
    case 1:
      fixed = 8;
      break;
    case 2:
      if (!readVarint(bytes, at, value))
        return "is cut short: it ends inside field " + std::to_string(field) + ", which starts " + where +
               "; copy or export it again";
      break;
    case 5:
      fixed = 4;
      break;
    default:
      return kNot + ("field " + std::to_string(field) + " " + where + " is of no type that ONNX uses");
    }
    uint64_t length = fixed ? fixed : value;
    if (length > bytes.size() - at)
      return "is cut short or no ONNX model: field " + std::to_string(field) + " " + where + " needs " +
             std::to_string(length) + " bytes but " + std::to_string(bytes.size() - at) +
             " are left; copy or export it again";
    at += length;
  }
  return "is not an ONNX model, or is damaged: a part of it is not a valid protobuf message or is nested too "
         "deeply";
}

Status Model::parse(std::string_view bytes, const std::string &name, const std::string &folder,
                    std::shared_ptr<const Model> &model, const Limits &limits) {
  std::shared_ptr<Model> parsed(new Model(name, folder, limits));
  ORTC_TRY(parsed->read(bytes));
  model = std::move(parsed);
  return {};
}

Status Model::read(std::string_view bytes) {
  std::string quoted = "'" + name + "'";
  if (bytes.empty())
    return Status::refusal(quoted + " is empty; export the model again");
  if (bytes.size() > limits.modelBytes)
    return Status::refusal(quoted + " has " + std::to_string(bytes.size()) + " bytes, the limit is " +
                           std::to_string(limits.modelBytes) + "; store its tensors as external data");
  google::protobuf::LogSilencer silence; // the reason is in our message
  if (!proto->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Status::refusal(quoted + " " + explainParseFailure(bytes));
  if (Status status = checkModel(*this, *proto, limits); !status.isOk())
    return Status::refusal(quoted + ": " + status.getMessage());
  return {};
}

Status Model::edit(const std::function<void(proto::ModelProto &)> &change,
                   std::shared_ptr<const Model> &edited) const {
  std::shared_ptr<Model> copy(new Model(name, folder, limits));
  *copy->proto = *proto;
  copy->file = file;
  {
    std::lock_guard<std::mutex> guard(lock);
    copy->external = external;
  }
  change(*copy->proto);
  if (Status status = checkModel(*copy, *copy->proto, limits); !status.isOk())
    return Status::refusal("'" + name + "': " + status.getMessage());
  edited = std::move(copy);
  return {};
}

Status Model::map(const std::string &path, uint64_t limit, std::shared_ptr<const MappedFile> &file) {
  if (Status status = MappedFile::open(path, file); !status.isOk())
    return Status::refusal(status.getMessage());
  return file->getBytes() <= limit
             ? Status()
             : Status::refusal("'" + path + "' has " + std::to_string(file->getBytes()) +
                               " bytes, the limit is " + std::to_string(limit));
}

Status Model::load(const std::string &path, std::shared_ptr<const Model> &model, const Limits &limits) {
  std::shared_ptr<const MappedFile> file;
  ORTC_TRY(map(path, limits.modelBytes, file));
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  std::shared_ptr<Model> loaded(new Model(path, folder, limits));
  ORTC_TRY(loaded->read(file->getText()));
  forgetPages(file->getData(), file->getBytes()); // protobuf has copied it
  loaded->file = std::move(file);
  model = std::move(loaded);
  return {};
}

char attributeKind(const proto::AttributeProto &a) {
  switch (a.type()) {
  case proto::AttributeProto::FLOAT:
    return 'f';
  case proto::AttributeProto::INT:
    return 'i';
  case proto::AttributeProto::STRING:
    return 's';
  case proto::AttributeProto::TENSOR:
    return 't';
  case proto::AttributeProto::GRAPH:
    return 'g';
  case proto::AttributeProto::SPARSE_TENSOR:
    return 'p';
  case proto::AttributeProto::TYPE_PROTO:
    return 'y';
  case proto::AttributeProto::FLOATS:
    return 'F';
  case proto::AttributeProto::INTS:
    return 'I';
  case proto::AttributeProto::STRINGS:
    return 'S';
  case proto::AttributeProto::TENSORS:
    return 'T';
  case proto::AttributeProto::GRAPHS:
    return 'G';
  case proto::AttributeProto::SPARSE_TENSORS:
    return 'P';
  case proto::AttributeProto::TYPE_PROTOS:
    return 'Y';
  case proto::AttributeProto::UNDEFINED:
    break;
  }
  // IR version 1 had no type field.
  if (a.has_f())
    return 'f';
  if (a.has_i())
    return 'i';
  if (a.has_s())
    return 's';
  if (a.has_t())
    return 't';
  if (a.has_g())
    return 'g';
  if (a.floats_size())
    return 'F';
  if (a.ints_size())
    return 'I';
  if (a.strings_size())
    return 'S';
  if (a.tensors_size())
    return 'T';
  return 0;
}

std::string describe(const proto::NodeProto &node) {
  std::string text = "node '";
  if (!node.name().empty())
    text += node.name();
  else if (node.output_size())
    text += node.output(0);
  return text + "' (" + node.op_type() + ")";
}

} // namespace ortc::frontend
