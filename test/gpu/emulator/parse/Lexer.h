// Words and signs of PTX.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ortc::emulator {

struct Token {
  enum class Kind : uint8_t {
    Word,    ///< opcodes, directives, names, registers: letters, digits and $ % . _ and the : of L2::128B
    Integer, ///< `bits`
    Single,  ///< 0f3F800000
    Double,  ///< 0d3FF0000000000000 or 1.5
    String,
    Sign, ///< one character
    End
  };
  Kind kind;
  int line;
  std::string_view text;
  uint64_t bits = 0;
  bool is(char sign) const { return kind == Kind::Sign && text[0] == sign; }
  bool is(std::string_view word) const { return kind == Kind::Word && text == word; }
};

/// Cuts the text, which must outlive the tokens; the last one is an End. Throws ParseError.
std::vector<Token> cutTokens(std::string_view text);

} // namespace ortc::emulator
