// Reads modules: directives, variables, functions and their statements.
//
// Names are resolved here, in the order of the text, as PTX has everything but labels and functions declared
// before it is used. Blocks in braces have names of their own: registers of equal names become different
// ones.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/parse/Parser.h"

#include <cctype>
#include <cstring>

namespace ortc::emulator {

Token Parser::take() {
  Token token = peek();
  if (token.kind != Token::Kind::End)
    ++position;
  return token;
}

[[noreturn]] void Parser::fail(int line, const std::string &message) const {
  throw ParseError{line, message};
}

bool Parser::accept(char sign) {
  bool is = peek().is(sign);
  position += is;
  return is;
}
bool Parser::accept(std::string_view word) {
  bool is = peek().is(word);
  position += is;
  return is;
}

void Parser::expect(char sign) {
  if (!accept(sign))
    fail(peek().line, std::string("'") + sign + "' expected before '" + std::string(peek().text) + "'");
}

std::string Parser::takeWord() {
  if (peek().kind != Token::Kind::Word)
    fail(peek().line, "name expected before '" + std::string(peek().text) + "'");
  return std::string(take().text);
}

uint64_t Parser::takeInteger() {
  bool isNegative = accept('-');
  if (peek().kind != Token::Kind::Integer)
    fail(peek().line, "integer expected before '" + std::string(peek().text) + "'");
  uint64_t value = take().bits;
  return isNegative ? -value : value;
}

void Parser::skipTo(char sign) {
  while (peek().kind != Token::Kind::End && !accept(sign))
    take();
}

Width Parser::widthOf(std::string_view type, int line) const {
  static const std::map<std::string_view, Width> kWidths = {
      {".pred", 1}, {".b8", 8},   {".u8", 8},     {".s8", 8},    {".b16", 16},    {".u16", 16}, {".s16", 16},
      {".f16", 16}, {".b32", 32}, {".u32", 32},   {".s32", 32},  {".f32", 32},    {".b64", 64}, {".u64", 64},
      {".s64", 64}, {".f64", 64}, {".f16x2", 32}, {".bf16", 16}, {".bf16x2", 32}, {".tf32", 32}};
  auto found = kWidths.find(type);
  if (found == kWidths.end())
    fail(line, "type '" + std::string(type) + "' is not supported");
  return found->second;
}

std::unique_ptr<Module> Parser::run(bool isHeadOnly) {
  while (peek().kind != Token::Kind::End && !(isHeadOnly && module->version && module->target))
    parseDirective();
  if (!module->version)
    fail(1, ".version is missing");
  if (!module->target)
    fail(1, ".target is missing");
  return std::move(module);
}

/// `major.minor` was cut as one number with a point.
void Parser::parseVersion() {
  Token token = take();
  size_t point = token.text.find('.');
  if (token.kind != Token::Kind::Double || point == token.text.npos)
    fail(token.line, ".version expects major.minor");
  module->version = 10 * std::atoi(std::string(token.text).c_str()) +
                    std::atoi(std::string(token.text.substr(point + 1)).c_str());
}

void Parser::parseTarget() {
  do {
    Token token = take();
    if (token.kind == Token::Kind::Word && token.text.substr(0, 3) == "sm_") {
      module->target = std::atoi(std::string(token.text.substr(3)).c_str());
      if (std::isalpha((unsigned char)token.text.back()))
        module->targetSuffix = token.text.back();
    }
  } while (accept(','));
}

void Parser::parseDirective() {
  Token token = take();
  if (token.kind != Token::Kind::Word || token.text[0] != '.')
    fail(token.line, "directive expected before '" + std::string(token.text) + "'");
  std::string_view word = token.text;
  if (word == ".version")
    return parseVersion();
  if (word == ".target")
    return parseTarget();
  if (word == ".address_size") {
    if (takeInteger() != 64)
      fail(token.line, "address size is not 64");
    return;
  }
  if (word == ".visible" || word == ".weak" || word == ".common")
    return;
  if (word == ".extern") {
    isExtern = true;
    return;
  }
  if (word == ".entry" || word == ".func")
    return parseFunction(word == ".entry", token.line);
  if (word == ".global" || word == ".const" || word == ".shared") {
    parseVariable(spaceOf(word), module->variables, globals);
    expect(';');
    isExtern = false;
    return;
  }
  if (word == ".file") {
    while (peek().line == token.line && peek().kind != Token::Kind::End)
      take();
    return;
  }
  if (word == ".section") {
    skipTo('}');
    return;
  }
  if (word == ".pragma")
    return skipTo(';');
  fail(token.line, "directive '" + std::string(word) + "' is not supported");
}

Space Parser::spaceOf(std::string_view word) const {
  return word == ".shared"  ? Space::Shared
         : word == ".local" ? Space::Local
         : word == ".const" ? Space::Const
         : word == ".param" ? Space::Param
                            : Space::Global;
}

/// Modifiers, type, name, dimensions and initial values; behind the word that names the space.
void Parser::parseVariable(Space space, std::deque<Variable> &owner, Names &names) {
  Variable v;
  v.space = space;
  v.isExtern = isExtern;
  uint64_t element = 0;
  uint64_t vector = 1;
  int line = peek().line;
  while (peek().kind == Token::Kind::Word && peek().text[0] == '.') {
    std::string word = takeWord();
    if (word == ".align")
      v.align = takeInteger();
    else if (word == ".ptr")
      v.pointerAlign = 1;
    else if (word == ".v2" || word == ".v4")
      vector = uint64_t(word[2] - '0');
    else if (word == ".global" || word == ".shared" || word == ".const" || word == ".local")
      continue; // what a pointer points to
    else
      element = widthOf(word, line) / 8u;
    if (word == ".align" && v.pointerAlign) {
      v.pointerAlign = v.align;
      v.align = 1;
    }
  }
  if (!element)
    fail(line, "variable without type");
  v.name = takeWord();
  v.align = std::max(v.align, element * vector);
  uint64_t count = vector;
  bool isOpen = false;
  while (accept('[')) {
    if (accept(']')) {
      isOpen = true;
      continue;
    }
    uint64_t dimension = takeInteger();
    if (__builtin_mul_overflow(count, dimension, &count) || count > uint64_t(1) << 32)
      fail(line, "variable '" + v.name + "' is too large");
    expect(']');
  }
  if (accept('=')) {
    parseInitial(v, element);
    if (isOpen)
      count = v.initial.size() / element;
  } else if (isOpen) {
    count = 0;
  }
  v.bytes = count * element;
  if (v.initial.size() > v.bytes)
    fail(line, "variable '" + v.name + "' has too many initial values");
  if (!v.initial.empty())
    v.initial.resize(v.bytes);
  owner.push_back(std::move(v));
  names[owner.back().name] = {-1, &owner.back()};
}

/// A value, or values in braces, which may be nested.
void Parser::parseInitial(Variable &v, uint64_t element) {
  if (accept('{')) {
    if (accept('}'))
      return;
    do
      parseInitial(v, element);
    while (accept(','));
    return expect('}');
  }
  bool isNegative = accept('-');
  Token token = take();
  uint64_t bits = token.bits;
  if (token.kind == Token::Kind::Word) {
    bool isGeneric = token.text == "generic";
    std::string name(token.text);
    if (isGeneric) {
      expect('(');
      name = takeWord();
      expect(')');
    }
    auto found = globals.find(name);
    if (found == globals.end() || !found->second.variable || element != 8)
      fail(token.line, "'" + name + "' cannot be an initial value");
    v.relocations.push_back({v.initial.size(), found->second.variable, isGeneric});
    bits = accept('+') ? takeInteger() : 0;
  } else if (token.kind == Token::Kind::Double && element == 4) {
    double wide;
    std::memcpy(&wide, &bits, sizeof wide);
    float narrow = float(isNegative ? -wide : wide);
    uint32_t narrowBits;
    std::memcpy(&narrowBits, &narrow, sizeof narrow);
    bits = narrowBits;
  } else if (token.kind == Token::Kind::Integer) {
    bits = isNegative ? -bits : bits;
  } else if (token.kind != Token::Kind::Single && token.kind != Token::Kind::Double) {
    fail(token.line, "initial value expected before '" + std::string(token.text) + "'");
  }
  for (uint64_t i = 0; i < element; ++i)
    v.initial.push_back(uint8_t(bits >> (8 * i)));
}

std::unique_ptr<Module> parseModule(const char *text, bool isHeadOnly) {
  return Parser(text).run(isHeadOnly);
}

} // namespace ortc::emulator
