// Text that shows as it is: names come from models, files and command lines.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ortc {

/// One character of UTF-8 at the front of a text that is not empty.
struct Character {
  uint32_t code = 0; ///< 0xFFFF where the bytes are none
  size_t bytes = 1;
};

inline Character readCharacter(std::string_view text) {
  auto at = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : 0u; };
  const uint32_t first = at(0);
  if (first < 0x80)
    return {first, 1};
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  uint32_t code = first & (0x7F >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xC0) != 0x80)
      return {0xFFFF, 1};
    code = code << 6 | (at(i) & 0x3F);
  }
  const bool isOne = first >= 0xC0 && first < 0xF8 && code >= kLeast[bytes] && code <= 0x10FFFF &&
                     (code < 0xD800 || code > 0xDFFF);
  return isOne ? Character{code, bytes} : Character{0xFFFF, 1};
}

/// Whether a character shows, in its place: controls (also those of ISO 6429 above 127) act on terminals, marks of
/// direction move the text around them, U+2028 and U+2029 end lines, and U+FEFF marks the order of bytes. U+FFFE and
/// U+FFFF are none.
inline bool isPrintable(uint32_t code) {
  return code >= 0x20 && !(code >= 0x7F && code <= 0x9F) && code != 0x61C && code != 0x200E &&
         code != 0x200F && !(code >= 0x2028 && code <= 0x202E) && !(code >= 0x2066 && code <= 0x2069) &&
         code != 0xFFFE && code != 0xFFFF && code != 0xFEFF;
}

/// `text` with a question mark for each character that does not show, and for each byte that is no UTF-8.
inline std::string makePrintable(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  while (!text.empty()) {
    const Character character = readCharacter(text);
    printable += isPrintable(character.code) ? text.substr(0, character.bytes) : std::string_view("?");
    text.remove_prefix(character.bytes);
  }
  return printable;
}

} // namespace ortc
