// Operations on integers, bits and predicates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/lanes/Lists.h"

namespace ortc::emulator {
namespace {

using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;

template <class T> using Unsigned = std::make_unsigned_t<T>;
template <class T> constexpr int kBits = 8 * sizeof(T);

/// Division by zero gives all ones, as GPUs do; the smallest number by -1 gives itself.
template <class T> ORTC_INLINE T divide(T a, T b) {
  if (b == 0)
    return T(-1);
  return std::is_signed_v<T> && b == T(-1) ? T(-Unsigned<T>(a)) : T(a / b);
}
template <class T> ORTC_INLINE T remainder(T a, T b) {
  if (b == 0)
    return a;
  return std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
}

template <class T> ORTC_INLINE T highProduct(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return T((Wide(a) * Wide(b)) >> 64);
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, s64, u64>;
    return T((Wide(a) * Wide(b)) >> kBits<T>);
  }
}

/// Amounts beyond the width shift everything out.
template <class T> ORTC_INLINE T shiftLeft(T a, u32 b) {
  return b >= u32(kBits<T>) ? T(0) : T(a << (b & 63));
}
template <class T> ORTC_INLINE T shiftRight(T a, u32 b) {
  u32 most = u32(kBits<T>) - 1;
  if constexpr (std::is_signed_v<T>)
    return T(a >> (b > most ? most : b));
  else
    return b > most ? T(0) : T(a >> (b & most));
}

ORTC_INLINE u32 reverseBits(u32 v) {
  v = ((v >> 1) & 0x55555555u) | ((v & 0x55555555u) << 1);
  v = ((v >> 2) & 0x33333333u) | ((v & 0x33333333u) << 2);
  v = ((v >> 4) & 0x0f0f0f0fu) | ((v & 0x0f0f0f0fu) << 4);
  return __builtin_bswap32(v);
}
ORTC_INLINE u32 countBits(u64 v) {
  v -= (v >> 1) & 0x5555555555555555u;
  v = (v & 0x3333333333333333u) + ((v >> 2) & 0x3333333333333333u);
  v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return u32((v * 0x0101010101010101u) >> 56);
}
ORTC_INLINE u32 leadingZeros(u64 v, u32 bits) { return v ? u32(__builtin_clzll(v)) - (64 - bits) : bits; }

/// Place of the highest bit that differs from the sign.
template <class T> ORTC_INLINE u32 findHighBit(T a) {
  Unsigned<T> v = std::is_signed_v<T> && a < 0 ? Unsigned<T>(~a) : Unsigned<T>(a);
  return v ? u32(kBits<T>) - 1 - leadingZeros(v, kBits<T>) : ~0u;
}

template <class T> ORTC_INLINE T extractField(T a, u32 position, u32 length) {
  position &= 255;
  length &= 255;
  constexpr u32 bits = kBits<T>;
  u32 most = bits - 1;
  u32 last = position + length - 1 > most ? most : position + length - 1;
  bool sign = std::is_signed_v<T> && length && (a >> last & 1);
  T result = sign ? T(-1) : T(0);
  if (length == 0)
    return T(0);
  Unsigned<T> field =
      position > most ? (sign ? Unsigned<T>(-1) : 0) : Unsigned<T>(shiftRight<T>(a, position));
  if (length >= bits)
    return T(field);
  Unsigned<T> low = (Unsigned<T>(1) << length) - 1;
  return T((field & low) | (Unsigned<T>(result) & ~low));
}

template <class T> ORTC_INLINE T insertField(T a, T b, u32 position, u32 length) {
  position &= 255;
  length &= 255;
  if (position >= u32(kBits<T>) || length == 0)
    return b;
  T low = length >= u32(kBits<T>) ? T(-1) : T((T(1) << length) - 1);
  T place = T(low << position);
  return T((b & ~place) | ((a << position) & place));
}

/// bfi has four operands.
template <class T> void insertFields(Warp &warp, const Instruction &i, uint32_t mask) {
  auto *d = warp.cells<CellOf<T>>(i.d);
  const auto *a = warp.cells<CellOf<T>>(i.a), *b = warp.cells<CellOf<T>>(i.b);
  const u32 *c = warp.cells<u32>(i.c), *e = warp.cells<u32>(i.e);
  eachActive(mask, [&](u32 l) { d[l] = insertField<T>(a[l], b[l], c[l], e[l]); });
}

/// detail: the table of the three inputs.
void combineBits(Warp &warp, const Instruction &i, uint32_t mask) {
  const u32 *a = warp.cells<u32>(i.a), *b = warp.cells<u32>(i.b), *c = warp.cells<u32>(i.c);
  const u32 table = i.detail;
  u32 row[8];
  for (u32 k = 0; k < 8; ++k)
    row[k] = table >> k & 1 ? ~0u : 0u;
  eachLane(warp.cells<u32>(i.d), mask, [&](u32 l) {
    u32 x = a[l], y = b[l], z = c[l];
    u32 high = (~y & ((~z & row[4]) | (z & row[5]))) | (y & ((~z & row[6]) | (z & row[7])));
    u32 low = (~y & ((~z & row[0]) | (z & row[1]))) | (y & ((~z & row[2]) | (z & row[3])));
    return (x & high) | (~x & low);
  });
}

ORTC_INLINE u32 permuteBytes(u32 a, u32 b, u32 c) {
  u64 bytes = u64(b) << 32 | a;
  u32 result = 0;
  for (u32 k = 0; k < 4; ++k) {
    u32 selector = c >> (4 * k);
    u32 byte = u32(bytes >> (8 * (selector & 7))) & 255;
    if (selector & 8)
      byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * k);
  }
  return result;
}

