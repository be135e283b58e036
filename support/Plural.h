// Numbers of things in words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

namespace ortc {

/// "1 step", "2 steps"; `plural` where an s is not enough.
inline std::string formatCount(int64_t count, const std::string &noun, const std::string &plural = "") {
  return std::to_string(count) + " " + (count == 1 ? noun : plural.empty() ? noun + "s" : plural);
}

} // namespace ortc
