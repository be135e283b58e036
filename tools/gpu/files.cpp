// Reading files whole, and writing safetensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/gpu/files.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace ortc::gpucheck {

[[noreturn]] static void fail(const std::string &path, const char *what) {
  std::fprintf(stderr, "gpu-run: %s: cannot %s it\n", path.c_str(), what);
  std::exit(ORTC_E_IO);
}

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file)
    fail(path, "read");
  return bytes;
}

std::string quote(const std::string &text) {
  std::string quoted = "\"";
  for (char c : text) {
    char escape[8];
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

/// The name in safetensors of an ONNX TensorProto.DataType.
static const char *nameType(uint8_t type) {
  static const char *const kNames[] = {"",     "F32", "U8",  "I8",  "U16", "I16", "I32", "I64", "",
                                       "BOOL", "F16", "F64", "U32", "U64", "",    "",    "BF16"};
  return type < sizeof kNames / sizeof *kNames ? kNames[type] : "";
}

void TensorFile::add(const std::string &name, const std::string &type, const std::vector<int64_t> &dims,
                     const std::string &bytes) {
  std::string shape;
  for (int64_t dim : dims)
    shape += (shape.empty() ? "" : ",") + std::to_string(dim);
  header += (header.empty() ? "" : ",") + quote(name) + ":{\"dtype\":" + quote(type) + ",\"shape\":[" +
            shape + "],\"data_offsets\":[" + std::to_string(data.size()) + "," +
            std::to_string(data.size() + bytes.size()) + "]}";
  data += bytes;
}

void TensorFile::add(const ortc_tensor_info &tensor, const std::string &bytes) {
  add(tensor.name, nameType(tensor.dtype), {tensor.dims, tensor.dims + tensor.rank}, bytes);
}

void TensorFile::write(const std::string &path) const {
  std::string text = "{" + header + "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  uint64_t size = text.size(); // little-endian, as every machine that has such a GPU
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char *>(&size), sizeof size) << text << data;
  file.close();
  if (!file)
    fail(path, "write");
}

} // namespace ortc::gpucheck
