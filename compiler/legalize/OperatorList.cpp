// What is supported, operator by operator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/OperatorList.h"

#include "compiler/legalize/Table.h"
#include "dialects/onnx/OnnxOperators.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

namespace ortc::legalize {

using llvm::StringRef;

const std::vector<OperatorNote> &getOperatorNotes() {
  static const std::vector<OperatorNote> notes = {
#define ORTC_ZERO_GRADIENT(domain, name) {NoteKind::zeroGradient, domain, name, ""},
#define ORTC_PRODUCTS(domain, name) {NoteKind::products, domain, name, ""},
#define ORTC_TYPES(domain, name, text) {NoteKind::types, domain, name, text},
#define ORTC_RESTRICTION(domain, name, text) {NoteKind::restriction, domain, name, text},
#define ORTC_REFUSED(domain, name, text) {NoteKind::refused, domain, name, text},
#include "compiler/legalize/OperatorNotes.inc"
  };
  return notes;
}

/// The texts of the notes of a kind, joined; `found` tells whether there is one.
static std::string findNotes(NoteKind kind, StringRef domain, StringRef name, bool &found) {
  std::string text;
  found = false;
  for (const OperatorNote &note : getOperatorNotes()) {
    if (note.kind != kind || note.domain != domain || note.name != name)
      continue;
    text += (text.empty() ? "" : "; ") + note.text.str();
    found = true;
  }
  return text;
}

StringRef getRefusal(StringRef domain, StringRef name) {
  for (const OperatorNote &note : getOperatorNotes())
    if (note.kind == NoteKind::refused && note.domain == domain && note.name == name)
      return note.text;
  return "";
}

static const char *describeTypes(OperandKind kind) {
  switch (kind) {
  case OperandKind::floats:
    return "floating point";
  case OperandKind::any:
    return "floating point, integers";
  case OperandKind::moved:
  case OperandKind::sequences:
  case OperandKind::spread:
    return "any";
  }
  return "";
}

/// The opsets whose definition of the operator has an entry.
static std::vector<std::pair<int64_t, int64_t>> findOpsets(StringRef domain, StringRef name) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (int64_t opset = onnx::kOldestOpset; opset <= onnx::kNewestOpset; ++opset) {
    auto *definition = onnx::findOperator(domain.str(), name.str(), opset);
    bool known = false;
    if (!definition || !definition->since || !findOperator(domain, name, definition->since, known))
      continue;
    if (!ranges.empty() && ranges.back().second == opset - 1)
      ranges.back().second = opset;
    else
      ranges.push_back({opset, opset});
  }
  return ranges;
}

static OperatorRow describe(StringRef domain, StringRef name) {
  OperatorRow row;
  row.domain = domain.str();
  row.name = name.str();
  bool found = false;
  for (const Operator &entry : getOperators()) {
    if (entry.domain != domain || entry.name != name)
      continue;
    row.supported = true;
    row.types = describeTypes(entry.operands);
  }
  if (!row.supported) {
    row.remarks = getRefusal(domain, name).str();
    if (row.remarks.empty())
      row.remarks = "not supported; replace it by other operators";
    return row;
  }
  if (domain.empty())
    row.opsets = findOpsets(domain, name);
  findNotes(NoteKind::zeroGradient, domain, name, found);
  row.hasGradient = !found;
  findNotes(NoteKind::products, domain, name, row.hasProducts);
  std::string types = findNotes(NoteKind::types, domain, name, found);
  if (found)
    row.types = types;
  row.remarks = findNotes(NoteKind::restriction, domain, name, found);
  return row;
}

std::vector<OperatorRow> listOperators() {
  std::set<std::pair<std::string, std::string>> names;
  for (const onnx::OperatorDefinition &definition : onnx::listDefinitions())
    if (definition.domain.empty())
      names.insert({std::string(definition.domain), std::string(definition.name)});
  for (const Operator &entry : getOperators())
    names.insert({entry.domain.str(), entry.name.str()});
  std::vector<OperatorRow> rows;
  for (const auto &[domain, name] : names)
    rows.push_back(describe(domain, name));
  return rows;
}

