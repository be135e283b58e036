// The reader of PTX: recursive descent over the tokens of one module.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <unordered_map>

#include "test/gpu/emulator/parse/Lexer.h"
#include "test/gpu/emulator/parse/Ptx.h"

namespace ortc::emulator {

class Parser {
public:
  explicit Parser(const char *text) : source(text), tokens(cutTokens(source)) {}
  std::unique_ptr<Module> run(bool isHeadOnly);

private:
  /// A register, or a variable.
  struct Name {
    int reg = -1;
    const Variable *variable = nullptr;
  };
  using Names = std::unordered_map<std::string, Name>;
  /// `.reg .b32 %r<9>` declares %r0 to %r8.
  struct Range {
    std::string prefix;
    uint64_t count;
    Width width;
  };
  struct Scope {
    Names names;
    std::vector<Range> ranges;
  };

  // Parser.cpp: tokens, directives, variables.
  const Token &peek() const { return tokens[position]; }
  Token take();
  [[noreturn]] void fail(int line, const std::string &message) const;
  bool accept(char sign);
  bool accept(std::string_view word);
  void expect(char sign);
  std::string takeWord();
  uint64_t takeInteger();
  void skipTo(char sign);
  Width widthOf(std::string_view type, int line) const;
  Space spaceOf(std::string_view word) const;
  void parseVersion();
  void parseTarget();
  void parseDirective();
  void parseVariable(Space space, std::deque<Variable> &owner, Names &names);
  void parseInitial(Variable &v, uint64_t element);

  // FunctionParser.cpp: functions.
  void parseFunction(bool isEntry, int line);
  void parseParams(std::vector<const Variable *> &list);
  void parseLimits();
  void parseBody();
  void parseBodyDirective();
  void parseRegisters();
  void parseStatement();
  Operand parseOperand();
  Operand parsePrimary();
  void parseParts(Operand &operand, char end);
  Operand nameOperand(const std::string &name);
  int findRegister(const std::string &name);

  std::string_view source;
  std::vector<Token> tokens;
  size_t position = 0;
  bool isExtern = false;
  std::unique_ptr<Module> module = std::make_unique<Module>();
  Names globals;
  Function *function = nullptr;
  std::vector<Scope> scopes;
};

} // namespace ortc::emulator
