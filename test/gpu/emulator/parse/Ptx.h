// PTX text as a tree: modules, functions, variables, statements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ortc::emulator {

enum class Space : uint8_t { Generic, Global, Shared, Local, Param, Const };

/// Bits of a register or of a type; 1: a predicate.
using Width = uint8_t;

/// A place of memory with a name.
struct Variable {
  std::string name;
  Space space = Space::Global;
  uint64_t bytes = 0, align = 1;
  bool isExtern = false;
  /// Of a kernel's parameter: what it promises of the address it holds; 0: nothing.
  uint64_t pointerAlign = 0;
  std::vector<uint8_t> initial;
  /// Eight bytes of `initial` at `offset` hold the address of another variable plus what is already there.
  struct Relocation {
    uint64_t offset;
    const Variable *target;
    bool isGeneric;
  };
  std::vector<Relocation> relocations;
};

struct Register {
  std::string name;
  Width width;
};

struct Operand {
  enum class Kind : uint8_t {
    Register, ///< `reg`; `isNegated` for !%p
    Special,  ///< %tid.x and so on: `name`
    Integer,  ///< `bits`
    Single,   ///< bits of an f32
    Double,   ///< bits of an f64
    Place,    ///< a variable
    Name,     ///< a label or function
    Address,  ///< [part 0 + bits]
    Vector,   ///< {parts}
    List,     ///< (parts), of calls
    Pair,     ///< part 0 | part 1
    Sink      ///< _
  };
  Kind kind = Kind::Integer;
  bool isNegated = false;
  int reg = -1;
  uint64_t bits = 0;
  const Variable *variable = nullptr;
  std::string name;
  std::vector<Operand> parts;
};

struct Statement {
  int line = 0;
  /// Register that decides whether the statement is executed, or -1.
  int predicate = -1;
  bool isNegated = false;
  std::string opcode;
  std::vector<Operand> operands;
  /// The source, on one line.
  std::string text;
};

/// A kernel or a device function.
struct Function {
  std::string name;
  bool isEntry = false, isDefined = false;
  int line = 0;
  std::vector<const Variable *> results, params;
  std::vector<Register> registers;
  /// Parameters, results, .local and .shared variables of the body.
  std::deque<Variable> variables;
  std::vector<Statement> statements;
  /// Label -> number of the statement behind it.
  std::map<std::string, size_t> labels;
  /// Name of a .branchtargets list -> labels.
  std::map<std::string, std::vector<std::string>> branchTargets;
  /// 0: not given.
  uint32_t maxThreads[3] = {0, 0, 0};
  bool isExactThreads = false;
};

struct Module {
  int version = 0; ///< 10 * major + minor
  int target = 0;  ///< 80 of sm_80
  char targetSuffix = 0;
  std::deque<Variable> variables;
  std::map<std::string, std::unique_ptr<Function>> functions;
};

/// A place in the text, and why it is refused.
struct ParseError {
  int line = 0;
  std::string message;
};

/// Reads a module; throws ParseError. Only version and target, which come first, if that is asked for.
std::unique_ptr<Module> parseModule(const char *text, bool isHeadOnly = false);

} // namespace ortc::emulator
