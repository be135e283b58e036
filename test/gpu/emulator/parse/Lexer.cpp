// Cuts PTX into words, numbers and signs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/parse/Lexer.h"

#include <cctype>
#include <cstdlib>
#include <cstring>

#include "test/gpu/emulator/parse/Ptx.h"

namespace ortc::emulator {
namespace {

bool isWordStart(char c) {
  return std::isalpha((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}
bool isWordPart(char c) {
  return std::isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

class Cutter {
public:
  explicit Cutter(std::string_view text) : text(text) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    while (skipBlanks())
      tokens.push_back(next());
    tokens.push_back({Token::Kind::End, line, {}});
    return tokens;
  }

private:
  char at(size_t i) const { return i < text.size() ? text[i] : '\0'; }

  /// Skips blanks and comments; false at the end.
  bool skipBlanks() {
    while (position < text.size()) {
      if (at(position) == '/' && at(position + 1) == '/') {
        while (position < text.size() && at(position) != '\n')
          ++position;
      } else if (at(position) == '/' && at(position + 1) == '*') {
        size_t end = text.find("*/", position + 2);
        if (end == std::string_view::npos)
          throw ParseError{line, "comment without end"};
        for (; position < end + 2; ++position)
          line += at(position) == '\n';
      } else if (std::isspace((unsigned char)at(position))) {
        line += at(position++) == '\n';
      } else {
        return true;
      }
    }
    return false;
  }

  Token next() {
    size_t start = position;
    char c = at(start);
    if (std::isdigit((unsigned char)c))
      return number();
    if (isWordStart(c)) {
      while (isWordPart(at(position)) || (at(position) == ':' && at(position + 1) == ':'))
        position += at(position) == ':' ? 2 : 1;
      return {Token::Kind::Word, line, text.substr(start, position - start)};
    }
    if (c == '"') {
      size_t end = text.find('"', start + 1);
      if (end == std::string_view::npos)
        throw ParseError{line, "string without end"};
      position = end + 1;
      return {Token::Kind::String, line, text.substr(start + 1, end - start - 1)};
    }
    ++position;
    return {Token::Kind::Sign, line, text.substr(start, 1)};
  }

  Token number() {
    size_t start = position;
    while (std::isalnum((unsigned char)at(position)) || at(position) == '.' ||
           ((at(position) == '+' || at(position) == '-') && isExponent(start)))
      ++position;
    std::string_view all = text.substr(start, position - start);
    Token token{Token::Kind::Integer, line, all};
    std::string digits(all);
    char second = digits.size() > 1 ? (char)std::tolower(digits[1]) : '\0';
    char *end = nullptr;
    if (digits[0] == '0' && (second == 'f' || second == 'd')) {
      token.kind = second == 'f' ? Token::Kind::Single : Token::Kind::Double;
      token.bits = std::strtoull(digits.c_str() + 2, &end, 16);
      if (digits.size() != (second == 'f' ? 10u : 18u))
        throw ParseError{line, "'" + digits + "' has the wrong number of digits"};
    } else if (digits.find('.') != std::string::npos) {
      double value = std::strtod(digits.c_str(), &end);
      token.kind = Token::Kind::Double;
      std::memcpy(&token.bits, &value, sizeof value);
    } else {
      bool isBinary = digits[0] == '0' && second == 'b';
      token.bits =
          isBinary ? std::strtoull(digits.c_str() + 2, &end, 2) : std::strtoull(digits.c_str(), &end, 0);
      if (*end == 'U')
        ++end;
    }
    if (*end)
      throw ParseError{line, "'" + digits + "' is no number"};
    return token;
  }
  /// Whether the sign at the position belongs to 1.0e-5.
  bool isExponent(size_t start) const {
    char before = at(position - 1);
    return (before == 'e' || before == 'E') && text.substr(start, position - start).find('.') != text.npos;
  }

  std::string_view text;
  size_t position = 0;
  int line = 1;
};

} // namespace

std::vector<Token> cutTokens(std::string_view text) { return Cutter(text).run(); }

} // namespace ortc::emulator
