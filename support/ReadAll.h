// A stream as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <istream>
#include <optional>
#include <string>

namespace ortc {

/// All that `stream` has left; nothing where reading fails. Iterators over a stream throw then, whatever its mask.
inline std::optional<std::string> readAll(std::istream &stream) {
  std::string text;
  char part[1 << 14];
  do {
    stream.read(part, sizeof part);
    text.append(part, static_cast<size_t>(stream.gcount()));
  } while (stream);
  return stream.bad() ? std::nullopt : std::optional(std::move(text));
}

} // namespace ortc