/// Selectors of prmt's other modes, by mode and the low bits of c.
constexpr u32 kForward[4] = {0x3210, 0x4321, 0x5432, 0x6543};
constexpr u32 kBackward[4] = {0x5670, 0x6701, 0x7012, 0x0123};
constexpr u32 kReplicate8[4] = {0x0000, 0x1111, 0x2222, 0x3333};
constexpr u32 kEdgeLeft[4] = {0x3210, 0x3211, 0x3222, 0x3333};
constexpr u32 kEdgeRight[4] = {0x0000, 0x1110, 0x2210, 0x3210};
constexpr u32 kReplicate16[4] = {0x1010, 0x3232, 0x1010, 0x3232};

ORTC_INLINE u32 funnelLeft(u32 a, u32 b, u32 n) { return u32((((u64(b) << 32) | a) << n) >> 32); }
ORTC_INLINE u32 funnelRight(u32 a, u32 b, u32 n) { return u32(((u64(b) << 32) | a) >> n); }

/// Sums with carries. mode: 1 takes the carry, 2 leaves one.
template <class T, bool isDifference> void addCarrying(Warp &warp, const Instruction &i, uint32_t mask) {
  T *d = warp.cells<T>(i.d);
  const T *a = warp.cells<T>(i.a), *b = warp.cells<T>(i.b);
  eachActive(mask, [&](u32 l) {
    u32 carry = i.mode & 1 ? warp.carry[l] : 0;
    unsigned __int128 x = a[l], y = b[l];
    unsigned __int128 sum = isDifference ? x - y - carry : x + y + carry;
    d[l] = T(sum);
    if (i.mode & 2)
      warp.carry[l] = u32(sum >> kBits<T>) & 1;
  });
}

template <class T, bool isSignedA, bool isSignedB> ORTC_INLINE u32 dotBytes(u32 a, u32 b, u32 c) {
  for (u32 k = 0; k < 4; ++k) {
    s32 x = isSignedA ? s32(int8_t(a >> (8 * k))) : s32(uint8_t(a >> (8 * k)));
    s32 y = isSignedB ? s32(int8_t(b >> (8 * k))) : s32(uint8_t(b >> (8 * k)));
    c += u32(x * y);
  }
  return c;
}

