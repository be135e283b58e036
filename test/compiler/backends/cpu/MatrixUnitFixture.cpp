// Tile instructions of x86-64 (AMX-TILE, AMX-BF16) carried out by a signal handler. Opcode map 0F38 has no other
// instructions of 128 bits with their prefixes and opcodes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/MatrixUnitFixture.h"

#include "test/compiler/backends/cpu/KernelFixture.h"

#include <csignal>
#include <cstring>
#include <ucontext.h>
#include <xmmintrin.h>

namespace ortc::cpu::test {
namespace {

constexpr unsigned kTiles = 8, kRows = 16, kRowBytes = 64, kPalette = 1;

/// `rows` x `bytes`, of 16 rows of 64 bytes.
struct Tile {
  unsigned rows = 0, bytes = 0;
  alignas(64) uint8_t data[kRows][kRowBytes] = {};
};

/// What the processor would hold for this thread.
struct State {
  bool isConfigured = false;
  Tile tiles[kTiles];
  uint64_t products = 0;
};

// A signal handler has no other way to its data.
State state;
struct sigaction previousAction;

/// An instruction with a VEX prefix of three bytes.
struct TileInstruction {
  unsigned prefix = 0; ///< 0 none, 1 66, 2 F3, 3 F2
  unsigned opcode = 0;
  unsigned reg = 0, rm = 0, third = 0; ///< numbers of registers
  bool hasMemory = false, hasIndex = false;
  uint64_t address = 0, stride = 0;
  unsigned length = 0;
};

uint64_t registerOf(const gregset_t &registers, unsigned number) {
  static constexpr int kPlaces[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<uint64_t>(registers[kPlaces[number]]);
}

/// Reads the instruction at `code`; false when it is none of opcode map 0F38 with 128 bits and W = 0.
bool decode(const uint8_t *code, const gregset_t &registers, TileInstruction &result) {
  if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || (code[2] & 0x84) != 0)
    return false;
  unsigned extendReg = code[1] & 0x80 ? 0 : 8, extendIndex = code[1] & 0x40 ? 0 : 8,
           extendBase = code[1] & 0x20 ? 0 : 8;
  result.third = ~(code[2] >> 3) & 15;
  result.prefix = code[2] & 3;
  result.opcode = code[3];
  unsigned mode = code[4] >> 6, rm = code[4] & 7;
  result.reg = (code[4] >> 3 & 7) | extendReg;
  result.rm = rm | extendBase;
  const uint8_t *next = code + 5;
  if (mode != 3) {
    result.hasMemory = true;
    unsigned base = rm, index = 4;
    if (rm == 4) {
      unsigned scale = *next >> 6;
      index = (*next >> 3 & 7) | extendIndex;
      base = *next++ & 7;
      if (index != 4) {
        result.hasIndex = true;
        result.stride = registerOf(registers, index) << scale;
      }
    }
    int32_t offset = 0;
    bool isAbsolute = mode == 0 && base == 5;
    if (mode == 1)
      offset = static_cast<int8_t>(*next++);
    if (mode == 2 || isAbsolute) {
      std::memcpy(&offset, next, sizeof(offset));
      next += sizeof(offset);
    }
    if (!isAbsolute)
      result.address = registerOf(registers, base | extendBase);
    else if (rm == 5)
      result.address = reinterpret_cast<uint64_t>(next); // relative to the next instruction
    result.address += static_cast<uint64_t>(static_cast<int64_t>(offset));
  }
  result.length = static_cast<unsigned>(next - code);
  return true;
}

template <typename T> T *at(uint64_t address) { return reinterpret_cast<T *>(address); }

/// LDTILECFG: false where the processor faults.
bool configure(const uint8_t *bytes) {
  static constexpr uint8_t kZeros[kRowBytes] = {};
  if (bytes[0] != kPalette || bytes[1] != 0 || std::memcmp(bytes + 2, kZeros, 14) != 0 ||
      std::memcmp(bytes + 16 + 2 * kTiles, kZeros, 16) != 0 ||
      std::memcmp(bytes + 48 + kTiles, kZeros, 8) != 0)
    return false;
  State next;
  next.products = state.products;
  for (unsigned i = 0; i < kTiles; ++i) {
    uint16_t rowBytes;
    std::memcpy(&rowBytes, bytes + 16 + 2 * i, sizeof(rowBytes));
    next.tiles[i].rows = bytes[48 + i];
    next.tiles[i].bytes = rowBytes;
    if (next.tiles[i].rows > kRows || rowBytes > kRowBytes || (rowBytes == 0) != (next.tiles[i].rows == 0))
      return false;
  }
  next.isConfigured = true;
  state = next;
  return true;
}

bool isUsable(unsigned tile) { return state.isConfigured && tile < kTiles && state.tiles[tile].rows != 0; }

/// TILELOADD: what a row does not fill is zero.
void load(Tile &tile, const TileInstruction &from) {
  std::memset(tile.data, 0, sizeof(tile.data));
  for (unsigned row = 0; row < tile.rows; ++row)
    std::memcpy(tile.data[row], at<const void>(from.address + row * from.stride), tile.bytes);
}

void store(const Tile &tile, const TileInstruction &to) {
  for (unsigned row = 0; row < tile.rows; ++row)
    std::memcpy(at<void>(to.address + row * to.stride), tile.data[row], tile.bytes);
}

/// The bf16 numbers of a row, even ones first.
void widen(const uint8_t *row, float (&numbers)[2][kRows]) {
  for (unsigned i = 0; i < kRows; ++i) {
    uint32_t pair;
    std::memcpy(&pair, row + 4 * i, sizeof(pair));
    uint32_t even = pair << 16, odd = pair & 0xffff0000;
    std::memcpy(&numbers[0][i], &even, sizeof(even));
    std::memcpy(&numbers[1][i], &odd, sizeof(odd));
  }
}

/// TDPBF16PS: sums of even and of odd products, each by fused multiply-add (products of bf16 numbers are exact in f32),
/// added to each other and then to the tile. Denormal numbers are zero.
bool multiply(unsigned sumTile, unsigned rowTile, unsigned columnTile) {
  if (!isUsable(sumTile) || !isUsable(rowTile) || !isUsable(columnTile) || sumTile == rowTile ||
      sumTile == columnTile || rowTile == columnTile)
    return false;
  Tile &sums = state.tiles[sumTile];
  const Tile &rows = state.tiles[rowTile], &columns = state.tiles[columnTile];
  if (sums.rows != rows.rows || rows.bytes != 4 * columns.rows || sums.bytes != columns.bytes)
    return false;
  _mm_setcsr(0x1f80 | 0x8040); // round to nearest, denormals are zero
  float right[kRows][2][kRows];
  for (unsigned k = 0; k < columns.rows; ++k)
    widen(columns.data[k], right[k]);
  for (unsigned row = 0; row < sums.rows; ++row) {
    float left[2][kRows], parts[2][kRows] = {}, result[kRows];
    widen(rows.data[row], left);
    for (unsigned k = 0; k < columns.rows; ++k)
      for (unsigned half = 0; half < 2; ++half)
        for (unsigned n = 0; n < kRows; ++n)
          parts[half][n] += left[half][k] * right[k][half][n];
    std::memcpy(result, sums.data[row], sizeof(result));
    for (unsigned n = 0; n < kRows; ++n)
      result[n] += parts[0][n] + parts[1][n];
    std::memcpy(sums.data[row], result, sums.bytes);
  }
  ++state.products;
  return true;
}

/// Carries out one instruction; false when the processor would refuse it, too.
bool carryOut(const TileInstruction &i) {
  bool hasPitch = i.hasMemory && i.hasIndex;
  switch (i.opcode << 4 | i.prefix) {
  case 0x490: // LDTILECFG, TILERELEASE
    if (i.hasMemory)
      return i.reg == 0 && configure(at<const uint8_t>(i.address));
    if (i.reg != 0 || i.rm != 0)
      return false;
    state.isConfigured = false;
    return true;
  case 0x493: // TILEZERO
    if (i.hasMemory || !isUsable(i.reg))
      return false;
    std::memset(state.tiles[i.reg].data, 0, sizeof(state.tiles[i.reg].data));
    return true;
  case 0x4b1: // TILELOADDT1
  case 0x4b3: // TILELOADD
    if (!hasPitch || !isUsable(i.reg))
      return false;
    load(state.tiles[i.reg], i);
    return true;
  case 0x4b2: // TILESTORED
    if (!hasPitch || !isUsable(i.reg))
      return false;
    store(state.tiles[i.reg], i);
    return true;
  case 0x5c2: // TDPBF16PS
    return !i.hasMemory && multiply(i.reg, i.rm, i.third);
  default:
    return false;
  }
}

void onIllegalInstruction(int, siginfo_t *, void *context) {
  auto &machine = static_cast<ucontext_t *>(context)->uc_mcontext;
  // Tile instructions stand one behind the other, and a signal takes longer than what it is for.
  uint64_t before = static_cast<uint64_t>(machine.gregs[REG_RIP]), place = before;
  for (bool goesOn = true; goesOn;) {
    machine.gregs[REG_RIP] = static_cast<greg_t>(place);
    TileInstruction instruction;
    goesOn = decode(at<const uint8_t>(place), machine.gregs, instruction) && carryOut(instruction);
    if (goesOn)
      place += instruction.length;
  }
  if (place == before)
    sigaction(SIGILL, &previousAction, nullptr); // and once more, to its end
}

} // namespace

MatrixUnit::MatrixUnit() : target(*findTarget("native")) {
  if (target.has(cpu::Instruction::MatrixUnit))
    return;
  software = true;
  target = runnableTargets().back();
  target.name += " with tiles in software";
  target.isa.features += target.isa.features.empty() ? "+amx-tile,+amx-bf16" : ",+amx-tile,+amx-bf16";
  target.isa.set(cpu::Instruction::MatrixUnit);
  state = State();
  struct sigaction action = {};
  action.sa_sigaction = onIllegalInstruction;
  action.sa_flags = SA_SIGINFO;
  EXPECT_EQ(sigaction(SIGILL, &action, &previousAction), 0);
}

MatrixUnit::~MatrixUnit() {
  if (software)
    EXPECT_EQ(sigaction(SIGILL, &previousAction, nullptr), 0);
}

uint64_t MatrixUnit::getProducts() const { return state.products; }

bool MatrixUnit::isInUse() const { return state.isConfigured; }

} // namespace ortc::cpu::test
