// Names of tensors in flags.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/Expected.h"

namespace ortc {

/// Tensor names: a regular expression (ECMAScript, as std::regex has it) that matches whole names only, or a list.
class NamePattern {
public:
  /// Compiles `text`.
  static Expected<NamePattern> parse(std::string_view text);
  /// The same, but "@FILE" is the list of names in a file, one a line.
  static Expected<NamePattern> read(std::string_view text);
  /// The list of these names; `text` stands for it in messages.
  static NamePattern list(std::vector<std::string> names, std::string text);

  bool matches(const std::string &name) const;
  const std::string &getText() const { return text; }
  /// Null for a regular expression; else sorted, each once.
  const std::vector<std::string> *getNames() const { return names.get(); }

private:
  struct Expression; // hides std::regex, which is slow to compile
  std::string text;
  std::shared_ptr<const Expression> expression;
  std::shared_ptr<const std::vector<std::string>> names;
};

} // namespace ortc
