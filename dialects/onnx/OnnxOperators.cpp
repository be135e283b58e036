// Look-up in the table of operator definitions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/onnx/OnnxOperators.h"

#include "support/Plural.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <tuple>

namespace ortc::onnx {

/// Sorted by domain, name and version: the generator sorts, a test checks.
static constexpr OperatorDefinition kOperators[] = {
#define ORTC_OPERATOR(domain, name, since, inputs, minInputs, outputs, minOutputs, attributes, types)        \
  {domain, name, since, inputs, minInputs, outputs, minOutputs, attributes, types},
#include "dialects/onnx/OperatorTable.inc"
#undef ORTC_OPERATOR
};

const OperatorDefinition *findOperator(std::string_view domain, std::string_view name, int64_t opset) {
  auto key = [](const OperatorDefinition &d) { return std::tie(d.domain, d.name, d.since); };
  auto above =
      std::upper_bound(std::begin(kOperators), std::end(kOperators), std::tie(domain, name, opset),
                       [&](const auto &value, const OperatorDefinition &d) { return value < key(d); });
  if (above == std::begin(kOperators))
    return nullptr;
  const OperatorDefinition &found = *std::prev(above);
  return found.domain == domain && found.name == name ? &found : nullptr;
}

const OperatorDefinition *findDefinition(std::string_view domain, std::string_view name, int64_t since) {
  const OperatorDefinition *found = findOperator(domain, name, since);
  return found && found->since == since ? found : nullptr;
}

std::span<const OperatorDefinition> listDefinitions() { return kOperators; }

bool isStandardDomain(std::string_view domain) {
  return std::any_of(std::begin(kOperators), std::end(kOperators),
                     [&](const OperatorDefinition &d) { return d.domain == domain && d.since > 0; });
}

/// "2", "2 to 3", "at least 1".
static std::string range(size_t least, std::string_view formals, const std::string &noun) {
  if (!formals.empty() && formals.back() == 'v')
    return "at least " + formatCount(int64_t(least), noun);
  if (least == formals.size())
    return formatCount(int64_t(least), noun);
  return std::to_string(least) + " to " + formatCount(int64_t(formals.size()), noun);
}

/// Whether `count` parameters fit; every list that does not end in a variadic one has an upper limit.
static bool fits(size_t count, size_t least, std::string_view formals) {
  bool variadic = !formals.empty() && formals.back() == 'v';
  return count >= least && (variadic || count <= formals.size());
}

/// "Conv of version 11"; the domain for what is no part of the standard.
static std::string nameOf(const OperatorDefinition &definition) {
  std::string name(definition.name);
  if (definition.since > 0)
    return name + " of version " + std::to_string(definition.since);
  return definition.domain.empty() ? name : std::string(definition.domain) + "." + name;
}

std::string checkArity(const OperatorDefinition &definition, const std::vector<bool> &present,
                       size_t outputs) {
  std::string head = nameOf(definition) + " takes ";
  if (!fits(present.size(), definition.minInputs, definition.inputs))
    return head + range(definition.minInputs, definition.inputs, "input") + ", not " +
           std::to_string(present.size());
  for (size_t i = 0; i < present.size(); ++i)
    if (!present[i] && (i >= definition.inputs.size() || definition.inputs[i] != 'o'))
      return head + "no empty name for input " + std::to_string(i) + ", which is required";
  if (!fits(outputs, definition.minOutputs, definition.outputs))
    return nameOf(definition) + " has " + range(definition.minOutputs, definition.outputs, "output") +
           ", not " + std::to_string(outputs);
  return "";
}

/// By number, as in TensorProto.DataType.
static constexpr std::string_view kElementTypes[] = {
    "undefined",      "float",      "uint8",          "int8",       "uint16",    "int16",
    "int32",          "int64",      "string",         "bool",       "float16",   "double",
    "uint32",         "uint64",     "complex64",      "complex128", "bfloat16",  "float8e4m3fn",
    "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",      "int4",      "float4e2m1",
    "float8e8m0",     "uint2",      "int2",           "float6e2m3", "float6e3m2"};
constexpr int32_t kFloat = 1, kFloat16 = 10, kDouble = 11, kBfloat16 = 16;

std::string elementTypeName(int32_t type) {
  bool known = type >= 0 && static_cast<size_t>(type) < std::size(kElementTypes);
  return known ? std::string(kElementTypes[type]) : "type " + std::to_string(type);
}

/// The letter and the set of types of one formal input.
struct FormalTypes {
  char letter;
  uint32_t set;

