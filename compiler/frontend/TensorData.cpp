// The bytes of constant tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every size is computed with overflow checks and compared with what is there before a byte is touched.
#include "compiler/frontend/Model.h"
#include "compiler/frontend/onnx.pb.h"
#include "support/MappedFile.h"
#include "support/Plural.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <new>
#include <type_traits>

namespace ortc::frontend {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "tensor bytes are viewed in place, as ONNX stores them");

namespace {
using Type = proto::TensorProto;

/// How a data type is stored.
struct TypeInfo {
  const char *name;
  int bits;   ///< in raw data; 0 for strings
  char field; ///< typed field: f float_data, i int32_data, s string_data, l int64_data, d double_data, u
              ///< uint64_data
  int64_t low, high; ///< range of an entry of int32_data
};
} // namespace

static const TypeInfo *typeInfo(int32_t type) {
  constexpr int64_t kInt32Low = std::numeric_limits<int32_t>::min(),
                    kInt32High = std::numeric_limits<int32_t>::max();
  // int32_data holds sub-byte types packed, a byte in each entry, except the 6-bit ones: one element in each
  // entry.
  static const TypeInfo kTypes[] = {
      {"UNDEFINED", -1, 0, 0, 0},
      {"FLOAT", 32, 'f', 0, 0},
      {"UINT8", 8, 'i', 0, 255},
      {"INT8", 8, 'i', -128, 127},
      {"UINT16", 16, 'i', 0, 65535},
      {"INT16", 16, 'i', -32768, 32767},
      {"INT32", 32, 'i', kInt32Low, kInt32High},
      {"INT64", 64, 'l', 0, 0},
      {"STRING", 0, 's', 0, 0},
      {"BOOL", 8, 'i', 0, 1},
      {"FLOAT16", 16, 'i', 0, 65535},
      {"DOUBLE", 64, 'd', 0, 0},
      {"UINT32", 32, 'u', 0, 4294967295},
      {"UINT64", 64, 'u', 0, 0},
      {"COMPLEX64", 64, 'f', 0, 0},
      {"COMPLEX128", 128, 'd', 0, 0},
      {"BFLOAT16", 16, 'i', 0, 65535},
      {"FLOAT8E4M3FN", 8, 'i', 0, 255},
      {"FLOAT8E4M3FNUZ", 8, 'i', 0, 255},
      {"FLOAT8E5M2", 8, 'i', 0, 255},
      {"FLOAT8E5M2FNUZ", 8, 'i', 0, 255},
      {"UINT4", 4, 'i', 0, 255},
      {"INT4", 4, 'i', -128, 255},
      {"FLOAT4E2M1", 4, 'i', 0, 255},
      {"FLOAT8E8M0", 8, 'i', 0, 255},
      {"UINT2", 2, 'i', 0, 255},
      {"INT2", 2, 'i', -128, 255},
      {"FLOAT6E2M3", 6, 'i', 0, 63},
      {"FLOAT6E3M2", 6, 'i', 0, 63},
  };
  if (type < 1 || type >= static_cast<int32_t>(sizeof(kTypes) / sizeof(kTypes[0])))
    return nullptr;
  return &kTypes[type];
}

std::string dataTypeName(int32_t type) {
  const TypeInfo *info = typeInfo(type);
  return info ? info->name : type == 0 ? "UNDEFINED" : std::to_string(type);
}

int dataTypeBytes(int32_t type) {
  const TypeInfo *info = typeInfo(type);
  return info ? (info->bits + 7) / 8 : -1;
}

static std::string text(uint64_t value) { return std::to_string(value); }

/// "[2,3]".
template <typename Dims> static std::string shapeText(const Dims &dims) {
  std::string out = "[";
  for (int64_t dim : dims)
    out += (out.size() > 1 ? "," : "") + std::to_string(dim);
  return out + "]";
}

