// Operations that the tables list, moves and comparisons.
//
// An opcode is looked up without its rounding mode: a mode other than to nearest is set around the operation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/decode/Decoder.h"
#include "test/gpu/emulator/run/WarpWide.h"

namespace ortc::emulator {
namespace {

using Table = std::unordered_map<std::string_view, const Operation *>;

const Table &operations() {
  static const Table table = [] {
    Table made;
    for (const OperationList &list : laneCode().lists)
      for (uint32_t k = 0; k < list.count; ++k)
        made.emplace(list.first[k].name, list.first + k);
    return made;
  }();
  return table;
}

/// 0 to 3 for rn, rz, rm, rp; -1: it is no rounding mode.
int roundingOf(std::string_view part) {
  return part == "rn" ? 0 : part == "rz" ? 1 : part == "rm" ? 2 : part == "rp" ? 3 : -1;
}

/// "u32" -> "b32": for operations that treat all types of a width alike.
std::string bitsType(std::string_view type) {
  Width width = widthOfType(type);
  return width <= 1 ? std::string(type) : "b" + std::to_string(width);
}

} // namespace

const Operation *Decoder::find(const std::string &name) const {
  auto found = operations().find(name);
  return found == operations().end() ? nullptr : found->second;
}

void Decoder::noteApproximation(const std::string &name) {
  if (name.find(".approx") != name.npos || name.find("div.full") != name.npos)
    kernel.approximations.push_back(uint32_t(kernel.statements.size() - 1));
}

void Decoder::apply(const std::string &name, uint32_t d, std::initializer_list<uint32_t> operands,
                    int rounding) {
  const Operation *operation = find(name);
  if (!operation)
    fail("unknown instruction '" + name + "'");
  noteApproximation(name);
  Instruction &i = emit(Action::Compute, operation->run);
  i.d = d;
  uint32_t *places[] = {&i.a, &i.b, &i.c};
  size_t k = 0;
  for (uint32_t operand : operands)
    *places[k++] = operand;
  i.mode = operation->mode;
  if (rounding > 0) {
    i.inner = i.run;
    i.run = laneCode().rounded;
    i.mode = uint8_t(rounding);
  }
}

void Decoder::decodeArithmetic(const Statement &s, const Parts &parts) {
  std::string_view op = parts[0];
  std::string name;
  int rounding = 0;
  for (std::string_view part : parts) {
    if (roundingOf(part) >= 0) {
      rounding = roundingOf(part);
      continue;
    }
    if (part != parts[0])
      name += '.';
    name += part;
  }
  const std::string_view type = parts.back();
  const bool carries = contains(parts, "cc") || op == "addc" || op == "subc";
  auto retype = [&](const std::string &to) { name = name.substr(0, name.size() - type.size()) + to; };
  if (carries || op == "selp")
    retype(bitsType(type));
  if (op == "slct")
    name = "slct." + bitsType(parts[parts.size() - 2]) + "." + std::string(type);
  if (op == "mad" && (type == "f32" || type == "f64"))
    name.replace(0, 3, "fma");
  const Operation *operation = find(name);
  if (!operation)
    fail("unknown instruction '" + s.opcode + "'");
  size_t count = 0;
  while (count < 3 && operation->operands[count])
    ++count;
  const bool hasFourth = op == "lop3" || op == "bfi";
  want(s, 1 + count + hasFourth, 1 + count + hasFourth);
  uint32_t read[4] = {kNone, kNone, kNone, kNone};
  for (size_t k = 0; k < count; ++k)
    read[k] = source(s.operands[1 + k], operation->operands[k]);
  if (op == "bfi")
    read[3] = source(s.operands[4], 32);
  if (op == "lop3" && s.operands[4].kind != Kind::Integer)
    fail("lop3 needs a constant table");
  uint32_t d = result(s.operands[0], operation->result);
  apply(name, d, {read[0], read[1], read[2]}, rounding);
  Instruction &i = kernel.code.back();
  i.e = read[3];
  if (op == "lop3")
    i.detail = uint8_t(s.operands[4].bits);
}

/// mov: registers, constants, addresses, special registers, and vectors that are packed or taken apart.
void Decoder::decodeMove(const Statement &s, const Parts &parts) {
  want(s, 2, 2);
  const Width width = widthOfType(parts.back());
  if (!width || width == 8)
    fail("unknown instruction '" + s.opcode + "'");
  const Operand &to = s.operands[0], &from = s.operands[1];
  const std::string suffix = std::to_string(width);
  if (from.kind == Kind::Special && from.name.compare(0, 6, "%clock") == 0) {
    uint32_t d = result(to, width);
    Instruction &i = emit(Action::Compute, readClock);
    i.d = d;
    i.bytes = width / 8;
    i.mode = from.name == "%clock_hi";
    return;
  }
  if (from.kind == Kind::Special && from.name.compare(0, 11, "%globaltime") == 0)
    fail("kernels have no time of day");
  if (to.kind != Kind::Vector && from.kind != Kind::Vector) {
    std::string name = width == 1 ? "mov.pred" : "mov.b" + suffix;
    uint32_t value = source(from, width);
    return apply(name, result(to, width), {value});
  }
  const Operand &vector = to.kind == Kind::Vector ? to : from;
  const size_t count = vector.parts.size();
  const Width part = Width(count ? width / count : 0);
  if (count < 2 || part < 8)
    fail("a vector of " + std::to_string(count) + " does not fit '" + s.opcode + "'");
  if (count == 2 && part >= 16) {
    if (to.kind != Kind::Vector) {
      uint32_t first = source(vector.parts[0], part), second = source(vector.parts[1], part);
      return apply("pack.b" + suffix, result(to, width), {first, second});
    }
    uint32_t value = source(from, width);
    for (size_t k : {0, 1})
      if (vector.parts[k].kind != Kind::Sink)
        apply((k ? "high.b" : "low.b") + suffix, result(vector.parts[k], part), {value});
    return;
  }
  const std::string low = part == 8 ? "u8" : "u" + std::to_string(part), whole = "u" + suffix;
  if (to.kind == Kind::Vector) {
    uint32_t value = source(from, width);
    for (size_t k = 0; k < count; ++k) {
      if (vector.parts[k].kind == Kind::Sink)
        continue;
      uint32_t shifted = value;
      if (k) {
        shifted = newRegister(width);
        apply("shr." + whole, shifted, {value, constant(k * part, false)});
      }
      apply("cvt." + low + "." + whole, result(vector.parts[k], part == 8 ? 16 : part), {shifted});
    }
    return;
  }
  uint32_t d = result(to, width), sum = kNone;
  for (size_t k = 0; k < count; ++k) {
    uint32_t value = source(vector.parts[k], part), wide = newRegister(width);
    apply("cvt." + whole + "." + low, wide, {value});
    if (k)
      apply("shl.b" + suffix, wide, {wide, constant(k * part, false)});
    if (k + 1 == count)
      apply("or.b" + suffix, d, {sum, wide});
    else if (k)
      apply("or.b" + suffix, sum, {sum, wide});
    else
      sum = wide;
  }
}

/// p = a compares to b, q = not p (where it is not kNone), both combined with the operand behind b, if there
/// is one.
void Decoder::compare(const Statement &s, const Parts &parts, std::string_view type, size_t first, uint32_t p,
                      uint32_t q) {
  static const std::string_view kCombinations[] = {"and", "or", "xor"};
  std::string combination;
  for (std::string_view c : kCombinations)
    if (contains(parts, c))
      combination = std::string(c) + ".pred";
  want(s, first + 2 + !combination.empty(), first + 2 + !combination.empty());
  const Width width = widthOfType(type);
  std::string name =
      "setp." + std::string(parts[1]) + "." + (contains(parts, "ftz") ? "ftz." : "") + std::string(type);
  if (!find(name))
    fail("unknown instruction '" + s.opcode + "'");
  uint32_t a = source(s.operands[first], width), b = source(s.operands[first + 1], width);
  uint32_t other = combination.empty() ? kNone : predicate(s.operands[first + 2]);
  // The result may be an operand of what follows.
  uint32_t is = combination.empty() && q == kNone ? p : newRegister(1);
  apply(name, is, {a, b});
  uint32_t isNot = kNone;
  if (q != kNone) {
    isNot = newRegister(1);
    apply("not.pred", isNot, {is});
  }
  for (auto [value, to] : {std::pair(is, p), std::pair(isNot, q)}) {
    if (to == kNone || value == to)
      continue;
    if (combination.empty())
      apply("mov.pred", to, {value});
    else
      apply(combination, to, {value, other});
  }
}

void Decoder::decodeSetPredicate(const Statement &s, const Parts &parts) {
  want(s, 3, 4);
  const Operand &to = s.operands[0];
  const std::string_view type = parts.back();
  if (type == "f16x2" || type == "bf16x2") { // two comparisons
    const bool isFlushed = contains(parts, "ftz");
    if (to.kind != Kind::Pair || parts.size() > (isFlushed ? 4 : 3))
      fail("unknown instruction '" + s.opcode + "'");
    uint32_t a = source(s.operands[1], 32), b = source(s.operands[2], 32);
    uint32_t p = newRegister(1), q = result(to.parts[1], 1);
    std::string name = "setp." + std::string(parts[1]) + (isFlushed ? ".ftz." : ".") +
                       std::string(type.substr(0, type.size() - 2));
    if (!find(name))
      fail("unknown instruction '" + s.opcode + "'");
    uint32_t highA = newRegister(32), highB = newRegister(32), sixteen = constant(16, false);
    apply(name, p, {a, b});
    apply("shr.b32", highA, {a, sixteen});
    apply("shr.b32", highB, {b, sixteen});
    apply(name, q, {highA, highB});
    return apply("mov.pred", result(to.parts[0], 1), {p});
  }
  const bool isPair = to.kind == Kind::Pair;
  uint32_t p = result(isPair ? to.parts[0] : to, 1);
  uint32_t q = isPair && to.parts[1].kind != Kind::Sink ? result(to.parts[1], 1) : kNone;
  compare(s, parts, type, 1, p, q);
}

/// set.CMP[.BOOL][.ftz].RESULT.TYPE: all ones or 1.0 where it holds, else zero.
void Decoder::decodeSet(const Statement &s, const Parts &parts) {
  want(s, 3, 4);
  const std::string_view type = parts[parts.size() - 2];
  const Width width = widthOfType(type);
  if (width < 16)
    fail("unknown instruction '" + s.opcode + "'");
  const uint64_t yes = type == "f32"    ? 0x3f800000u
                       : type == "f16"  ? 0x3c00u
                       : type == "bf16" ? 0x3f80u
                                        : ~uint64_t(0) >> (64 - width);
  uint32_t holds = newRegister(1);
  compare(s, parts, parts.back(), 1, holds, kNone);
  apply("selp.b" + std::to_string(width), result(s.operands[0], width),
        {constant(yes, width == 64), constant(0, width == 64), holds});
}

} // namespace ortc::emulator