  bool has(int32_t type) const { return type >= 0 && type < 32 && (set >> type & 1); }
};

static std::vector<FormalTypes> formalTypes(std::string_view list) {
  std::vector<FormalTypes> formals;
  for (size_t at = 0; at < list.size(); at = std::min(list.find(' ', at), list.size() - 1) + 1) {
    formals.push_back({list[at], 0});
    std::from_chars(list.data() + at + 1, list.data() + list.size(), formals.back().set, 16);
  }
  return formals;
}

std::string checkTypes(const OperatorDefinition &definition, std::span<const int32_t> types) {
  constexpr int32_t floats[] = {kFloat, kFloat16, kDouble, kBfloat16};
  auto isFloat = [&](int32_t type) {
    return std::find(std::begin(floats), std::end(floats), type) != std::end(floats);
  };
  std::vector<FormalTypes> formals = formalTypes(definition.types);
  std::map<char, size_t> first;
  for (size_t i = 0; i < types.size() && !formals.empty(); ++i) {
    const FormalTypes &formal = formals[std::min(i, formals.size() - 1)];
    if (!types[i] || !formal.set)
      continue;
    bool fits = isFloat(types[i]) ? std::any_of(std::begin(floats), std::end(floats),
                                                [&](int32_t t) { return formal.has(t); })
                                  : formal.has(types[i]);
    if (!fits) {
      std::string known;
      for (int32_t type = 0; type < 32; ++type)
        if (formal.has(type))
          known += (known.empty() ? "" : ", ") + elementTypeName(type);
      return "operand " + std::to_string(i) + " has element type " + elementTypeName(types[i]) + ", where " +
             std::string(definition.name) + " takes " + known;
    }
    auto [at, isNew] = first.try_emplace(formal.letter, i);
    if (!isNew && formal.letter != '-' && types[i] != types[at->second])
      return "operands " + std::to_string(at->second) + " and " + std::to_string(i) +
             " have different element types, " + elementTypeName(types[at->second]) + " and " +
             elementTypeName(types[i]);
  }
  return "";
}

/// Kind letter of attribute `name`, or 0; the callback sees every (name, kind, required) until it returns
/// false.
template <typename Visit> static void forEachAttribute(std::string_view list, Visit visit) {
  while (!list.empty()) {
    size_t end = std::min(list.find(' '), list.size());
    std::string_view item = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    size_t colon = item.find(':');
    if (!visit(item.substr(0, colon), item[colon + 1], item.back() == '!'))
      return;
  }
}

std::string checkAttributes(const OperatorDefinition &definition,
                            const std::vector<std::pair<std::string_view, char>> &attributes) {
  std::string head = nameOf(definition);
  for (auto [name, kind] : attributes) {
    char expected = 0;
    forEachAttribute(definition.attributes, [&, wanted = name](std::string_view known, char k, bool) {
      if (known == wanted)
        expected = k;
      return !expected;
    });
    if (!expected)
      return head + " has no attribute '" + std::string(name) + "'";
    if (expected != kind)
      return "attribute '" + std::string(name) + "' of " + head + " is of type " +
             std::string(attributeKindName(expected)) + ", not " + std::string(attributeKindName(kind));
  }
  std::string missing;
  forEachAttribute(definition.attributes, [&](std::string_view known, char, bool required) {
    if (required &&
        std::none_of(attributes.begin(), attributes.end(), [&](auto &a) { return a.first == known; }))
      missing = known;
    return missing.empty();
  });
  return missing.empty() ? "" : head + " needs the attribute '" + missing + "'";
}

static constexpr std::pair<char, std::string_view> kKinds[] = {
    {'f', "float"},       {'i', "int"},           {'s', "string"},     {'t', "tensor"},
    {'g', "graph"},       {'p', "sparse_tensor"}, {'y', "type_proto"}, {'F', "floats"},
    {'I', "ints"},        {'S', "strings"},       {'T', "tensors"},    {'G', "graphs"},
    {'Y', "type_protos"}, {'P', "sparse_tensors"}};

std::string_view attributeKindName(char kind) {
  for (auto [letter, name] : kKinds)
    if (letter == kind)
      return name;
  return "undefined";
}

char attributeKindByName(std::string_view name) {
  for (auto [letter, known] : kKinds)
    if (known == name)
      return letter;
  return 0;
}

} // namespace ortc::onnx