/// Number of elements; refuses negative dimensions, products whose bits overflow 63 bits, and more bytes than pointers
/// can tell apart.
template <typename Dims> static Status countElements(const Dims &dims, int bits, int64_t &count) {
  count = 1;
  bool zero = false;
  for (int64_t dim : dims) {
    if (dim < 0)
      return Status::refusal("shape " + shapeText(dims) + " has a negative dimension");
    zero |= dim == 0;
  }
  if (zero) {
    count = 0;
    return {};
  }
  int64_t scaled = 0;
  for (int64_t dim : dims)
    if (__builtin_mul_overflow(count, dim, &count))
      return Status::refusal("the number of elements of shape " + shapeText(dims) + " overflows 63 bits");
  if (__builtin_mul_overflow(count, static_cast<int64_t>(bits ? bits : 8), &scaled))
    return Status::refusal("the size of shape " + shapeText(dims) + " overflows 63 bits");
  if (std::max(count, scaled / 8) > PTRDIFF_MAX) // what is below 8 bits becomes bytes
    return Status::refusal("shape " + shapeText(dims) + " has " + text(count) +
                           " elements, but no more than " + text(PTRDIFF_MAX) + " bytes can be read here");
  return {};
}

/// Makes `data` own a buffer of `size` bytes.
static char *allocate(TensorData &data, size_t size) {
  auto buffer =
      std::shared_ptr<char>(static_cast<char *>(::operator new(size ? size : 1, std::align_val_t(64))),
                            [](char *p) { ::operator delete(p, std::align_val_t(64)); });
  data.bytes = {buffer.get(), size};
  data.owner = buffer;
  return buffer.get();
}

/// Turns a stream of elements of 2, 4 or 6 bits, lowest first, into one element a byte.
static void unpack(TensorData &data, int bits, int64_t count) {
  std::string_view packed = data.bytes;
  std::shared_ptr<const void> keep = data.owner;
  char *out = allocate(data, static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    size_t bit = static_cast<size_t>(i) * static_cast<size_t>(bits), byte = bit / 8, shift = bit % 8;
    unsigned value = static_cast<unsigned char>(packed[byte]);
    if (shift + static_cast<size_t>(bits) > 8)
      value |= static_cast<unsigned>(static_cast<unsigned char>(packed[byte + 1])) << 8;
    out[i] = static_cast<char>((value >> shift) & ((1u << bits) - 1));
  }
}

/// Entries of the typed field that the type does not use.
static std::string wrongField(const Type &tensor, char used) {
  std::pair<char, std::pair<int, const char *>> fields[] = {
      {'f', {tensor.float_data_size(), "float_data"}},   {'i', {tensor.int32_data_size(), "int32_data"}},
      {'s', {tensor.string_data_size(), "string_data"}}, {'l', {tensor.int64_data_size(), "int64_data"}},
      {'d', {tensor.double_data_size(), "double_data"}}, {'u', {tensor.uint64_data_size(), "uint64_data"}}};
  for (auto &[letter, field] : fields)
    if (letter != used && field.first)
      return field.second;
  return "";
}

static Status countMismatch(const TypeInfo &info, const Type &tensor, const char *field, int64_t have,
                            int64_t need) {
  return Status::refusal(std::string(info.name) + " tensor of shape " + shapeText(tensor.dims()) + " needs " +
                         formatCount(need, "entry", "entries") + " in " + field + " but has " +
                         std::to_string(have));
}

/// Copies entries of an integer field into elements of `Out`, checking their range.
template <typename Out, typename Field>
static Status narrow(const TypeInfo &info, const char *field, const Field &entries, TensorData &data) {
  char *out = allocate(data, sizeof(Out) * static_cast<size_t>(entries.size()));
  for (int i = 0; i < entries.size(); ++i) {
    auto entry = entries[i];
    bool below = static_cast<int64_t>(entry) < info.low;
    if (std::is_unsigned_v<decltype(entry)> ? entry > static_cast<uint64_t>(info.high)
                                            : below || static_cast<int64_t>(entry) > info.high)
      return Status::refusal(std::string(field) + "[" + std::to_string(i) + "] = " + std::to_string(entry) +
                             " is no value of " + info.name);
    Out element = static_cast<Out>(entry);
    std::memcpy(out + sizeof(Out) * static_cast<size_t>(i), &element, sizeof(Out));
  }
  return {};
}

