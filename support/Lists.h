// Lists of names for one line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace ortc {

/// "a, b and 2 more": `shown` of these.
inline std::string joinSome(const std::vector<std::string> &items, size_t shown) {
  std::string list;
  for (size_t i = 0; i < std::min(items.size(), shown); ++i)
    list += (i ? ", " : "") + items[i];
  return list + (items.size() > shown ? " and " + std::to_string(items.size() - shown) + " more" : "");
}

/// "'a', 'b' and 2 more".
inline std::string quoteSome(std::vector<std::string> names, size_t shown) {
  for (std::string &name : names)
    name = "'" + name + "'";
  return joinSome(names, shown);
}

} // namespace ortc