ORTC_INLINE s32 clampSum(s64 sum) {
  return s32(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
}

/// Two operations on 16 bits each.
template <class T, class Compute> ORTC_INLINE u32 pair(u32 a, u32 b, Compute compute) {
  return u32(u16(compute(T(a), T(b)))) | u32(u16(compute(T(a >> 16), T(b >> 16)))) << 16;
}

#define INTEGERS(X) X("s16", s16), X("u16", u16), X("s32", s32), X("u32", u32), X("s64", s64), X("u64", u64)
#define ARITHMETIC(suffix, T)                                                                                \
  ORTC_BINARY("add." suffix, T, T, T, T(Unsigned<T>(a) + Unsigned<T>(b))),                                   \
      ORTC_BINARY("sub." suffix, T, T, T, T(Unsigned<T>(a) - Unsigned<T>(b))),                               \
      ORTC_BINARY("mul.lo." suffix, T, T, T, T(u64(a) * u64(b))),                                            \
      ORTC_BINARY("mul.hi." suffix, T, T, T, highProduct<T>(a, b)),                                          \
      ORTC_TERNARY("mad.lo." suffix, T, T, T, T, T(u64(a) * u64(b) + u64(c))),                               \
      ORTC_TERNARY("mad.hi." suffix, T, T, T, T, T(Unsigned<T>(highProduct<T>(a, b)) + Unsigned<T>(c))),     \
      ORTC_BINARY("div." suffix, T, T, T, divide<T>(a, b)),                                                  \
      ORTC_BINARY("rem." suffix, T, T, T, remainder<T>(a, b)),                                               \
      ORTC_BINARY("min." suffix, T, T, T, a < b ? a : b),                                                    \
      ORTC_BINARY("max." suffix, T, T, T, (a > b) ? a : b),                                                  \
      ORTC_TERNARY("sad." suffix, T, T, T, T, T(c + (a < b ? b - a : a - b))),                               \
      ORTC_BINARY("shr." suffix, T, T, u32, shiftRight<T>(a, b))
#define SIGNED(suffix, T)                                                                                    \
  ORTC_UNARY("neg." suffix, T, T, T(-Unsigned<T>(a))),                                                       \
      ORTC_UNARY("abs." suffix, T, T, a < 0 ? T(-Unsigned<T>(a)) : a)
#define WIDE(suffix, T, R)                                                                                   \
  ORTC_BINARY("mul.wide." suffix, R, T, T, R(a) * R(b)),                                                     \
      ORTC_TERNARY("mad.wide." suffix, R, T, T, R,                                                           \
                   R(std::make_unsigned_t<R>(R(a) * R(b)) + std::make_unsigned_t<R>(c)))
#define BITS(suffix, T)                                                                                      \
  ORTC_BINARY("and." suffix, T, T, T, T(a &b)), ORTC_BINARY("or." suffix, T, T, T, T(a | b)),                \
      ORTC_BINARY("xor." suffix, T, T, T, T(a ^ b)), ORTC_UNARY("not." suffix, T, T, T(~a)),                 \
      ORTC_UNARY("cnot." suffix, T, T, T(a == 0)), ORTC_UNARY("mov." suffix, T, T, a),                       \
      ORTC_BINARY("shl." suffix, T, T, u32, shiftLeft<T>(a, b)),                                             \
      ORTC_BINARY("shr." suffix, T, T, u32, shiftRight<T>(a, b)),                                            \
      ORTC_TERNARY("selp." suffix, T, T, T, Predicate, c.bits ? a : b),                                      \
      ORTC_TERNARY("slct." suffix ".s32", T, T, T, s32, c >= 0 ? a : b),                                     \
      ORTC_TERNARY("slct." suffix ".f32", T, T, T, float, c >= 0 ? a : b)
#define FIELDS(suffix, T) ORTC_TERNARY("bfe." suffix, T, T, u32, u32, extractField<T>(a, b, c))
#define PERMUTE(name, table)                                                                                 \
  ORTC_TERNARY("prmt.b32." name, u32, u32, u32, u32, permuteBytes(a, b, table[c & 3]))

#define PAIRS(suffix, T)                                                                                     \
  ORTC_BINARY("add." suffix, u32, u32, u32, pair<T>(a, b, [](T x, T y) { return x + y; })),                  \
      ORTC_BINARY("min." suffix, u32, u32, u32, pair<T>(a, b, [](T x, T y) { return x < y ? x : y; })),      \
      ORTC_BINARY("max." suffix, u32, u32, u32, pair<T>(a, b, [](T x, T y) { return x > y ? x : y; }))

const Operation kOperations[] = {
    INTEGERS(ARITHMETIC),
    SIGNED("s16", s16),
    SIGNED("s32", s32),
    SIGNED("s64", s64),
    WIDE("s16", s16, s32),
    WIDE("u16", u16, u32),
    WIDE("s32", s32, s64),
    WIDE("u32", u32, u64),
    BITS("b16", u16),
    BITS("b32", u32),
    BITS("b64", u64),
    FIELDS("s32", s32),
    FIELDS("u32", u32),
    FIELDS("s64", s64),
    FIELDS("u64", u64),
    ORTC_BINARY("mul24.lo.s32", s32, s32, s32, s32(u32(s32(u32(a) << 8) >> 8) * u32(s32(u32(b) << 8) >> 8))),
    ORTC_BINARY("mul24.lo.u32", u32, u32, u32, (a & 0xffffffu) * (b & 0xffffffu)),
    ORTC_BINARY("add.sat.s32", s32, s32, s32, clampSum(s64(a) + s64(b))),
    ORTC_BINARY("sub.sat.s32", s32, s32, s32, clampSum(s64(a) - s64(b))),
    // Parts of mov with vectors.
    ORTC_BINARY("pack.b32", u32, u16, u16, u32(b) << 16 | a),
    ORTC_BINARY("pack.b64", u64, u32, u32, u64(b) << 32 | a),
    ORTC_UNARY("low.b32", u16, u32, u16(a)),
    ORTC_UNARY("high.b32", u16, u32, u16(a >> 16)),
    ORTC_UNARY("low.b64", u32, u64, u32(a)),
    ORTC_UNARY("high.b64", u32, u64, u32(a >> 32)),
    PAIRS("s16x2", s16),
    PAIRS("u16x2", u16),
    ORTC_BINARY("and.pred", Predicate, Predicate, Predicate, Predicate{a.bits & b.bits}),
    ORTC_BINARY("or.pred", Predicate, Predicate, Predicate, Predicate{a.bits | b.bits}),
    ORTC_BINARY("xor.pred", Predicate, Predicate, Predicate, Predicate{a.bits ^ b.bits}),
    ORTC_UNARY("not.pred", Predicate, Predicate, Predicate{~a.bits}),
    ORTC_UNARY("mov.pred", Predicate, Predicate, a),
    ORTC_UNARY("popc.b32", u32, u32, countBits(a)),
    ORTC_UNARY("popc.b64", u32, u64, countBits(a)),
    ORTC_UNARY("clz.b32", u32, u32, leadingZeros(a, 32)),
    ORTC_UNARY("clz.b64", u32, u64, leadingZeros(a, 64)),
    ORTC_UNARY("brev.b32", u32, u32, reverseBits(a)),
    ORTC_UNARY("brev.b64", u64, u64, u64(reverseBits(u32(a))) << 32 | reverseBits(u32(a >> 32))),
    ORTC_UNARY("bfind.u32", u32, u32, findHighBit<u32>(a)),
    ORTC_UNARY("bfind.s32", u32, s32, findHighBit<s32>(a)),
    ORTC_UNARY("bfind.u64", u32, u64, findHighBit<u64>(a)),
    ORTC_UNARY("bfind.s64", u32, s64, findHighBit<s64>(a)),
    ORTC_UNARY("bfind.shiftamt.u32", u32, u32, a ? 31 - findHighBit<u32>(a) : ~0u),
    ORTC_UNARY("bfind.shiftamt.u64", u32, u64, a ? 63 - findHighBit<u64>(a) : ~0u),
    ORTC_TERNARY("prmt.b32", u32, u32, u32, u32, permuteBytes(a, b, c)),
    PERMUTE("f4e", kForward),
    PERMUTE("b4e", kBackward),
    PERMUTE("rc8", kReplicate8),
    PERMUTE("ecl", kEdgeLeft),
    PERMUTE("ecr", kEdgeRight),
    PERMUTE("rc16", kReplicate16),
    ORTC_TERNARY("shf.l.wrap.b32", u32, u32, u32, u32, funnelLeft(a, b, c & 31)),
    ORTC_TERNARY("shf.r.wrap.b32", u32, u32, u32, u32, funnelRight(a, b, c & 31)),
    ORTC_TERNARY("shf.l.clamp.b32", u32, u32, u32, u32, funnelLeft(a, b, c < 32 ? c : 32)),
    ORTC_TERNARY("shf.r.clamp.b32", u32, u32, u32, u32, funnelRight(a, b, c < 32 ? c : 32)),
    ORTC_TERNARY("dp4a.s32.s32", u32, u32, u32, u32, dotBytes<u32, true, true>(a, b, c)),
    ORTC_TERNARY("dp4a.s32.u32", u32, u32, u32, u32, dotBytes<u32, true, false>(a, b, c)),
    ORTC_TERNARY("dp4a.u32.s32", u32, u32, u32, u32, dotBytes<u32, false, true>(a, b, c)),
    ORTC_TERNARY("dp4a.u32.u32", u32, u32, u32, u32, dotBytes<u32, false, false>(a, b, c)),
    Operation{"lop3.b32", combineBits, 32, {32, 32, 32}},
    Operation{"bfi.b32", insertFields<u32>, 32, {32, 32, 32}},
    Operation{"bfi.b64", insertFields<u64>, 64, {64, 64, 32}},
    Operation{"add.cc.b32", addCarrying<u32, false>, 32, {32, 32, 0}, 2},
    Operation{"addc.b32", addCarrying<u32, false>, 32, {32, 32, 0}, 1},
    Operation{"addc.cc.b32", addCarrying<u32, false>, 32, {32, 32, 0}, 3},
    Operation{"sub.cc.b32", addCarrying<u32, true>, 32, {32, 32, 0}, 2},
    Operation{"subc.b32", addCarrying<u32, true>, 32, {32, 32, 0}, 1},
    Operation{"subc.cc.b32", addCarrying<u32, true>, 32, {32, 32, 0}, 3},
    Operation{"add.cc.b64", addCarrying<u64, false>, 64, {64, 64, 0}, 2},
    Operation{"addc.b64", addCarrying<u64, false>, 64, {64, 64, 0}, 1},
    Operation{"addc.cc.b64", addCarrying<u64, false>, 64, {64, 64, 0}, 3},
    Operation{"sub.cc.b64", addCarrying<u64, true>, 64, {64, 64, 0}, 2},
    Operation{"subc.b64", addCarrying<u64, true>, 64, {64, 64, 0}, 1},
    Operation{"subc.cc.b64", addCarrying<u64, true>, 64, {64, 64, 0}, 3},
};

} // namespace

namespace ORTC_EMULATOR_ISA {
OperationList integerOperations() { return {kOperations, sizeof kOperations / sizeof *kOperations}; }
} // namespace ORTC_EMULATOR_ISA

} // namespace ortc::emulator