/// Data in a typed field. `count` elements are needed.
static Status typedData(const Type &tensor, const TypeInfo &info, int64_t count, TensorData &data) {
  auto view = [&](const auto &field) {
    data.bytes = {reinterpret_cast<const char *>(field.data()),
                  static_cast<size_t>(field.size()) * sizeof(*field.data())};
    return Status();
  };
  bool complex = tensor.data_type() == Type::COMPLEX64 || tensor.data_type() == Type::COMPLEX128;
  bool packed = info.bits == 4 || info.bits == 2;
  int64_t need = complex  ? 2 * count
                 : packed ? count / (8 / info.bits) + (count % (8 / info.bits) != 0)
                          : count;
  auto check = [&](const auto &field, const char *name) {
    return field.size() == need ? Status() : countMismatch(info, tensor, name, field.size(), need);
  };
  switch (info.field) {
  case 'f':
    ORTC_TRY(check(tensor.float_data(), "float_data"));
    return view(tensor.float_data());
  case 'd':
    ORTC_TRY(check(tensor.double_data(), "double_data"));
    return view(tensor.double_data());
  case 'l':
    ORTC_TRY(check(tensor.int64_data(), "int64_data"));
    return view(tensor.int64_data());
  case 'u':
    ORTC_TRY(check(tensor.uint64_data(), "uint64_data"));
    return info.bits == 64 ? view(tensor.uint64_data())
                           : narrow<uint32_t>(info, "uint64_data", tensor.uint64_data(), data);
  case 's':
    ORTC_TRY(check(tensor.string_data(), "string_data"));
    for (const std::string &s : tensor.string_data())
      data.strings.push_back(s);
    return {};
  default:
    break;
  }
  ORTC_TRY(check(tensor.int32_data(), "int32_data"));
  if (info.bits == 32)
    return view(tensor.int32_data());
  if (info.bits == 16)
    return narrow<uint16_t>(info, "int32_data", tensor.int32_data(), data);
  ORTC_TRY(narrow<uint8_t>(info, "int32_data", tensor.int32_data(), data));
  if (packed)
    unpack(data, info.bits, count);
  return {};
}

/// Parses a decimal number without sign.
static bool parseSize(const std::string &digits, size_t &value) {
  value = 0;
  for (char c : digits)
    if (c < '0' || c > '9' || __builtin_mul_overflow(value, size_t(10), &value) ||
        __builtin_add_overflow(value, static_cast<size_t>(c - '0'), &value))
      return false;
  return !digits.empty();
}

std::vector<std::string> Model::getExternalFiles() const {
  std::lock_guard<std::mutex> guard(lock);
  std::vector<std::string> files;
  for (const auto &[location, file] : external)
    files.push_back((std::filesystem::path(folder) / location).string());
  return files;
}

Status Model::checkFiles() const {
  constexpr char changed[] = " was changed while it was read";
  if (file && !file->isUnchanged())
    return Status::refusal("'" + name + "'" + changed);
  std::lock_guard<std::mutex> guard(lock);
  for (const auto &[location, data] : external)
    if (!data->isUnchanged())
      return Status::refusal("'" + name + "': external data file '" + location + "'" + changed);
  return {};
}

/// Maps an external data file, which has to lie in the model's folder after all links are followed.
Status Model::openExternal(const std::string &location, std::shared_ptr<const MappedFile> &file) const {
  namespace fs = std::filesystem;
  std::string quoted = "external data file '" + location + "'";
  if (location.empty())
    return Status::refusal("external data has no location");
  if (location.find('\0') != std::string::npos)
    return Status::refusal("the location of external data holds a zero byte");
  fs::path relative(location);
  if (relative.is_absolute() || location.front() == '\\' || location.find(':') == 1)
    return Status::refusal(quoted + " is an absolute path; data has to lie in the model's folder");
  for (const fs::path &part : relative)
    if (part == "..")
      return Status::refusal(quoted +
                             " leaves the model's folder by '..'; data has to lie in the model's folder");
  std::lock_guard<std::mutex> guard(lock);
  auto known = external.find(location);
  if (known != external.end()) {
    file = known->second;
    return {};
  }
  std::error_code code;
  fs::path root = fs::canonical(folder, code);
  if (code)
    return Status::refusal("cannot resolve the model's folder '" + folder + "': " + code.message());
  fs::path real = fs::canonical(root / relative, code);
  if (code)
    return Status::refusal(quoted + " cannot be opened in the model's folder '" + folder +
                           "': " + code.message() + "; copy it next to the model");
  fs::path inside = real.lexically_relative(root);
  if (inside.empty() || *inside.begin() == "..")
    return Status::refusal(quoted + " is a link that leaves the model's folder; copy the data there");
  ORTC_TRY(map(real.string(), limits.externalBytes, file));
  external[location] = file;
  return {};
}

