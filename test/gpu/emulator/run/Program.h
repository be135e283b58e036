// Kernels in the form in which they are executed: an array of instructions with a function each.
//
// Functions that a kernel calls are part of its array, once for every call. A register is 32 cells, one a
// lane: of four bytes, or of eight where it has 64 bits. Constants and special registers are registers that
// are filled beforehand. A predicate's cell is all ones or zero.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "test/gpu/emulator/parse/Ptx.h"

namespace ortc::emulator {

inline constexpr uint32_t kLanes = 32;
inline constexpr uint32_t kAllLanes = ~0u;
inline constexpr uint32_t kNone = ~0u;

/// Where spaces other than global memory begin among the generic addresses; each is smaller than kWindow.
inline constexpr uint64_t kWindow = uint64_t(1) << 32;
inline constexpr uint64_t kSharedBase = uint64_t(1) << 56;
inline constexpr uint64_t kLocalBase = kSharedBase + kWindow;
inline constexpr uint64_t kParamBase = kLocalBase + kWindow;

struct CountPlan;
struct Warp;
struct Instruction;
/// Executes an instruction for the lanes of a mask that is not empty.
using Handler = void (*)(Warp &warp, const Instruction &instruction, uint32_t mask);

enum class Action : uint8_t {
  Compute,     ///< cannot fail
  Access,      ///< may fail
  Gather,      ///< needs the lanes of its mask at the same place; may fail
  Branch,      ///< to `target`
  BranchTable, ///< to what list[a cell] says
  Exit,
  Barrier,
  Arrive, ///< at a barrier, without waiting
  Poll    ///< may fail; where it sets the warp's isPolling, others get their turn
};

struct Instruction {
  Handler run = nullptr;
  /// Offsets of registers, in bytes; d: the result.
  uint32_t d = kNone, a = kNone, b = kNone, c = kNone, e = kNone;
  uint32_t predicate = kNone;
  Action action = Action::Compute;
  bool isNegated = false;
  /// Of accesses: where; bytes of an element, elements, whether `a` has cells of 8 bytes.
  Space space = Space::Generic;
  uint8_t bytes = 0, count = 1;
  bool isWide = false;
  /// Of what works on matrices: the warp must be whole.
  bool needsAllLanes = false;
  /// What a handler makes of them.
  uint8_t mode = 0, detail = 0;
  uint32_t target = 0;
  /// First of further registers in Kernel::lists.
  uint32_t list = 0;
  uint32_t statement = 0;
  int64_t offset = 0;
  /// Of operations with a rounding mode other than to nearest: the same operation to nearest.
  Handler inner = nullptr;
};

enum class SpecialRegister : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NumWarps,
  SmId,
  NumSms,
  GridId,
  MaskEq,
  MaskLt,
  MaskLe,
  MaskGt,
  MaskGe,
  DynamicShared,
  TotalShared,
  Zero,
  One
};

struct KernelParam {
  std::string name;
  uint32_t offset, bytes;
  uint64_t pointerAlign;
};

/// Where a statement stands, for reports.
struct SourceLine {
  int line;
  std::string text;
};

struct Kernel {
  std::string name;
  std::vector<Instruction> code;
  std::vector<uint32_t> lists;
  std::vector<SourceLine> statements;
  uint32_t registerBytes = 0;
  struct Constant {
    uint32_t place;
    bool isWide;
    uint64_t bits;
  };
  std::vector<Constant> constants;
  struct Special {
    uint32_t place;
    bool isWide;
    SpecialRegister which;
  };
  std::vector<Special> specials;
  std::vector<KernelParam> params;
  uint32_t paramBytes = 0;
  uint32_t sharedBytes = 0;  ///< static
  uint32_t dynamicAlign = 1; ///< of the extern variables behind them
  uint32_t localBytes = 0;   ///< a lane
  /// log2 of the bytes of the smallest elements that are accessed: what races are told apart by.
  uint8_t globalGranule = 2, sharedGranule = 2;
  uint32_t maxThreads[3] = {0, 0, 0};
  bool isExactThreads = false;
  /// Statements whose results are not exact.
  std::vector<uint32_t> approximations;
  /// How to count what it does; null where nobody counts.
  std::shared_ptr<const CountPlan> plan;
};

/// One operation of arithmetic as tables list it. Widths are of the result and the operands; 0: there is
/// none.
struct Operation {
  const char *name;
  Handler run;
  Width result, operands[3];
  uint8_t mode = 0;
};
struct OperationList {
  const Operation *first;
  uint32_t count;
};

} // namespace ortc::emulator
