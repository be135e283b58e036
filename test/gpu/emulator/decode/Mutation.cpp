// Removes barriers and other instructions, or shifts addresses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/decode/Mutation.h"

#include <cstdlib>
#include <sstream>

namespace ortc::emulator {
namespace {

bool startsWith(const std::string &text, const char *start) { return text.rfind(start, 0) == 0; }

bool isBarrier(const Statement &s) {
  return (startsWith(s.opcode, "bar.") && !startsWith(s.opcode, "bar.warp")) ||
         startsWith(s.opcode, "barrier.");
}
bool isAccess(const Statement &s) {
  return (startsWith(s.opcode, "ld.") || startsWith(s.opcode, "st.")) &&
         s.opcode.find(".param") == s.opcode.npos;
}

/// The n-th statement that is one, from 1; null: there are fewer.
template <class Is> Statement *findStatement(Function &function, long n, Is is) {
  for (Statement &s : function.statements)
    if (!s.opcode.empty() && is(s) && --n == 0)
      return &s;
  return nullptr;
}

void mutateOne(Module &module, const std::string &mutation) {
  std::vector<std::string> parts;
  std::stringstream stream(mutation);
  for (std::string part; std::getline(stream, part, ':');)
    parts.push_back(part);
  const bool isRemoval = parts.size() == 3 && parts[2] == "remove";
  const bool isShift = parts.size() == 4 && parts[1] == "access";
  const bool isOfBarrier = parts.size() == 3 && parts[1] == "barrier";
  if (!isRemoval && !isShift && !isOfBarrier)
    throw ParseError{0, "mutation '" + mutation +
                            "' is none of KERNEL:LINE:remove, KERNEL:barrier:N, KERNEL:access:N:OFFSET"};
  auto found = module.functions.find(parts[0]);
  if (found == module.functions.end())
    return;
  Function &function = *found->second;
  Statement *s = nullptr;
  const long number = std::atol(parts[isRemoval ? 1 : 2].c_str());
  if (isRemoval)
    s = findStatement(function, 1, [&](const Statement &each) { return each.line == number; });
  else
    s = findStatement(function, number, isShift ? isAccess : isBarrier);
  if (!s)
    throw ParseError{0, "mutation '" + mutation + "' finds no such instruction"};
  if (!isShift) {
    s->opcode.clear();
    return;
  }
  for (Operand &operand : s->operands)
    if (operand.kind == Operand::Kind::Address)
      operand.bits += uint64_t(std::atoll(parts[3].c_str()));
}

} // namespace

void mutate(Module &module, const std::string &mutations) {
  std::stringstream stream(mutations);
  for (std::string mutation; std::getline(stream, mutation, ';');)
    mutateOne(module, mutation);
}

} // namespace ortc::emulator