Status Model::externalBytes(const Type &tensor, size_t needed, TensorData &data) const {
  std::string location;
  size_t offset = 0, length = 0;
  bool hasLength = false;
  for (const proto::StringStringEntryProto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset" && !parseSize(entry.value(), offset))
      return Status::refusal("external data has the offset '" + entry.value() +
                             "', which is no number of bytes");
    else if (entry.key() == "length" && !(hasLength = parseSize(entry.value(), length)))
      return Status::refusal("external data has the length '" + entry.value() +
                             "', which is no number of bytes");
  }
  std::shared_ptr<const MappedFile> file;
  ORTC_TRY(openExternal(location, file));
  size_t size = file->getBytes();
  if (offset > size || needed > size - offset)
    return Status::refusal("external data file '" + location + "' has " + text(size) + " bytes, but bytes " +
                           text(offset) + " to " + text(offset) + " + " + text(needed) + " are needed");
  if (!hasLength) // the standard leaves it to the tensor
    length = needed;
  if (length != needed)
    return Status::refusal("external data has " + text(length) + " bytes but shape " +
                           shapeText(tensor.dims()) + " of " + dataTypeName(tensor.data_type()) + " needs " +
                           text(needed));
  data.bytes = file->getText().substr(offset, needed);
  data.owner = file;
  return {};
}

/// The data of a tensor; `readExternal` gives what is in another file.
static Status readTensor(const Type &tensor, const Limits &limits, std::shared_ptr<const void> owner,
                         const std::function<Status(size_t needed)> &readExternal, TensorData &data) {
  data = TensorData();
  const TypeInfo *info = typeInfo(tensor.data_type());
  if (!info)
    return Status::refusal(tensor.data_type() == 0
                               ? "has no data type"
                               : "unknown data type " + std::to_string(tensor.data_type()));
  int64_t count = 0;
  ORTC_TRY(countElements(tensor.dims(), info->bits, count));
  if (tensor.has_segment())
    return Status::refusal("tensors stored in segments are not supported; export the model again");
  data.type = tensor.data_type();
  data.dims.assign(tensor.dims().begin(), tensor.dims().end());
  data.owner = std::move(owner);
  bool external = tensor.data_location() == Type::EXTERNAL;
  std::string other = wrongField(tensor, external || tensor.has_raw_data() ? 0 : info->field);
  if (!other.empty())
    return Status::refusal(external                ? "has external data and " + other
                           : tensor.has_raw_data() ? "has raw_data and " + other
                                                   : std::string(info->name) + " data is stored in " + other);
  if (external && tensor.has_raw_data())
    return Status::refusal("has external data and raw_data");
  if (!external && !tensor.has_raw_data()) {
    if (info->bits != 32 && info->bits != 64 && info->bits != 128 &&
        static_cast<size_t>(count) > limits.convertedBytes)
      return Status::refusal("has " + std::to_string(count) + " elements; at most " +
                             text(limits.convertedBytes) + " bytes are converted");
    return typedData(tensor, *info, count, data);
  }
  if (info->bits == 0)
    return Status::refusal("STRING data has to be in string_data, not in raw_data or an external file");
  size_t needed = (static_cast<size_t>(count) * static_cast<size_t>(info->bits) + 7) / 8;
  if (external) {
    ORTC_TRY(readExternal(needed));
  } else {
    if (tensor.raw_data().size() != needed)
      return Status::refusal("raw_data has " + text(tensor.raw_data().size()) + " bytes but shape " +
                             shapeText(tensor.dims()) + " of " + info->name + " needs " + text(needed));
    data.bytes = tensor.raw_data();
  }
  if (tensor.data_type() == Type::BOOL)
    for (size_t i = 0; i < data.bytes.size(); ++i)
      if (data.bytes[i] & ~1)
        return Status::refusal("BOOL element " + text(i) + " is " +
                               text(static_cast<unsigned char>(data.bytes[i])) + ", not 0 or 1");
  if (info->bits < 8) {
    if (static_cast<size_t>(count) > limits.convertedBytes)
      return Status::refusal("has " + std::to_string(count) + " elements; at most " +
                             text(limits.convertedBytes) + " bytes are converted");
    unpack(data, info->bits, count);
  }
  return {};
}

