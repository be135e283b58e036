// Instructions that access memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>

#include "test/gpu/emulator/decode/Decoder.h"

namespace ortc::emulator {
namespace {

uint32_t logOf(uint32_t bytes) { return uint32_t(__builtin_ctz(bytes)); }

/// Elements of .v2, .v4 and .v8.
uint8_t countOf(const std::vector<std::string_view> &parts) {
  return contains(parts, "v2") ? 2 : contains(parts, "v4") ? 4 : contains(parts, "v8") ? 8 : 1;
}

} // namespace

/// The space that an opcode names; constant memory is part of global memory.
Space Decoder::spaceOf(const Parts &parts, bool *isGiven) const {
  static const std::pair<std::string_view, Space> kSpaces[] = {
      {"global", Space::Global},     {"shared", Space::Shared}, {"shared::cta", Space::Shared},
      {"local", Space::Local},       {"param", Space::Param},   {"param::entry", Space::Param},
      {"param::func", Space::Param}, {"const", Space::Global},  {"shared::cluster", Space::Shared}};
  for (auto [name, space] : kSpaces)
    if (contains(parts, name)) {
      if (isGiven)
        *isGiven = true;
      return space;
    }
  return Space::Generic;
}

/// The address of an access, of which `space` says what the opcode names.
void Decoder::setAddress(Instruction &i, const Operand &operand) {
  if (operand.kind != Kind::Address)
    fail("address expected");
  const Operand &base = operand.parts[0];
  i.offset = int64_t(operand.bits);
  if (base.kind == Kind::Register) {
    Width width = registerWidth(base);
    if (width < 32)
      fail("register '" + base.name + "' cannot hold an address");
    i.a = registerPlace(base);
    i.isWide = width == 64;
    // Parameters of functions that were copied into the kernel are its local memory.
    if (i.space == Space::Param && !frame->isKernel)
      i.space = Space::Local;
  } else if (base.kind == Kind::Place) {
    Space own;
    i.offset += int64_t(addressOf(base, &own));
    bool isFitting = i.space == Space::Generic ? own == Space::Global : own == i.space;
    isFitting |= i.space == Space::Param && own == Space::Local;
    if (!isFitting)
      fail("'" + base.name + "' is not in the space that '" + current->opcode + "' accesses");
    i.space = own;
  } else if (base.kind == Kind::Integer) {
    i.offset += int64_t(base.bits);
  } else {
    fail("unknown name '" + base.name + "'");
  }
}

/// Races are told apart by the smallest elements.
void Decoder::noteGranule(Space space, uint32_t bytes) {
  uint8_t log = uint8_t(std::min(logOf(bytes), 2u));
  if (space == Space::Global || space == Space::Generic)
    kernel.globalGranule = std::min(kernel.globalGranule, log);
  if (space == Space::Shared || space == Space::Generic)
    kernel.sharedGranule = std::min(kernel.sharedGranule, log);
}

/// An access to `width` bits for each of `places`, at the space and the address of `at`.
void Decoder::emitAccess(Handler run, const Instruction &at, Width width,
                         const std::vector<uint32_t> &places) {
  const uint32_t list = addList(places);
  Instruction &access = emit(Action::Access, run);
  access.space = at.space;
  access.a = at.a;
  access.isWide = at.isWide;
  access.offset = at.offset;
  access.bytes = width / 8;
  access.count = uint8_t(places.size());
  access.list = list;
}

void Decoder::decodeLoad(const Statement &s, const Parts &parts) {
  want(s, 2, 3); // a third one is a cache policy
  const std::string type(parts.back());
  const Width width = widthOfType(type);
  if (width < 8)
    fail("unknown instruction '" + s.opcode + "'");
  const uint8_t count = countOf(parts);
  const Operand &to = s.operands[0];
  const std::vector<Operand> single = {to};
  const std::vector<Operand> &targets = to.kind == Kind::Vector ? to.parts : single;
  if (targets.size() != count)
    fail("'" + s.opcode + "' needs " + std::to_string(count) + " registers");
  Instruction i;
  i.space = spaceOf(parts);
  setAddress(i, s.operands[1]);
  noteGranule(i.space, count * width / 8u);
  std::vector<uint32_t> places;
  std::vector<std::pair<uint32_t, const Operand *>> extended;
  for (const Operand &target : targets) {
    uint32_t place = kNone;
    if (target.kind != Kind::Sink) {
      Width own = registerWidth(target);
      if (own < width && !(own == 16 && width == 8))
        fail("register '" + target.name + "' is too narrow for '" + s.opcode + "'");
      bool isDirect = (own == 64) == (width == 64) && (type[0] != 's' || own == width);
      place = isDirect ? registerPlace(target) : newRegister(width);
      if (!isDirect)
        extended.push_back({place, &target});
    }
    places.push_back(place);
  }
  emitAccess(laneCode().load[logOf(width / 8u)], i, width, places);
  for (auto [place, target] : extended)
    widen(type, place, *target);
}

void Decoder::decodeStore(const Statement &s, const Parts &parts) {
  want(s, 2, 3);
  const Width width = widthOfType(parts.back());
  if (width < 8)
    fail("unknown instruction '" + s.opcode + "'");
  const uint8_t count = countOf(parts);
  const Operand &from = s.operands[1];
  const std::vector<Operand> single = {from};
  const std::vector<Operand> &sources = from.kind == Kind::Vector ? from.parts : single;
  if (sources.size() != count)
    fail("'" + s.opcode + "' needs " + std::to_string(count) + " operands");
  std::vector<uint32_t> places;
  for (const Operand &operand : sources)
    places.push_back(source(operand, width, true));
  Instruction i;
  i.space = spaceOf(parts);
  setAddress(i, s.operands[0]);
  noteGranule(i.space, count * width / 8u);
  emitAccess(laneCode().store[logOf(width / 8u)], i, width, places);
}

/// atom d, [a], b[, c] and red [a], b.
void Decoder::decodeAtomic(const Statement &s, const Parts &parts) {
  static const std::pair<std::string_view, AtomicOperation> kOperations[] = {
      {"add", AtomicOperation::Add},       {"min", AtomicOperation::Min},
      {"max", AtomicOperation::Max},       {"inc", AtomicOperation::Inc},
      {"dec", AtomicOperation::Dec},       {"and", AtomicOperation::And},
      {"or", AtomicOperation::Or},         {"xor", AtomicOperation::Xor},
      {"exch", AtomicOperation::Exchange}, {"cas", AtomicOperation::CompareExchange}};
  const std::string_view type = parts.back();
  if (type[0] == 'f' || type.substr(0, 2) == "bf")
    fail("'" + s.opcode +
         "': atomics on floating-point numbers are refused, as their sum depends on the order");
  const Width width = widthOfType(type);
  const AtomicOperation *operation = nullptr;
  for (const auto &[name, known] : kOperations)
    if (contains(parts, name))
      operation = &known;
  if (!operation || (width != 32 && width != 64))
    fail("unknown instruction '" + s.opcode + "'");
  const bool isReduction = parts[0] == "red", isSwap = *operation == AtomicOperation::CompareExchange;
  const size_t first = isReduction ? 0 : 1;
  want(s, first + 2 + isSwap, first + 2 + isSwap);
  Instruction i;
  i.space = spaceOf(parts);
  setAddress(i, s.operands[first]);
  noteGranule(i.space, width / 8u);
  i.b = source(s.operands[first + 1], width);
  if (isSwap)
    i.c = source(s.operands[first + 2], width);
  if (!isReduction)
    i.d = result(s.operands[0], width);
  Instruction &atomic = emit(Action::Access, width == 64 ? laneCode().atomic64 : laneCode().atomic32);
  atomic.space = i.space;
  atomic.a = i.a;
  atomic.b = i.b;
  atomic.c = i.c;
  atomic.d = i.d;
  atomic.isWide = i.isWide;
  atomic.offset = i.offset;
  atomic.bytes = width / 8;
  atomic.mode = uint8_t(*operation);
  atomic.detail = type[0] == 's';
}

/// cvta: generic addresses are those of a space plus where it begins.
void Decoder::decodeConvertAddress(const Statement &s, const Parts &parts) {
  want(s, 2, 2);
  Space space = spaceOf(parts);
  const uint64_t base = space == Space::Shared  ? kSharedBase
                        : space == Space::Local ? kLocalBase
                        : space == Space::Param ? kParamBase
                                                : 0;
  const bool isTo = contains(parts, "to");
  const Width width = widthOfType(parts.back());
  if (width != 64)
    fail("addresses of 32 bits are not supported");
  if (space == Space::Param && !frame->isKernel)
    fail("addresses of parameters of functions are not supported");
  const Operand &from = s.operands[1];
  uint32_t value = source(from, 64), d = result(s.operands[0], 64);
  apply(isTo ? "sub.u64" : "add.u64", d, {value, constant(base, true)});
}

void Decoder::decodeIsSpace(const Statement &s, const Parts &parts) {
  want(s, 2, 2);
  uint64_t first = 0, end = kSharedBase;
  Space space = spaceOf(parts);
  if (space != Space::Global) {
    first = space == Space::Shared ? kSharedBase : space == Space::Local ? kLocalBase : kParamBase;
    end = first + kWindow;
  }
  uint32_t value = source(s.operands[1], 64), isAbove = newRegister(1), isBelow = newRegister(1);
  apply("setp.ge.u64", isAbove, {value, constant(first, true)});
  apply("setp.lt.u64", isBelow, {value, constant(end, true)});
  apply("and.pred", result(s.operands[0], 1), {isAbove, isBelow});
}

/// cp.async of single elements, and its groups.
void Decoder::decodeCopyAsync(const Statement &s, const Parts &parts) {
  if (contains(parts, "async") && contains(parts, "mbarrier"))
    return decodeMbarrier(s, parts);
  if (!contains(parts, "async") || contains(parts, "bulk"))
    fail("unknown instruction '" + s.opcode + "'");
  const bool isWaiting = contains(parts, "wait_group"), isWaitingForAll = contains(parts, "wait_all");
  if (isWaiting || isWaitingForAll || contains(parts, "commit_group")) {
    want(s, isWaiting, isWaiting);
    Instruction &i = emit(Action::Access, laneCode().waitForCopies);
    i.mode = isWaiting ? 0 : isWaitingForAll ? 2 : 1;
    i.detail = isWaiting ? uint8_t(s.operands[0].bits) : 0;
    return;
  }
  want(s, 3, 5);
  Instruction to, from;
  to.space = Space::Shared;
  from.space = Space::Global;
  setAddress(to, s.operands[0]);
  setAddress(from, s.operands[1]);
  const uint64_t bytes = s.operands[2].bits;
  if (s.operands[2].kind != Kind::Integer || (bytes != 4 && bytes != 8 && bytes != 16))
    fail("'" + s.opcode + "' copies 4, 8 or 16 bytes");
  noteGranule(Space::Generic, 4);
  uint32_t given = kNone;
  if (s.operands.size() > (contains(parts, "L2::cache_hint") ? 4u : 3u))
    given = source(s.operands[3], 32);
  if (from.a == kNone) { // a variable
    from.a = constant(uint64_t(from.offset), true);
    from.offset = 0;
    from.isWide = true;
  }
  if (!from.isWide)
    fail("the source of '" + s.opcode + "' needs an address of 64 bits");
  Instruction &i = emit(Action::Access, laneCode().copyAsync);
  i.space = Space::Shared;
  i.a = to.a;
  i.isWide = to.isWide;
  i.offset = to.offset;
  i.b = from.a;
  i.c = given;
  i.bytes = uint8_t(bytes);
  i.list = addList({uint32_t(uint64_t(from.offset)), uint32_t(uint64_t(from.offset) >> 32)});
}

} // namespace ortc::emulator
