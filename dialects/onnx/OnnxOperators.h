// The operator definitions of the ONNX standard.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ortc::onnx {

/// The oldest and the newest opset of the default domain that models may import.
constexpr int64_t kOldestOpset = 7;
constexpr int64_t kNewestOpset = 28;

/// One definition of an operator. The default domain is "".
struct OperatorDefinition {
  std::string_view domain, name;
  /// 0: no part of the standard, or of a later version alone; ONNX Runtime writes such nodes into files of any opset.
  int64_t since;
  /// One letter for each formal parameter: r required, o optional, v variadic (only the last).
  std::string_view inputs;
  size_t minInputs;
  std::string_view outputs;
  size_t minOutputs;
  /// `name:k` separated by spaces, `!` behind required ones. Kinds: f float, i int, s string, t tensor, g
  /// graph, p sparse tensor, y type; the capital letter is the list.
  std::string_view attributes;
  /// For each formal input a letter and, in hexadecimal, the set of element types (bit i:
  /// TensorProto.DataType i) that any version of the operator takes there. Inputs with one letter have one
  /// type; `-` is one whose types are its own.
  std::string_view types;
};

/// The definition that `opset` (0: the domain is not imported) selects: the newest that is not above it; null
/// when there is none.
const OperatorDefinition *findOperator(std::string_view domain, std::string_view name, int64_t opset);

/// The definition of exactly that version, or null.
const OperatorDefinition *findDefinition(std::string_view domain, std::string_view name, int64_t since);

/// All of them, sorted by domain, name and version.
std::span<const OperatorDefinition> listDefinitions();

/// Whether the standard has operators of that domain.
bool isStandardDomain(std::string_view domain);

/// Checks the numbers of inputs and outputs; `present[i]` tells whether input i is given. Returns what is
/// wrong, or "".
std::string checkArity(const OperatorDefinition &definition, const std::vector<bool> &present,
                       size_t outputs);

/// Checks the element types of the inputs, by number (TensorProto.DataType); 0 is one that is absent or no tensor. One
/// floating-point type is as good as another, as long as inputs that share a type agree. Returns what is wrong, or "".
std::string checkTypes(const OperatorDefinition &definition, std::span<const int32_t> types);

/// "float", "uint8", ...: an element type as the standard writes it.
std::string elementTypeName(int32_t type);

/// Checks names and kinds of the attributes of a node. Returns what is wrong, or "".
std::string checkAttributes(const OperatorDefinition &definition,
                            const std::vector<std::pair<std::string_view, char>> &attributes);

/// "float", "ints", ...: the name of an attribute kind.
std::string_view attributeKindName(char kind);
/// The kind of that name, or 0.
char attributeKindByName(std::string_view name);

} // namespace ortc::onnx