Status Model::tensor(const Type &tensor, TensorData &data) const {
  return readTensor(
      tensor, limits, shared_from_this(), [&](size_t needed) { return externalBytes(tensor, needed, data); },
      data);
}

Status readHeldData(const Type &tensor, TensorData &data) {
  return readTensor(
      tensor, Limits(), nullptr, [](size_t) { return Status::refusal("external data is not read here"); },
      data);
}

/// The element that entry `i` of `indices` ([n] or [n, rank]) points to.
static Status linearIndex(const TensorData &indices, const std::vector<int64_t> &dims, int64_t count,
                          size_t i, int64_t &linear) {
  auto at = [&](size_t k) {
    int64_t value = 0;
    std::memcpy(&value, indices.bytes.data() + 8 * k, 8);
    return value;
  };
  if (indices.dims.size() == 1) {
    linear = at(i);
    if (linear < 0 || linear >= count)
      return Status::refusal("index " + std::to_string(linear) + " is outside of shape " + shapeText(dims));
    return {};
  }
  linear = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t index = at(i * dims.size() + d);
    if (index < 0 || index >= dims[d])
      return Status::refusal("index " + std::to_string(index) + " of dimension " + std::to_string(d) +
                             " is outside of shape " + shapeText(dims));
    linear = linear * dims[d] + index;
  }
  return {};
}

size_t Model::sparseAllowance(const proto::SparseTensorProto &sparse) {
  size_t entries = sparse.values().dims_size() ? static_cast<size_t>(sparse.values().dims(0)) : 0;
  return 64 * entries * static_cast<size_t>(std::max(1, dataTypeBytes(sparse.values().data_type())));
}

Status Model::sparseTensor(const proto::SparseTensorProto &sparse, TensorData &data) const {
  TensorData values, indices;
  if (Status status = tensor(sparse.values(), values); !status.isOk())
    return Status::refusal("values of a sparse tensor: " + status.getMessage());
  if (Status status = tensor(sparse.indices(), indices); !status.isOk())
    return Status::refusal("indices of a sparse tensor: " + status.getMessage());
  int64_t count = 0;
  ORTC_TRY(countElements(sparse.dims(), 8 * std::max(1, dataTypeBytes(values.type)), count));
  std::vector<int64_t> dims(sparse.dims().begin(), sparse.dims().end());
  if (values.type == Type::STRING)
    return Status::refusal("a sparse tensor of strings is not supported");
  if (values.dims.size() != 1)
    return Status::refusal("values of a sparse tensor have shape " + shapeText(values.dims) +
                           ", not one dimension");
  int64_t entries = values.dims[0], rank = static_cast<int64_t>(dims.size());
  bool linear = indices.dims == std::vector<int64_t>{entries};
  if (indices.type != Type::INT64 || (!linear && indices.dims != std::vector<int64_t>{entries, rank}))
    return Status::refusal("indices of a sparse tensor are " + dataTypeName(indices.type) + " " +
                           shapeText(indices.dims) + ", not INT64 [" + std::to_string(entries) + "] or [" +
                           std::to_string(entries) + "," + std::to_string(rank) + "]");
  size_t width = static_cast<size_t>(dataTypeBytes(values.type)), size = static_cast<size_t>(count) * width;
  uint64_t limit = std::min<uint64_t>(limits.convertedBytes, limits.sparseBytes + sparseAllowance(sparse));
  if (size > limit)
    return Status::refusal("a sparse tensor of shape " + shapeText(dims) + " needs " + text(size) +
                           " bytes when made dense, the limit is " + text(limit));
  data = TensorData();
  data.type = values.type;
  data.dims = dims;
  char *out = allocate(data, size);
  std::memset(out, 0, size);
  int64_t previous = -1;
  for (size_t i = 0; i < static_cast<size_t>(entries); ++i) {
    int64_t element = 0;
    ORTC_TRY(linearIndex(indices, dims, count, i, element));
    if (element <= previous)
      return Status::refusal("indices of a sparse tensor are not in ascending order at entry " + text(i));
    previous = element;
    std::memcpy(out + static_cast<size_t>(element) * width, values.bytes.data() + i * width, width);
  }
  return {};
}

} // namespace ortc::frontend
