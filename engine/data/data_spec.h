// What --data names: files, patterns of files, and what is said about them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/Status.h"

namespace ortc::engine {

/// `[tokens:][NAME=]FILE[,[NAME=]FILE...][?key=value[&key=value...]]`. FILE may be a pattern with `*`, `?` and `[...]`,
/// in the order of bytes. A file that has the whole text for its name is that file.
struct DataSpec {
  struct Part {
    std::string name; ///< before "=", or ""
    std::string text; ///< the file or pattern
    std::vector<std::string> files;
  };
  using Options = std::vector<std::pair<std::string, std::string>>;

  static Status parse(const std::string &text, DataSpec &spec);

  bool isTokens = false;
  std::vector<Part> parts; ///< at least one, of at least one file each
  Options options;
};

} // namespace ortc::engine
