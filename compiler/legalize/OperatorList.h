// What is supported, operator by operator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The legaliser's table put beside the standard's, for `ortc ops` and docs/status.md.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ortc::legalize {

enum class NoteKind { zeroGradient, products, types, restriction, refused };

/// One line of OperatorNotes.inc.
struct OperatorNote {
  NoteKind kind;
  llvm::StringRef domain, name, text;
};
const std::vector<OperatorNote> &getOperatorNotes();

/// Why an operator without an entry is refused and what to do, or "" where no note says so.
llvm::StringRef getRefusal(llvm::StringRef domain, llvm::StringRef name);

/// One operator of the standard, or of the legaliser's table.
struct OperatorRow {
  std::string domain, name;
  /// Opsets in which a model may use it, both ends included; empty where it is refused, or where the standard has no
  /// versions of it.
  std::vector<std::pair<int64_t, int64_t>> opsets;
  bool supported = false;
  bool hasGradient = false;
  bool hasProducts = false; ///< --precision bf16 makes them narrow
  std::string types;
  std::string remarks; ///< restrictions, or why it is refused

  std::string formatOpsets() const; ///< "7 to 9, 11 to 28"
};

/// Sorted by domain and name.
std::vector<OperatorRow> listOperators();

enum class ListFormat { text, json, markdown };
std::string formatOperators(const std::vector<OperatorRow> &rows, ListFormat format);

} // namespace ortc::legalize
