// Turns kernels from statements into instructions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "test/gpu/emulator/lanes/LaneTables.h"
#include "test/gpu/emulator/parse/Ptx.h"
#include "test/gpu/emulator/run/Program.h"

namespace ortc::emulator {

/// Where the module's variables of global and constant memory are.
using AddressMap = std::unordered_map<const Variable *, uint64_t>;

class Decoder {
public:
  /// For a device of so much compute capability, 10 * major + minor.
  Decoder(const Module &module, const AddressMap &addresses, int capability)
      : module(module), addresses(addresses), capability(capability) {}
  /// Throws ParseError.
  Kernel decode(const Function &function);

private:
  using Kind = Operand::Kind;
  /// A variable's space and its offset or address there.
  struct Place {
    Space space;
    uint64_t at;
  };
  /// A function that is being copied into the kernel.
  struct Frame {
    const Function *function;
    std::vector<uint32_t> registers;
    std::unordered_map<const Variable *, Place> places;
    /// Instruction of each statement.
    std::vector<uint32_t> starts;
    struct Jump {
      uint32_t instruction, list;
      size_t statement;
    };
    std::vector<Jump> jumps;
    bool isKernel = false;
  };
  using Parts = std::vector<std::string_view>;
  using Member = void (Decoder::*)(const Statement &, const Parts &);

  // Decoder.cpp: functions, control flow.
  void decodeOnce(const Function &function);
  void decodeFunction(Frame &newFrame, int depth);
  void decodeStatement(const Statement &s);
  void finishJumps(Frame &done);
  void jumpTo(const Statement &s, const std::string &label, uint32_t instruction, uint32_t list);
  void ignore(const Statement &, const Parts &) {}
  void decodeBranch(const Statement &s, const Parts &parts);
  void decodeBranchTable(const Statement &s, const Parts &parts);
  void decodeCall(const Statement &s, const Parts &parts);
  void decodeReturn(const Statement &s, const Parts &parts);
  void decodeExit(const Statement &s, const Parts &parts);

  // Operands.cpp: registers, constants, places.
  [[noreturn]] void fail(const std::string &message) const;
  void want(const Statement &s, size_t least, size_t most) const;
  uint32_t newRegister(Width width);
  uint32_t registerPlace(const Operand &operand);
  Width registerWidth(const Operand &operand) const;
  uint32_t constant(uint64_t bits, bool isWide);
  uint32_t special(const std::string &name, Width width);
  const Place &placeOf(const Variable &variable);
  uint64_t addressOf(const Operand &operand, Space *space);
  /// The register to read an operand of so many bits from; `isLoose` where wider registers may be given.
  uint32_t source(const Operand &operand, Width width, bool isLoose = false);
  uint32_t predicate(const Operand &operand) { return source(operand, 1); }
  /// The register of a result of exactly so many bits.
  uint32_t result(const Operand &operand, Width width);
  Instruction &emit(Action action, Handler run);

  // Arithmetic.cpp: what is in the tables; comparisons.
  const Operation *find(const std::string &name) const;
  /// An operation on registers.
  void apply(const std::string &name, uint32_t d, std::initializer_list<uint32_t> operands, int rounding = 0);
  void decodeArithmetic(const Statement &s, const Parts &parts);
  void decodeMove(const Statement &s, const Parts &parts);
  void decodeSetPredicate(const Statement &s, const Parts &parts);
  void decodeSet(const Statement &s, const Parts &parts);
  void compare(const Statement &s, const Parts &parts, std::string_view type, size_t first, uint32_t p,
               uint32_t q);
  void noteApproximation(const std::string &name);

  // Convert.cpp: cvt.
  void decodeConvert(const Statement &s, const Parts &parts);
  void widen(std::string_view type, uint32_t from, const Operand &to);

  // Access.cpp: memory.
  Space spaceOf(const Parts &parts, bool *isGiven = nullptr) const;
  void setAddress(Instruction &i, const Operand &operand);
  void noteGranule(Space space, uint32_t bytes);
  void emitAccess(Handler run, const Instruction &at, Width width, const std::vector<uint32_t> &places);
  void decodeLoad(const Statement &s, const Parts &parts);
  void decodeStore(const Statement &s, const Parts &parts);
  void decodeAtomic(const Statement &s, const Parts &parts);
  void decodeConvertAddress(const Statement &s, const Parts &parts);
  void decodeIsSpace(const Statement &s, const Parts &parts);
  void decodeCopyAsync(const Statement &s, const Parts &parts);

  // Warps.cpp: barriers, exchanges between lanes, matrices.
  void decodeBarrier(const Statement &s, const Parts &parts);
  void decodeShuffle(const Statement &s, const Parts &parts);
  void decodeVote(const Statement &s, const Parts &parts);
  void decodeMatch(const Statement &s, const Parts &parts);
  void decodeReduce(const Statement &s, const Parts &parts);
  void decodeElect(const Statement &s, const Parts &parts);
  void decodeActiveMask(const Statement &s, const Parts &parts);
  void decodeMatrixAccess(const Statement &s, const Parts &parts);
  void decodeProduct(const Statement &s, const Parts &parts);
  void decodeGroupProduct(const Statement &s, const Parts &parts);
  void decodeMbarrier(const Statement &s, const Parts &parts);
  void decodeFence(const Statement &s, const Parts &parts);
  void decodeTrap(const Statement &s, const Parts &parts);
  uint32_t addList(const std::vector<uint32_t> &values);

  const Module &module;
  const AddressMap &addresses;
  int capability;
  Kernel kernel;
  Frame *frame = nullptr;
  int depth = 0;
  const Statement *current = nullptr;
  std::unordered_map<uint64_t, uint32_t> constants[2];
  std::unordered_map<std::string, uint32_t> specials[2];
  std::unordered_map<const Variable *, Place> sharedPlaces;
  bool usesDynamicShared = false;
  uint64_t dynamicBase = 0;
};

/// Bits of a type as it stands in opcodes: "s32" -> 32; 0: it is none.
Width widthOfType(std::string_view type);
/// What stands between the points of an opcode.
std::vector<std::string_view> splitOpcode(const std::string &opcode);
bool contains(const std::vector<std::string_view> &parts, std::string_view part);

} // namespace ortc::emulator