std::string OperatorRow::formatOpsets() const {
  std::string text;
  for (auto [first, last] : opsets)
    text += (text.empty() ? "" : ", ") + std::to_string(first) +
            (first == last ? "" : " to " + std::to_string(last));
  return text.empty() ? "any" : text;
}

static std::string fullName(const OperatorRow &row) {
  return row.domain.empty() ? row.name : row.domain + "." + row.name;
}

static std::string formatJson(const std::vector<OperatorRow> &rows) {
  llvm::json::Array list;
  for (const OperatorRow &row : rows) {
    llvm::json::Array opsets;
    for (auto [first, last] : row.opsets)
      opsets.push_back(llvm::json::Array{first, last});
    list.push_back(llvm::json::Object{{"domain", row.domain},
                                      {"name", row.name},
                                      {"forward", row.supported},
                                      {"gradient", !row.supported    ? "none"
                                                   : row.hasGradient ? "yes"
                                                                     : "zero"},
                                      {"bf16", row.hasProducts},
                                      {"opsets", std::move(opsets)},
                                      {"types", row.types},
                                      {"remarks", row.remarks}});
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::formatv("{0:2}", llvm::json::Value(std::move(list))) << "\n";
  return text;
}

static std::string formatMarkdown(const std::vector<OperatorRow> &rows) {
  auto supported = [](const OperatorRow &row) { return row.supported; };
  std::string text =
      std::to_string(llvm::count_if(rows, supported)) +
      " operators are supported. A gradient is \"zero\" where the result is an integer, a "
      "boolean, a constant or\n"
      "piecewise constant. f16 and bf16 are floating point too: they are stored, and computed "
      "with in f32.\nWith `--precision bf16`, operators with \"yes\" under bf16 multiply bf16 "
      "numbers; everything else is f32.\n\n"
      "| operator | opsets | gradient | bf16 | element types | limits |\n|---|---|---|---|---|---|\n";
  for (const OperatorRow &row : llvm::make_filter_range(rows, supported))
    text += "| " + fullName(row) + " | " + row.formatOpsets() + " | " + (row.hasGradient ? "yes" : "zero") +
            (row.hasProducts ? " | yes | " : " | | ") + row.types + " | " + row.remarks + " |\n";
  text += "\nOperators of the standard that are refused, and what to do:\n\n| operator | |\n|---|---|\n";
  for (const OperatorRow &row : rows)
    if (!row.supported)
      text += "| " + fullName(row) + " | " + row.remarks + " |\n";
  return text;
}

static std::string formatText(const std::vector<OperatorRow> &rows) {
  size_t widest = 0, opsets = 0, types = 0;
  for (const OperatorRow &row : rows) {
    widest = std::max(widest, fullName(row).size());
    opsets = std::max(opsets, row.formatOpsets().size());
    types = std::max(types, row.types.size());
  }
  auto pad = [](std::string text, size_t width) {
    text.resize(std::max(width, text.size()), ' ');
    return text + "  ";
  };
  std::string text = pad("operator", widest) + pad("opsets", opsets) + pad("forward", 7) +
                     pad("gradient", 8) + pad("bf16", 4) + pad("element types", types) + "remarks\n";
  for (const OperatorRow &row : rows) {
    std::string line = pad(fullName(row), widest) + pad(row.supported ? row.formatOpsets() : "-", opsets) +
                       pad(row.supported ? "yes" : "no", 7) +
                       pad(!row.supported    ? "-"
                           : row.hasGradient ? "yes"
                                             : "zero",
                           8) +
                       pad(!row.supported    ? "-"
                           : row.hasProducts ? "yes"
                                             : "",
                           4) +
                       pad(row.supported ? row.types : "-", types) + row.remarks;
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string formatOperators(const std::vector<OperatorRow> &rows, ListFormat format) {
  switch (format) {
  case ListFormat::json:
    return formatJson(rows);
  case ListFormat::markdown:
    return formatMarkdown(rows);
  case ListFormat::text:
    return formatText(rows);
  }
  return "";
}

} // namespace ortc::legalize
