// Reads functions: their heads, declarations of registers and variables, labels and statements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cctype>

#include "test/gpu/emulator/parse/Parser.h"

namespace ortc::emulator {

void Parser::parseFunction(bool isEntry, int line) {
  auto made = std::make_unique<Function>();
  function = made.get();
  function->isEntry = isEntry;
  function->line = line;
  scopes.assign(1, {});
  if (!isEntry && accept('('))
    parseParams(function->results);
  function->name = takeWord();
  if (accept('('))
    parseParams(function->params);
  parseLimits();
  isExtern = false;
  if (!accept(';')) {
    expect('{');
    parseBody();
    function->isDefined = true;
  }
  std::unique_ptr<Function> &known = module->functions[function->name];
  if (known && known->isDefined && made->isDefined)
    fail(line, "function '" + function->name + "' is defined twice");
  if (!known || made->isDefined)
    known = std::move(made);
}

void Parser::parseParams(std::vector<const Variable *> &list) {
  if (accept(')'))
    return;
  do {
    if (!accept(".param"))
      fail(peek().line, "only parameters in .param are supported");
    parseVariable(Space::Param, function->variables, scopes.back().names);
    list.push_back(&function->variables.back());
  } while (accept(','));
  expect(')');
}

/// Directives between the head and the body.
void Parser::parseLimits() {
  while (peek().kind == Token::Kind::Word && peek().text[0] == '.') {
    Token token = take();
    if (token.text == ".maxntid" || token.text == ".reqntid") {
      function->isExactThreads |= token.text == ".reqntid";
      int i = 0;
      for (uint32_t &dimension : function->maxThreads)
        dimension = 1;
      do
        function->maxThreads[std::min(i++, 2)] = uint32_t(takeInteger());
      while (accept(','));
    } else if (token.text == ".minnctapersm" || token.text == ".maxnctapersm" || token.text == ".maxnreg") {
      takeInteger();
    } else if (token.text == ".pragma") {
      skipTo(';');
    } else if (token.text != ".noreturn") {
      fail(token.line, "directive '" + std::string(token.text) + "' is not supported");
    }
  }
}

void Parser::parseBody() {
  scopes.push_back({});
  for (size_t outer = scopes.size(); scopes.size() >= outer;) {
    const Token &token = peek();
    if (token.kind == Token::Kind::End)
      fail(token.line, "function '" + function->name + "' has no end");
    if (accept('{')) {
      scopes.push_back({});
    } else if (accept('}')) {
      scopes.pop_back();
    } else if (accept(';')) {
      continue;
    } else if (token.kind == Token::Kind::Word && tokens[position + 1].is(':')) {
      std::string label = takeWord();
      expect(':');
      if (accept(".branchtargets")) {
        std::vector<std::string> &targets = function->branchTargets[label];
        do
          targets.push_back(takeWord());
        while (accept(','));
        expect(';');
      } else if (peek().is(".callprototype")) {
        skipTo(';');
      } else if (!function->labels.emplace(label, function->statements.size()).second) {
        fail(token.line, "label '" + label + "' is defined twice");
      }
    } else if (token.kind == Token::Kind::Word && token.text[0] == '.') {
      parseBodyDirective();
    } else {
      parseStatement();
    }
  }
}

void Parser::parseBodyDirective() {
  Token token = take();
  std::string_view word = token.text;
  if (word == ".reg")
    return parseRegisters();
  if (word == ".loc") { // .loc 1 2 3, function_name $L__info, inlined_at 1 2 3
    while (peek().line == token.line && peek().kind != Token::Kind::End)
      take();
    return;
  }
  if (word == ".pragma")
    return skipTo(';');
  if (word == ".extern") {
    isExtern = true;
    return;
  }
  if (word != ".local" && word != ".shared" && word != ".param" && word != ".global" && word != ".const")
    fail(token.line, "directive '" + std::string(word) + "' is not supported");
  bool isModules = word == ".global" || word == ".const";
  parseVariable(spaceOf(word), isModules ? module->variables : function->variables, scopes.back().names);
  isExtern = false;
  expect(';');
}

void Parser::parseRegisters() {
  int line = peek().line;
  Width width = widthOf(takeWord(), line);
  width = width == 8 ? 16 : width;
  do {
    std::string name = takeWord();
    if (accept('<')) {
      scopes.back().ranges.push_back({name, takeInteger(), width});
      expect('>');
    } else {
      scopes.back().names[name] = {int(function->registers.size()), nullptr};
      function->registers.push_back({name, width});
    }
  } while (accept(','));
  expect(';');
}

/// The register of that name in the innermost scope that has one; -1 where there is none.
int Parser::findRegister(const std::string &name) {
  size_t digits = name.size();
  while (digits > 0 && std::isdigit((unsigned char)name[digits - 1]))
    --digits;
  for (size_t i = scopes.size(); i-- > 0;) {
    auto found = scopes[i].names.find(name);
    if (found != scopes[i].names.end())
      return found->second.reg;
    if (digits == name.size() || name.size() - digits > 9)
      continue;
    for (const Range &range : scopes[i].ranges)
      if (range.prefix.size() == digits && name.compare(0, digits, range.prefix) == 0 &&
          std::stoull(name.substr(digits)) < range.count) {
        int reg = int(function->registers.size());
        function->registers.push_back({name, range.width});
        scopes[i].names[name] = {reg, nullptr};
        return reg;
      }
  }
  return -1;
}

Operand Parser::nameOperand(const std::string &name) {
  Operand operand;
  operand.name = name;
  if (name == "_") {
    operand.kind = Operand::Kind::Sink;
    return operand;
  }
  operand.reg = findRegister(name);
  if (operand.reg >= 0) {
    operand.kind = Operand::Kind::Register;
    return operand;
  }
  for (size_t i = scopes.size(); i-- > 0 && !operand.variable;) {
    auto found = scopes[i].names.find(name);
    operand.variable = found == scopes[i].names.end() ? nullptr : found->second.variable;
  }
  auto global = globals.find(name);
  if (!operand.variable && global != globals.end())
    operand.variable = global->second.variable;
  if (operand.variable)
    operand.kind = Operand::Kind::Place;
  else if (name[0] == '%')
    operand.kind = Operand::Kind::Special;
  else
    operand.kind = name == "WARP_SZ" ? Operand::Kind::Integer : Operand::Kind::Name;
  operand.bits = name == "WARP_SZ" ? 32 : 0;
  return operand;
}

void Parser::parseParts(Operand &operand, char end) {
  if (accept(end))
    return;
  do
    operand.parts.push_back(parseOperand());
  while (accept(','));
  expect(end);
}

Operand Parser::parsePrimary() {
  Operand operand;
  Token token = peek();
  if (accept('{')) {
    operand.kind = Operand::Kind::Vector;
    parseParts(operand, '}');
  } else if (accept('(')) {
    operand.kind = Operand::Kind::List;
    parseParts(operand, ')');
  } else if (accept('[')) {
    operand.kind = Operand::Kind::Address;
    operand.parts.push_back(parsePrimary());
    while (peek().is('+') || peek().is('-')) {
      bool isNegative = take().is('-');
      uint64_t offset = takeInteger();
      operand.bits += isNegative ? -offset : offset;
    }
    expect(']');
  } else if (accept('!')) {
    operand = parsePrimary();
    operand.isNegated = true;
  } else if (token.kind == Token::Kind::Word) {
    take();
    operand = nameOperand(std::string(token.text));
  } else {
    bool isNegative = accept('-');
    token = take();
    operand.bits = token.bits;
    if (token.kind == Token::Kind::Integer) {
      operand.bits = isNegative ? -token.bits : token.bits;
    } else if (token.kind == Token::Kind::Single || token.kind == Token::Kind::Double) {
      bool isSingle = token.kind == Token::Kind::Single;
      operand.kind = isSingle ? Operand::Kind::Single : Operand::Kind::Double;
      operand.bits ^= uint64_t(isNegative) << (isSingle ? 31 : 63);
    } else {
      fail(token.line, "operand expected before '" + std::string(token.text) + "'");
    }
  }
  return operand;
}

/// A primary, with the offset of `variable+8` and the second part of `%p1|%p2`.
Operand Parser::parseOperand() {
  Operand operand = parsePrimary();
  if (operand.kind == Operand::Kind::Place)
    while (peek().is('+') || peek().is('-')) {
      bool isNegative = take().is('-');
      uint64_t offset = takeInteger();
      operand.bits += isNegative ? -offset : offset;
    }
  if (accept('|')) {
    Operand pair;
    pair.kind = Operand::Kind::Pair;
    pair.parts.push_back(std::move(operand));
    pair.parts.push_back(parsePrimary());
    return pair;
  }
  return operand;
}

void Parser::parseStatement() {
  Statement s;
  size_t first = position;
  s.line = peek().line;
  if (accept('@')) {
    s.isNegated = accept('!');
    std::string name = takeWord();
    s.predicate = findRegister(name);
    if (s.predicate < 0)
      fail(s.line, "unknown register '" + name + "'");
    if (function->registers[size_t(s.predicate)].width != 1)
      fail(s.line, "register '" + name + "' is no predicate");
  }
  s.opcode = takeWord();
  if (!peek().is(';'))
    do
      s.operands.push_back(parseOperand());
    while (accept(','));
  const char *begin = tokens[first].text.data();
  bool wasBlank = true;
  for (const char *c = begin; c != peek().text.data() && s.text.size() < 160; ++c) {
    bool isBlank = std::isspace((unsigned char)*c);
    if (!isBlank || !wasBlank)
      s.text += isBlank ? ' ' : *c;
    wasBlank = isBlank;
  }
  expect(';');
  function->statements.push_back(std::move(s));
}

} // namespace ortc::emulator
