// Operands: registers, constants, special registers and the places of variables.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstring>
#include <map>

#include "test/gpu/emulator/decode/Decoder.h"

namespace ortc::emulator {

Width widthOfType(std::string_view type) {
  static const std::map<std::string_view, Width> kWidths = {
      {"pred", 1}, {"b8", 8},     {"u8", 8},      {"s8", 8},     {"b16", 16},   {"u16", 16},
      {"s16", 16}, {"f16", 16},   {"bf16", 16},   {"b32", 32},   {"u32", 32},   {"s32", 32},
      {"f32", 32}, {"f16x2", 32}, {"bf16x2", 32}, {"s16x2", 32}, {"u16x2", 32}, {"tf32", 32},
      {"b64", 64}, {"u64", 64},   {"s64", 64},    {"f64", 64},   {"f32x2", 64}};
  auto found = kWidths.find(type);
  return found == kWidths.end() ? 0 : found->second;
}

void Decoder::fail(const std::string &message) const {
  throw ParseError{current ? current->line : 0, message};
}

void Decoder::want(const Statement &s, size_t least, size_t most) const {
  if (s.operands.size() < least || s.operands.size() > most)
    fail("'" + s.opcode + "' has the wrong number of operands");
}

uint32_t Decoder::newRegister(Width width) {
  uint32_t place = kernel.registerBytes;
  kernel.registerBytes += kLanes * (width == 64 ? 8 : 4);
  return place;
}

Width Decoder::registerWidth(const Operand &operand) const {
  if (operand.kind == Kind::Register)
    return frame->function->registers[size_t(operand.reg)].width;
  if (operand.kind == Kind::Name)
    fail("unknown name '" + operand.name + "'");
  fail("register expected");
}

uint32_t Decoder::registerPlace(const Operand &operand) {
  Width width = registerWidth(operand);
  uint32_t &place = frame->registers[size_t(operand.reg)];
  if (place == kNone)
    place = newRegister(width);
  return place;
}

uint32_t Decoder::constant(uint64_t bits, bool isWide) {
  auto [found, isNew] = constants[isWide].try_emplace(bits, 0);
  if (isNew) {
    found->second = newRegister(isWide ? 64 : 32);
    kernel.constants.push_back({found->second, isWide, bits});
  }
  return found->second;
}

uint32_t Decoder::special(const std::string &name, Width width) {
  using S = SpecialRegister;
  static const std::map<std::string, S> kRegisters = {{"%tid.x", S::TidX},
                                                      {"%tid.y", S::TidY},
                                                      {"%tid.z", S::TidZ},
                                                      {"%ntid.x", S::NtidX},
                                                      {"%ntid.y", S::NtidY},
                                                      {"%ntid.z", S::NtidZ},
                                                      {"%ctaid.x", S::CtaidX},
                                                      {"%ctaid.y", S::CtaidY},
                                                      {"%ctaid.z", S::CtaidZ},
                                                      {"%nctaid.x", S::NctaidX},
                                                      {"%nctaid.y", S::NctaidY},
                                                      {"%nctaid.z", S::NctaidZ},
                                                      {"%laneid", S::LaneId},
                                                      {"%warpid", S::WarpId},
                                                      {"%nwarpid", S::NumWarps},
                                                      {"%smid", S::SmId},
                                                      {"%nsmid", S::NumSms},
                                                      {"%gridid", S::GridId},
                                                      {"%lanemask_eq", S::MaskEq},
                                                      {"%lanemask_lt", S::MaskLt},
                                                      {"%lanemask_le", S::MaskLe},
                                                      {"%lanemask_gt", S::MaskGt},
                                                      {"%lanemask_ge", S::MaskGe},
                                                      {"%dynamic_smem_size", S::DynamicShared},
                                                      {"%total_smem_size", S::TotalShared},
                                                      // Every block is a cluster of its own.
                                                      {"%cluster_ctarank", S::Zero},
                                                      {"%cluster_nctarank", S::One},
                                                      {"%cluster_ctaid.x", S::Zero},
                                                      {"%cluster_ctaid.y", S::Zero},
                                                      {"%cluster_ctaid.z", S::Zero},
                                                      {"%cluster_nctaid.x", S::One},
                                                      {"%cluster_nctaid.y", S::One},
                                                      {"%cluster_nctaid.z", S::One},
                                                      {"%clusterid.x", S::CtaidX},
                                                      {"%clusterid.y", S::CtaidY},
                                                      {"%clusterid.z", S::CtaidZ},
                                                      {"%nclusterid.x", S::NctaidX},
                                                      {"%nclusterid.y", S::NctaidY},
                                                      {"%nclusterid.z", S::NctaidZ}};
  auto known = kRegisters.find(name);
  if (known == kRegisters.end())
    fail("unknown register '" + name + "'");
  bool isWide = width == 64;
  auto [found, isNew] = specials[isWide].try_emplace(name, 0);
  if (isNew) {
    found->second = newRegister(width);
    kernel.specials.push_back({found->second, isWide, known->second});
  }
  return found->second;
}

const Decoder::Place &Decoder::placeOf(const Variable &v) {
  auto known = frame->places.find(&v);
  if (known != frame->places.end())
    return known->second;
  auto align = [](uint64_t offset, uint64_t to) { return (offset + to - 1) / to * to; };
  if (v.space == Space::Shared) {
    // Of the module or of a function: every kernel has one copy.
    auto [found, isNew] = sharedPlaces.try_emplace(&v, Place{Space::Shared, 0});
    if (isNew && v.isExtern) {
      kernel.dynamicAlign = std::max(kernel.dynamicAlign, uint32_t(v.align));
      found->second.at = dynamicBase;
      usesDynamicShared = true;
    } else if (isNew) {
      found->second.at = align(kernel.sharedBytes, v.align);
      kernel.sharedBytes = uint32_t(found->second.at + v.bytes);
    }
    return frame->places[&v] = found->second;
  }
  auto global = addresses.find(&v);
  if (global != addresses.end())
    return frame->places[&v] = {Space::Global, global->second};
  if (v.space != Space::Local && v.space != Space::Param)
    fail("unresolved variable '" + v.name + "'");
  uint64_t at = align(kernel.localBytes, v.align);
  // Lanes follow each other: their memory stays aligned for accesses of 16 bytes.
  kernel.localBytes = uint32_t(align(at + v.bytes, 16));
  return frame->places[&v] = {Space::Local, at};
}

/// The address of a variable plus the operand's offset, and the space that is for.
uint64_t Decoder::addressOf(const Operand &operand, Space *space) {
  const Place &place = placeOf(*operand.variable);
  if (space)
    *space = place.space;
  return place.at + operand.bits;
}

uint32_t Decoder::source(const Operand &operand, Width width, bool isLoose) {
  switch (operand.kind) {
  case Kind::Register: {
    Width own = registerWidth(operand);
    uint32_t place = registerPlace(operand);
    if (operand.isNegated) {
      if (own != 1 || width != 1)
        fail("'!' before what is no predicate");
      uint32_t negated = newRegister(1);
      apply("not.pred", negated, {place});
      return negated;
    }
    if (own == width || (isLoose && own > width && own != 64 && width != 1) ||
        (width == 8 && own != 1 && own != 64))
      return place;
    if (isLoose && own == 64 && width != 1) {
      uint32_t narrow = newRegister(32);
      apply("cvt.u32.u64", narrow, {place});
      return narrow;
    }
    fail("register '" + frame->function->registers[size_t(operand.reg)].name + "' has " +
         std::to_string(own) + " bits where " + std::to_string(width) + " are needed");
  }
  case Kind::Integer:
    if (width == 1)
      return constant(operand.bits ? ~0u : 0u, false);
    return constant(width == 64 ? operand.bits : operand.bits & ((uint64_t(1) << width) - 1), width == 64);
  case Kind::Single: {
    if (width == 32)
      return constant(operand.bits, false);
    break;
  }
  case Kind::Double: {
    if (width == 64)
      return constant(operand.bits, true);
    if (width != 32)
      break;
    double wide;
    std::memcpy(&wide, &operand.bits, sizeof wide);
    float narrow = float(wide);
    uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof bits);
    return constant(bits, false);
  }
  case Kind::Special:
    if (width != 32 && width != 64)
      break;
    return special(operand.name, width);
  case Kind::Place: {
    uint64_t at = addressOf(operand, nullptr);
    return constant(width == 64 ? at : uint32_t(at), width == 64);
  }
  case Kind::Name:
    fail("unknown name '" + operand.name + "'");
  default:
    break;
  }
  fail("an operand of '" + current->opcode + "' cannot be what is given");
}

uint32_t Decoder::result(const Operand &operand, Width width) {
  if (operand.kind == Kind::Sink)
    return newRegister(width);
  Width own = registerWidth(operand);
  if (own != width)
    fail("register '" + frame->function->registers[size_t(operand.reg)].name + "' has " +
         std::to_string(own) + " bits where the result has " + std::to_string(width));
  return registerPlace(operand);
}

Instruction &Decoder::emit(Action action, Handler run) {
  Instruction i;
  i.action = action;
  i.run = run;
  i.statement = uint32_t(kernel.statements.size() - 1);
  if (current && current->predicate >= 0) {
    Operand operand;
    operand.kind = Kind::Register;
    operand.reg = current->predicate;
    i.predicate = registerPlace(operand);
    i.isNegated = current->isNegated;
  }
  kernel.code.push_back(i);
  return kernel.code.back();
}

} // namespace ortc::emulator
