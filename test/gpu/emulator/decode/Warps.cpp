// Instructions of whole warps and blocks: barriers, shuffles, votes, matrices.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/run/WarpWide.h"

#include "test/gpu/emulator/decode/Decoder.h"
#include "test/gpu/emulator/run/PendingProducts.h"
#include "test/gpu/emulator/run/TensorCores.h"

#include <cstdlib>
#include <span>

namespace ortc::emulator {

/// Which of `names` stands in an opcode, the last of several; -1: none.
static int findAny(const std::vector<std::string_view> &parts, std::span<const std::string_view> names) {
  int found = -1;
  for (size_t i = 0; i < names.size(); ++i)
    if (contains(parts, names[i]))
      found = int(i);
  return found;
}

uint32_t Decoder::addList(const std::vector<uint32_t> &values) {
  uint32_t first = uint32_t(kernel.lists.size());
  kernel.lists.insert(kernel.lists.end(), values.begin(), values.end());
  return first;
}

/// bar.sync a[, b], bar.arrive a, b, bar.warp.sync mask, and the same with barrier and barrier.cta.
void Decoder::decodeBarrier(const Statement &s, const Parts &parts) {
  if (contains(parts, "warp")) {
    want(s, 1, 1);
    uint32_t members = source(s.operands[0], 32);
    emit(Action::Gather, synchronizeWarp).e = members;
    return;
  }
  const bool isArrival = contains(parts, "arrive");
  if ((!contains(parts, "sync") && !isArrival) || contains(parts, "cluster"))
    fail("unknown instruction '" + s.opcode + "'");
  want(s, isArrival ? 2 : 1, 2);
  uint32_t barrier = source(s.operands[0], 32);
  uint32_t threads = s.operands.size() > 1 ? source(s.operands[1], 32) : kNone;
  Instruction &i = emit(isArrival ? Action::Arrive : Action::Barrier, nullptr);
  i.a = barrier;
  i.b = threads;
}

/// shfl.sync.MODE.b32 d[|p], a, b, c, mask
void Decoder::decodeShuffle(const Statement &s, const Parts &parts) {
  want(s, 5, 5);
  static const std::string_view kModes[] = {"up", "down", "bfly", "idx"};
  const int mode = findAny(parts, kModes);
  if (mode < 0 || parts[1] != "sync")
    fail("unknown instruction '" + s.opcode + "'");
  const Operand &to = s.operands[0];
  const bool isPair = to.kind == Kind::Pair;
  uint32_t a = source(s.operands[1], 32), b = source(s.operands[2], 32), c = source(s.operands[3], 32);
  uint32_t members = source(s.operands[4], 32);
  uint32_t d = result(isPair ? to.parts[0] : to, 32), p = isPair ? result(to.parts[1], 1) : kNone;
  uint32_t list = addList({p});
  Instruction &i = emit(Action::Gather, shuffle);
  i.mode = uint8_t(mode);
  i.a = a;
  i.b = b;
  i.c = c;
  i.e = members;
  i.d = d;
  i.list = list;
}

/// vote.sync.MODE.TYPE d, [!]a, mask
void Decoder::decodeVote(const Statement &s, const Parts &parts) {
  want(s, 3, 3);
  static const std::string_view kModes[] = {"all", "any", "uni", "ballot"};
  const int mode = findAny(parts, kModes);
  if (mode < 0 || parts[1] != "sync")
    fail("unknown instruction '" + s.opcode + "'");
  uint32_t a = predicate(s.operands[1]), members = source(s.operands[2], 32);
  uint32_t d = result(s.operands[0], mode == int(Vote::Ballot) ? 32 : 1);
  Instruction &i = emit(Action::Gather, vote);
  i.mode = uint8_t(mode);
  i.a = a;
  i.e = members;
  i.d = d;
}

/// match.any.sync.TYPE d, a, mask and match.all.sync.TYPE d[|p], a, mask
void Decoder::decodeMatch(const Statement &s, const Parts &parts) {
  want(s, 3, 3);
  const Width width = widthOfType(parts.back());
  const bool isAll = contains(parts, "all");
  if (width < 32 || (!isAll && !contains(parts, "any")))
    fail("unknown instruction '" + s.opcode + "'");
  const Operand &to = s.operands[0];
  const bool isPair = to.kind == Kind::Pair;
  uint32_t a = source(s.operands[1], width), members = source(s.operands[2], 32);
  uint32_t d = result(isPair ? to.parts[0] : to, 32), p = isPair ? result(to.parts[1], 1) : kNone;
  uint32_t list = addList({p});
  Instruction &i = emit(Action::Gather, match);
  i.mode = isAll;
  i.bytes = width / 8;
  i.a = a;
  i.e = members;
  i.d = d;
  i.list = list;
}

/// redux.sync.OP.TYPE d, a, mask
void Decoder::decodeReduce(const Statement &s, const Parts &parts) {
  want(s, 3, 3);
  static const std::string_view kOperations[] = {"add", "min", "max", "and", "or", "xor"};
  const int operation = findAny(parts, kOperations);
  if (operation < 0 || widthOfType(parts.back()) != 32 || parts.back()[0] == 'f')
    fail("unknown instruction '" + s.opcode + "'");
  uint32_t a = source(s.operands[1], 32), members = source(s.operands[2], 32), d = result(s.operands[0], 32);
  Instruction &i = emit(Action::Gather, reduce);
  i.mode = uint8_t(operation);
  i.detail = parts.back()[0] == 's';
  i.a = a;
  i.e = members;
  i.d = d;
}

/// elect.sync d|p, mask
void Decoder::decodeElect(const Statement &s, const Parts &) {
  want(s, 2, 2);
  const Operand &to = s.operands[0];
  if (to.kind != Kind::Pair)
    fail("elect needs two results");
  uint32_t members = source(s.operands[1], 32), p = result(to.parts[1], 1);
  uint32_t d = result(to.parts[0], 32), list = addList({p});
  Instruction &i = emit(Action::Gather, elect);
  i.e = members;
  i.d = d;
  i.list = list;
}

void Decoder::decodeActiveMask(const Statement &s, const Parts &) {
  want(s, 1, 1);
  uint32_t d = result(s.operands[0], 32);
  emit(Action::Compute, activeMask).d = d;
}

/// ldmatrix.sync.aligned.m8n8.xN[.trans].shared.b16 {d}, [a] and stmatrix with its operands the other way
/// round
void Decoder::decodeMatrixAccess(const Statement &s, const Parts &parts) {
  want(s, 2, 2);
  const bool isLoad = parts[0] == "ldmatrix";
  const Operand &vector = s.operands[isLoad ? 0 : 1], &address = s.operands[isLoad ? 1 : 0];
  const size_t count = contains(parts, "x4") ? 4 : contains(parts, "x2") ? 2 : 1;
  if (!contains(parts, "m8n8") || parts.back() != "b16")
    fail("unknown instruction '" + s.opcode + "'");
  const std::vector<Operand> single = {vector};
  const std::vector<Operand> &registers = vector.kind == Kind::Vector ? vector.parts : single;
  if (registers.size() != count)
    fail("'" + s.opcode + "' needs " + std::to_string(count) + " registers");
  Instruction at;
  at.space = spaceOf(parts);
  setAddress(at, address);
  noteGranule(at.space, 16);
  uint32_t list = uint32_t(kernel.lists.size());
  for (const Operand &r : registers)
    kernel.lists.push_back(isLoad ? result(r, 32) : source(r, 32));
  Instruction &i = emit(Action::Gather, isLoad ? laneCode().loadMatrix : laneCode().storeMatrix);
  i.space = at.space;
  i.a = at.a;
  i.isWide = at.isWide;
  i.offset = at.offset;
  i.count = uint8_t(count);
  i.mode = contains(parts, "trans");
  i.list = list;
  i.needsAllLanes = true;
}

/// mma.sync.aligned.SHAPE.row.col.D.A.B.C {d}, {a}, {b}, {c}
void Decoder::decodeProduct(const Statement &s, const Parts &) {
  want(s, 4, 4);
  const std::string prefix = "mma.sync.aligned.";
  const OperationList &products = laneCode().products;
  const Operation *product = nullptr;
  for (uint32_t k = 0; k < products.count && s.opcode.size() > prefix.size(); ++k)
    if (s.opcode.compare(0, prefix.size(), prefix) == 0 &&
        s.opcode.substr(prefix.size()) == products.first[k].name)
      product = products.first + k;
  if (!product)
    fail("unknown instruction '" + s.opcode + "'");
  uint32_t list = uint32_t(kernel.lists.size());
  for (size_t k = 0; k < 4; ++k) {
    const Operand &operand = s.operands[k];
    const std::vector<Operand> single = {operand};
    const std::vector<Operand> &registers = operand.kind == Kind::Vector ? operand.parts : single;
    if (registers.size() != product->operands[k == 0 ? 2 : k - 1])
      fail("operand " + std::to_string(k) + " of '" + s.opcode + "' has the wrong number of registers");
    for (const Operand &r : registers)
      kernel.lists.push_back(k == 0 ? result(r, 32) : source(r, 32));
  }
  Instruction &i = emit(Action::Gather, product->run);
  i.mode = tensorCoreOf(capability);
  i.list = list;
  i.needsAllLanes = true;
}

/// wgmma.mma_async.sync.aligned.m64nNk16.f32.TYPE.TYPE {d}, a, b, add, 1, 1[, turned], turned with a descriptor
/// or registers for a; wgmma.fence, wgmma.commit_group, wgmma.wait_group N
void Decoder::decodeGroupProduct(const Statement &s, const Parts &parts) {
  if (module.target != 90 || module.targetSuffix != 'a')
    fail("'" + s.opcode + "' needs .target sm_90a");
  static const std::string_view kOrders[] = {"wait_group", "commit_group", "fence"};
  if (const int order = findAny(parts, kOrders); order >= 0) {
    want(s, order == 0, order == 0);
    Instruction &i = emit(Action::Gather, laneCode().orderProducts);
    i.mode = uint8_t(order);
    i.detail = order == 0 ? uint8_t(s.operands[0].bits) : 0;
    i.needsAllLanes = true;
    return;
  }
  const std::string_view type = parts.back();
  const std::string shape(parts.size() == 8 ? parts[4] : "");
  const bool isKnown = parts[1] == "mma_async" && parts.size() == 8 && shape.compare(0, 4, "m64n") == 0 &&
                       shape.size() > 7 && shape.compare(shape.size() - 3, 3, "k16") == 0 &&
                       parts[5] == "f32" && parts[6] == type && (type == "bf16" || type == "f16");
  const size_t columns = isKnown ? size_t(std::atol(shape.c_str() + 4)) : 0;
  if (!columns || columns % 8 || columns > 256)
    fail("unknown instruction '" + s.opcode + "'");
  const bool isOfRegisters = s.operands[1].kind == Kind::Vector;
  want(s, isOfRegisters ? 7 : 8, isOfRegisters ? 7 : 8);
  uint8_t turned = 0; // which sides lie the other way round
  for (size_t k = 4; k < s.operands.size(); ++k) {
    const bool isSign = k < 6;
    if (s.operands[k].kind != Kind::Integer || (isSign ? s.operands[k].bits != 1 : s.operands[k].bits > 1))
      fail("'" + s.opcode + "' with negated factors is not supported");
    if (!isSign && s.operands[k].bits)
      turned |= k + 1 == s.operands.size() ? kColumnsTurned : kRowsTurned;
  }
  if (s.operands[0].parts.size() != columns / 2 || (isOfRegisters && s.operands[1].parts.size() != 4))
    fail("'" + s.opcode + "' has the wrong number of registers");
  const uint32_t a = isOfRegisters ? kNone : source(s.operands[1], 64), b = source(s.operands[2], 64);
  const uint32_t adds = predicate(s.operands[3]);
  const uint32_t list = uint32_t(kernel.lists.size());
  for (const Operand &r : s.operands[0].parts)
    kernel.lists.push_back(result(r, 32));
  if (isOfRegisters)
    for (const Operand &r : s.operands[1].parts)
      kernel.lists.push_back(source(r, 32));
  noteGranule(Space::Shared, 16);
  Instruction &i = emit(Action::Gather, laneCode().beginProduct);
  i.space = Space::Shared;
  i.a = a;
  i.b = b;
  i.c = adds;
  i.count = uint8_t(columns / 8);
  i.mode = type == "f16";
  i.detail = turned;
  i.list = list;
  i.needsAllLanes = true;
}

/// mbarrier.init [a], count; mbarrier.inval [a]; mbarrier.arrive d, [a][, count]; mbarrier.test_wait[.parity] p,
/// [a], phase, also try_wait; cp.async.mbarrier.arrive[.noinc] [a]
void Decoder::decodeMbarrier(const Statement &s, const Parts &parts) {
  const LaneCode &code = laneCode();
  const bool isInit = parts[1] == "init", isTest = parts[1] == "test_wait" || parts[1] == "try_wait",
             isCopy = parts[0] == "cp", isArrival = isCopy || parts[1] == "arrive";
  for (std::string_view part : {"expect_tx", "noComplete", "cluster", "shared::cluster"})
    if (contains(parts, part))
      fail("unknown instruction '" + s.opcode + "'");
  if (!isInit && !isTest && !isArrival && parts[1] != "inval")
    fail("unknown instruction '" + s.opcode + "'");
  const size_t first = isTest || (isArrival && !isCopy) ? 1 : 0; // of the address
  want(s, first + 1 + (isInit || isTest), first + 1 + (isInit || isTest || (isArrival && !isCopy)) + isTest);
  Instruction at;
  at.space = spaceOf(parts);
  setAddress(at, s.operands[first]);
  noteGranule(at.space, 8);
  const bool isParity = contains(parts, "parity");
  uint32_t b = kNone, d = kNone;
  if (s.operands.size() > first + 1)
    b = source(s.operands[first + 1], isTest && !isParity ? 64 : 32);
  if (first)
    d = result(s.operands[0], isTest ? 1 : 64);
  Instruction &i = emit(isTest ? Action::Poll : Action::Access, isInit      ? code.initializeBarrier
                                                                : isTest    ? code.testBarrier
                                                                : isArrival ? code.arriveAtBarrier
                                                                            : code.invalidateBarrier);
  i.space = at.space;
  i.a = at.a;
  i.isWide = at.isWide;
  i.offset = at.offset;
  i.bytes = 8;
  i.b = b;
  i.d = d;
  i.mode = isCopy ? (contains(parts, "noinc") ? 1 : 2) : isParity;
}

/// Only the fence between the generic and the asynchronous proxy matters here.
void Decoder::decodeFence(const Statement &, const Parts &parts) {
  if (contains(parts, "proxy") && contains(parts, "async"))
    emit(Action::Compute, laneCode().fenceProxy);
}

void Decoder::decodeTrap(const Statement &, const Parts &) { emit(Action::Access, trap); }

} // namespace ortc::emulator
