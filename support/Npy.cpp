// The npy format, versions 1 to 3.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "support/MappedFile.h"

namespace ortc {
namespace {

constexpr size_t kMaxRank = 32;              // numpy's own limit
constexpr size_t kMostHeaderBytes = 1 << 20; // numpy itself stops at 10,000

/// The header's fields as they are written.
struct Header {
  std::string descr;
  bool isFortran = false;
  Shape shape;
};

/// A reader of the one Python dict an npy header is: string keys, values that are strings, booleans or tuples
/// of whole numbers. Anything else is an error.
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : text(text) {}

  /// Returns "" or what is wrong.
  std::string parse(Header &header) {
    bool seen[3] = {};
    if (!take('{'))
      return "the header does not begin with '{'";
    while (!take('}')) {
      std::string key;
      if (!parseString(key) || !take(':'))
        return "the header has no key at byte " + std::to_string(at);
      int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : 3;
      if (which == 3)
        return "the header has an unknown key '" + key + "'";
      if (seen[which])
        return "the header has the key '" + key + "' twice";
      seen[which] = true;
      if (which == 0 && !parseString(header.descr))
        return "the type is not a plain string; structured arrays are not read";
      if (which == 1 && !parseBool(header.isFortran))
        return "fortran_order is neither True nor False";
      if (which == 2 && !parseShape(header.shape))
        return "the shape is not a tuple of at most 32 whole numbers";
      if (!take(',') && peek() != '}')
        return "the header has no ',' at byte " + std::to_string(at);
    }
    for (int i = 0; i < 3; ++i)
      if (!seen[i])
        return std::string("the header has no key '") +
               (i == 0   ? "descr"
                : i == 1 ? "fortran_order"
                         : "shape") +
               "'";
    while (at < text.size()) {
      if (!isBlank(text[at]))
        return "the header goes on after '}'";
      ++at;
    }
    return "";
  }

private:
  static bool isBlank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

  char peek() {
    while (at < text.size() && isBlank(text[at]))
      ++at;
    return at < text.size() ? text[at] : '\0';
  }
  bool take(char wanted) {
    if (peek() != wanted)
      return false;
    ++at;
    return true;
  }
  bool takeWord(std::string_view word) {
    peek();
    if (text.substr(at, word.size()) != word)
      return false;
    at += word.size();
    return true;
  }
  bool parseString(std::string &value) {
    char quote = peek();
    if (quote != '\'' && quote != '"')
      return false;
    size_t end = text.find(quote, at + 1);
    if (end == std::string_view::npos)
      return false;
    value = std::string(text.substr(at + 1, end - at - 1));
    at = end + 1;
    return true;
  }
  bool parseBool(bool &value) {
    value = takeWord("True");
    return value || takeWord("False");
  }
  bool parseShape(Shape &shape) {
    if (!take('('))
      return false;
    while (!take(')')) {
      peek();
      int64_t size = 0;
      auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), size);
      if (error != std::errc() || size < 0 || shape.size() == kMaxRank)
        return false;
      at = size_t(end - text.data());
      takeWord("L"); // files of Python 2
      shape.push_back(size);
      if (!take(',') && peek() != ')')
        return false;
    }
    return true;
  }

  std::string_view text;
  size_t at = 0;
};

} // namespace

/// Element type of a type string such as '<f4', and whether its bytes must be swapped; None when it is not
/// read.
static DataType parseDescr(const std::string &descr, bool &isBig) {
  if (descr.size() < 3)
    return DataType::None;
  isBig = descr[0] == '>';
  if (!std::strchr("<>|=", descr[0]))
    return DataType::None;
  static constexpr struct {
    const char *code;
    DataType type;
  } kTypes[] = {{"b1", DataType::Bool},    {"u1", DataType::UInt8},   {"u2", DataType::UInt16},
                {"u4", DataType::UInt32},  {"u8", DataType::UInt64},  {"i1", DataType::Int8},
                {"i2", DataType::Int16},   {"i4", DataType::Int32},   {"i8", DataType::Int64},
                {"f2", DataType::Float16}, {"f4", DataType::Float32}, {"f8", DataType::Float64}};
  for (const auto &known : kTypes)
    if (descr.compare(1, std::string::npos, known.code) == 0)
      return known.type;
  return DataType::None;
}

/// Copies an array in Fortran order (first index fastest) to row-major order.
static void copyFromFortran(const uint8_t *from, uint8_t *to, const Shape &shape, size_t elementBytes) {
  size_t rank = shape.size();
  std::vector<size_t> strides(rank), index(rank, 0);
  size_t stride = elementBytes, count = 1;
  for (size_t i = 0; i < rank; ++i) {
    strides[i] = stride;
    stride *= size_t(shape[i]);
    count *= size_t(shape[i]);
  }
  size_t offset = 0;
  for (size_t n = 0; n < count; ++n) {
    std::memcpy(to + n * elementBytes, from + offset, elementBytes);
    for (size_t i = rank; i-- > 0;) {
      offset += strides[i];
      if (++index[i] < size_t(shape[i]))
        break;
      offset -= strides[i] * size_t(shape[i]);
      index[i] = 0;
    }
  }
}

