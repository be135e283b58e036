// cvt: which operations of the tables make up a conversion.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/decode/Decoder.h"

namespace ortc::emulator {
namespace {

bool isInteger(std::string_view type) { return type[0] == 'u' || type[0] == 's'; }
bool isSmall(std::string_view type) { return type == "f16" || type == "bf16"; }

} // namespace

/// A result of the type in a register that may be wider: integers are extended.
void Decoder::widen(std::string_view type, uint32_t from, const Operand &to) {
  const Width own = registerWidth(to);
  const std::string name = std::string(type.substr(0, 1) == "s" ? "s" : "u") + std::to_string(own);
  const std::string narrow = (type[0] == 's' ? "s" : "u") + std::to_string(widthOfType(type));
  if (own < widthOfType(type) || own == 1)
    fail("register '" + to.name + "' is too narrow for '" + current->opcode + "'");
  apply("cvt." + name + "." + narrow, registerPlace(to), {from});
}

void Decoder::decodeConvert(const Statement &s, const Parts &parts) {
  if (parts.size() < 3)
    fail("unknown instruction '" + s.opcode + "'");
  std::string to(parts[parts.size() - 2]), from(parts.back()), whole, modifiers;
  int rounding = 0;
  bool isTruncated = false, isAway = false;
  for (size_t k = 1; k + 2 < parts.size(); ++k) {
    std::string part(parts[k]);
    if (part == "rni" || part == "rzi" || part == "rmi" || part == "rpi")
      whole = part + ".";
    else if (part == "rz" || part == "rm" || part == "rp")
      rounding = part == "rz" ? 1 : part == "rm" ? 2 : 3;
    else if (part == "ftz" || part == "sat" || part == "relu")
      modifiers += part + ".";
    else if (part == "rna")
      isAway = true;
    else if (part != "rn")
      fail("unknown instruction '" + s.opcode + "'");
  }
  isTruncated = rounding == 1;
  const bool isPair = to == "f16x2" || to == "bf16x2";
  want(s, isPair ? 3 : 2, isPair ? 3 : 2);
  const Width width = widthOfType(to);
  if (!width || !widthOfType(from))
    fail("unknown instruction '" + s.opcode + "'");
  uint32_t value = source(s.operands[1], widthOfType(from), true);
  if (isPair) {
    uint32_t low = source(s.operands[2], 32);
    return apply("cvt." + modifiers + (isTruncated ? "rz." : "") + to + ".f32", result(s.operands[0], 32),
                 {value, low});
  }
  if (to == "tf32")
    return apply(std::string("cvt.") + (isAway ? "rna" : "rn") + ".tf32.f32", result(s.operands[0], 32),
                 {value});
  auto step = [&](const std::string &name, Width bits, int mode = 0) {
    uint32_t next = newRegister(bits);
    apply(name, next, {value}, mode);
    value = next;
  };
  if (isInteger(from) && isInteger(to)) {
    step("cvt." + modifiers + to + "." + from, width);
  } else if (isInteger(from)) {
    std::string middle = isSmall(to) ? "f64" : to;
    const bool isDirected = rounding && !isSmall(to) && (from == "u32" || from == "u64");
    step((isDirected ? "cvt.directed." : "cvt.") + middle + "." + from, isSmall(to) ? 64 : width,
         isSmall(to) ? 0 : rounding);
    if (isSmall(to))
      step("cvt." + to + ".f64", 16);
  } else if (isInteger(to)) {
    if (isSmall(from)) {
      step("cvt.f32." + from, 32);
      from = "f32";
    }
    std::string flush = modifiers.find("ftz") != modifiers.npos ? "ftz." : "";
    step("cvt." + whole + flush + to + "." + from, width);
  } else if (isSmall(to) && !whole.empty()) {
    step("cvt.f32." + from, 32);
    step("cvt." + whole + "f32.f32", 32);
    step("cvt." + to + ".f32", 16);
  } else if (isSmall(to)) {
    if (isSmall(from)) {
      step("cvt.f32." + from, 32);
      from = "f32";
    }
    if (modifiers.find("ftz") != modifiers.npos) {
      step("cvt.ftz.f32.f32", 32);
      modifiers.erase(modifiers.find("ftz."), 4);
    }
    step("cvt." + modifiers + (isTruncated ? "rz." : "") + to + "." + from, 16);
  } else {
    step("cvt." + whole + modifiers + to + "." + from, width, rounding);
  }
  if (isInteger(to))
    return widen(to, value, s.operands[0]);
  apply("mov.b" + std::to_string(width), result(s.operands[0], width), {value});
}

} // namespace ortc::emulator
