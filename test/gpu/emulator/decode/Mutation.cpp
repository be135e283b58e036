// Removes instructions, shifts addresses and numbers, or lets operands pass unchanged.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/decode/Mutation.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "test/gpu/emulator/decode/Decoder.h"

namespace ortc::emulator {
namespace {

bool startsWith(const std::string &text, const std::string &start) { return text.rfind(start, 0) == 0; }

bool isNumber(const std::string &text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool isBarrier(const Statement &s) {
  return (startsWith(s.opcode, "bar.") && !startsWith(s.opcode, "bar.warp")) ||
         startsWith(s.opcode, "barrier.");
}
bool isAccess(const Statement &s) {
  return (startsWith(s.opcode, "ld.") || startsWith(s.opcode, "st.")) &&
         s.opcode.find(".param") == s.opcode.npos;
}
bool isOne(const Statement &s, const std::string &which) {
  return which == "barrier"  ? isBarrier(s)
         : which == "access" ? isAccess(s)
                             : startsWith(s.opcode + ".", which + ".");
}

/// The n-th statement that is one, from 1; null: there are fewer.
template <class Is> Statement *findStatement(Function &function, long n, Is is) {
  for (Statement &s : function.statements)
    if (!s.opcode.empty() && is(s) && --n == 0)
      return &s;
  return nullptr;
}

/// The result becomes the first operand.
bool passOperand(Statement &s) {
  const Width width = widthOfType(splitOpcode(s.opcode).back());
  if (s.operands.size() < 2 || width < 16)
    return false;
  s.opcode = "mov.b" + std::to_string(width);
  s.operands.resize(2);
  return true;
}

/// Adds to the first or second address, or to the last number where there is no address.
bool shift(Statement &s, bool isOfSource, uint64_t offset) {
  std::vector<Operand *> addresses, numbers;
  for (Operand &operand : s.operands) {
    if (operand.kind == Operand::Kind::Address)
      addresses.push_back(&operand);
    if (operand.kind == Operand::Kind::Integer)
      numbers.push_back(&operand);
  }
  if (isOfSource && addresses.size() < 2)
    return false;
  if (!addresses.empty())
    addresses[isOfSource]->bits += offset;
  else if (!numbers.empty())
    numbers.back()->bits += offset;
  else
    return false;
  return true;
}

void mutateOne(Module &module, const std::string &mutation) {
  std::vector<std::string> parts;
  std::stringstream stream(mutation);
  for (std::string part; std::getline(stream, part, ':');)
    parts.push_back(part);
  auto refuse = [&](const std::string &why) { throw ParseError{0, "mutation '" + mutation + "' " + why}; };
  const bool isOfLine = parts.size() > 1 && isNumber(parts[1]);
  const size_t first = isOfLine ? 2 : 3; // of the change
  if (parts.size() < 3 || (!isOfLine && !isNumber(parts[2])) || parts.size() > first + 2)
    refuse("is none of KERNEL:WHICH:N, KERNEL:WHICH:N:CHANGE, KERNEL:LINE:CHANGE");
  const std::string change = parts.size() > first ? parts[first] : "remove";
  const bool isOfSource = change == "source";
  if (isOfSource != (parts.size() == first + 2))
    refuse("is none of KERNEL:WHICH:N, KERNEL:WHICH:N:CHANGE, KERNEL:LINE:CHANGE");
  auto found = module.functions.find(parts[0]);
  if (found == module.functions.end())
    return;
  Function &function = *found->second;
  const long number = std::atol(parts[isOfLine ? 1 : 2].c_str());
  Statement *s =
      isOfLine
          ? findStatement(function, 1, [&](const Statement &each) { return each.line == number; })
          : findStatement(function, number, [&](const Statement &each) { return isOne(each, parts[1]); });
  if (!s)
    refuse("finds no such instruction");
  if (change == "remove")
    s->opcode.clear();
  else if (change == "pass" ? !passOperand(*s)
                            : !shift(*s, isOfSource, uint64_t(std::atoll(parts.back().c_str()))))
    refuse("cannot change '" + s->text + "'");
}

} // namespace

void mutate(Module &module, const std::string &mutations) {
  std::stringstream stream(mutations);
  for (std::string mutation; std::getline(stream, mutation, ';');)
    mutateOne(module, mutation);
}

} // namespace ortc::emulator