Status parseNpyHeader(const uint8_t *data, size_t bytes, size_t total, const std::string &where,
                      NpyHeader &header, size_t &needed) {
  auto bad = [&](const std::string &what) { return Status::failure(where + ": " + what); };
  constexpr size_t kLongestPrefix = 12;
  needed = std::min(kLongestPrefix, total);
  if (bytes < needed)
    return Status();
  needed = 0;
  if (total < 10 || std::memcmp(data, "\x93NUMPY", 6) != 0)
    return bad("is no npy array: its first bytes are not '\\x93NUMPY'");
  unsigned major = data[6];
  if (major < 1 || major > 3)
    return bad("has npy version " + std::to_string(major) + "." + std::to_string(data[7]) +
               " but 1 to 3 are read; save it with numpy.savez");
  size_t prefix = major == 1 ? 10 : kLongestPrefix;
  if (total < prefix)
    return bad("is truncated in its header: " + std::to_string(total) + " bytes");
  size_t length = major == 1 ? loadLittle<uint16_t>(data + 8) : loadLittle<uint32_t>(data + 8);
  if (length > total - prefix)
    return bad("has a header of " + std::to_string(length) + " bytes but only " +
               std::to_string(total - prefix) + " bytes follow");
  if (length > kMostHeaderBytes)
    return bad("has a header of " + std::to_string(length) + " bytes but at most " +
               std::to_string(kMostHeaderBytes) + " are read");
  if (bytes < prefix + length) {
    needed = prefix + length;
    return Status();
  }
  Header fields;
  std::string wrong = HeaderParser({reinterpret_cast<const char *>(data) + prefix, length}).parse(fields);
  if (!wrong.empty())
    return bad(wrong);
  header = NpyHeader();
  header.type = parseDescr(fields.descr, header.isBigEndian);
  if (header.type == DataType::None)
    return bad("has elements of type '" + fields.descr +
               "' but only bool, integers and float16 to float64 are read; convert it with numpy's astype");
  header.shape = fields.shape;
  header.offset = prefix + length;
  header.isFortran = fields.isFortran && header.shape.size() > 1;
  size_t present = total - header.offset;
  if (!countBytes(header.shape, header.type, header.bytes))
    return bad("has shape " + formatShape(header.shape) + ", whose size overflows");
  if (header.bytes != present)
    return bad("has shape " + formatShape(header.shape) + " of " + getTypeName(header.type) + ", which is " +
               std::to_string(header.bytes) + " bytes, but holds " + std::to_string(present));
  return Status();
}

Array describeNpy(const std::string &name, const NpyHeader &header) {
  Array array;
  array.name = name;
  array.type = header.type;
  array.shape = header.shape;
  array.bytes = header.bytes;
  return array;
}

Status parseNpy(const uint8_t *data, size_t bytes, const std::string &where,
                std::shared_ptr<const void> owner, Array &array) {
  NpyHeader header;
  size_t needed = 0;
  ORTC_TRY(parseNpyHeader(data, bytes, bytes, where, header, needed));
  array.type = header.type;
  array.shape = header.shape;
  array.data = data + header.offset;
  array.bytes = header.bytes;
  array.owner = std::move(owner);
  size_t element = getElementBytes(array.type);
  if (header.bytes && (header.isFortran || (header.isBigEndian && element > 1))) {
    std::shared_ptr<uint8_t[]> copy(new uint8_t[header.bytes]);
    if (header.isFortran)
      copyFromFortran(array.data, copy.get(), array.shape, element);
    else
      std::memcpy(copy.get(), array.data, header.bytes);
    if (header.isBigEndian)
      swapBytes(copy.get(), header.bytes / element, element);
    array.data = copy.get();
    array.owner = copy;
  }
  return Status();
}

std::string formatNpyHeader(DataType type, const Shape &shape) {
  std::string descr = type == DataType::Bool ? "|b1" : isFloat(type) ? "<f" : "<i";
  if (type == DataType::UInt8 || type == DataType::UInt16 || type == DataType::UInt32 ||
      type == DataType::UInt64)
    descr = "<u";
  if (type != DataType::Bool) {
    if (getElementBytes(type) == 1)
      descr[0] = '|';
    descr += std::to_string(getElementBytes(type));
  }
  std::string dict = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (int64_t size : shape)
    dict += std::to_string(size) + ", ";
  if (shape.size() > 1)
    dict.resize(dict.size() - 2);
  else if (shape.size() == 1)
    dict.resize(dict.size() - 1);
  dict += "), }";
  size_t total = (10 + dict.size() + 1 + 63) / 64 * 64; // the data is aligned to 64 bytes, as numpy does
  dict.resize(total - 10 - 1, ' ');
  dict += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += char(dict.size() & 255);
  header += char(dict.size() >> 8);
  return header + dict;
}

} // namespace ortc
