// Integer instructions against the host's arithmetic.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/tests/Operations.h"

namespace ortc::emulator::test {
namespace {

using IntegerTest = OperationTest;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;
using Wide = __int128;

template <class T> std::string nameOf() {
  return (std::is_signed_v<T> ? "s" : "u") + std::to_string(8 * sizeof(T));
}

class IntegerTypesTest : public OperationTest {
protected:
  template <class T> void checkArithmetic() {
    const std::string t = nameOf<T>();
    constexpr int bits = 8 * sizeof(T);
    check2<T, T, T>("add." + t + " %y, %x0, %x1;", [](T a, T b) { return T(Wide(a) + b); });
    check2<T, T, T>("sub." + t + " %y, %x0, %x1;", [](T a, T b) { return T(Wide(a) - b); });
    check2<T, T, T>("mul.lo." + t + " %y, %x0, %x1;", [](T a, T b) { return T(Wide(a) * Wide(b)); });
    check2<T, T, T>("mul.hi." + t + " %y, %x0, %x1;",
                    [](T a, T b) { return T((Wide(a) * Wide(b)) >> bits); });
    check3<T, T, T, T>("mad.lo." + t + " %y, %x0, %x1, %x2;",
                       [](T a, T b, T c) { return T(Wide(a) * Wide(b) + Wide(c)); });
    check2<T, T, T>("min." + t + " %y, %x0, %x1;", [](T a, T b) { return b < a ? b : a; });
    check2<T, T, T>("max." + t + " %y, %x0, %x1;", [](T a, T b) { return a < b ? b : a; });
    check2<T, T, T>("div." + t + " %y, %x0, %x1;", [](T a, T b) { return b ? T(Wide(a) / b) : T(-1); });
    check2<T, T, T>("rem." + t + " %y, %x0, %x1;", [](T a, T b) { return b ? T(Wide(a) % b) : a; });
    check2<T, T, u32>("shr." + t + " %y, %x0, %x1;",
                      [](T a, u32 b) { return T(Wide(a) >> (b < bits ? b : bits)); });
  }
};

TEST_F(IntegerTypesTest, Arithmetic16) { checkArithmetic<s16>(), checkArithmetic<u16>(); }
TEST_F(IntegerTypesTest, Arithmetic32) { checkArithmetic<s32>(), checkArithmetic<u32>(); }
TEST_F(IntegerTypesTest, Arithmetic64) { checkArithmetic<s64>(), checkArithmetic<u64>(); }

TEST_F(IntegerTest, WideProducts) {
  check2<s64, s32, s32>("mul.wide.s32 %y, %x0, %x1;", [](s32 a, s32 b) { return s64(a) * b; });
  check2<u64, u32, u32>("mul.wide.u32 %y, %x0, %x1;", [](u32 a, u32 b) { return u64(a) * b; });
  check2<s32, s16, s16>("mul.wide.s16 %y, %x0, %x1;", [](s16 a, s16 b) { return s32(a) * b; });
  check2<u32, u16, u16>("mul.wide.u16 %y, %x0, %x1;", [](u16 a, u16 b) { return u32(a) * b; });
  check3<u64, u32, u32, u64>("mad.wide.u32 %y, %x0, %x1, %x2;",
                             [](u32 a, u32 b, u64 c) { return u64(a) * b + c; });
  check3<s64, s32, s32, s64>("mad.wide.s32 %y, %x0, %x1, %x2;",
                             [](s32 a, s32 b, s64 c) { return s64(u64(s64(a) * b) + u64(c)); });
}

TEST_F(IntegerTest, Signs) {
  check1<s32, s32>("neg.s32 %y, %x0;", [](s32 a) { return s32(-u32(a)); });
  check1<s64, s64>("neg.s64 %y, %x0;", [](s64 a) { return s64(-u64(a)); });
  check1<s16, s16>("abs.s16 %y, %x0;", [](s16 a) { return a < 0 ? s16(-a) : a; });
  check1<s32, s32>("abs.s32 %y, %x0;", [](s32 a) { return a < 0 ? s32(-u32(a)) : a; });
  check2<s32, s32, s32>("add.sat.s32 %y, %x0, %x1;", [](s32 a, s32 b) {
    s64 sum = s64(a) + b;
    return s32(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
  });
}

TEST_F(IntegerTest, Bits) {
  check2<u32, u32, u32>("and.b32 %y, %x0, %x1;", [](u32 a, u32 b) { return a & b; });
  check2<u64, u64, u64>("or.b64 %y, %x0, %x1;", [](u64 a, u64 b) { return a | b; });
  check2<u16, u16, u16>("xor.b16 %y, %x0, %x1;", [](u16 a, u16 b) { return a ^ b; });
  check1<u16, u16>("not.b16 %y, %x0;", [](u16 a) { return ~a; });
  check1<u64, u64>("not.b64 %y, %x0;", [](u64 a) { return ~a; });
  check1<u32, u32>("cnot.b32 %y, %x0;", [](u32 a) { return a == 0; });
  check2<u32, u32, u32>("shl.b32 %y, %x0, %x1;", [](u32 a, u32 b) { return b < 32 ? a << b : 0; });
  check2<u64, u64, u32>("shl.b64 %y, %x0, %x1;", [](u64 a, u32 b) { return b < 64 ? a << b : 0; });
  check2<u16, u16, u32>("shl.b16 %y, %x0, %x1;", [](u16 a, u32 b) { return b < 16 ? a << b : 0; });
  check1<u32, u32>("popc.b32 %y, %x0;", [](u32 a) { return __builtin_popcount(a); });
  check1<u32, u64>("popc.b64 %y, %x0;", [](u64 a) { return __builtin_popcountll(a); });
  check1<u32, u32>("clz.b32 %y, %x0;", [](u32 a) { return a ? __builtin_clz(a) : 32; });
  check1<u32, u64>("clz.b64 %y, %x0;", [](u64 a) { return a ? __builtin_clzll(a) : 64; });
  check1<u32, u32>("bfind.u32 %y, %x0;", [](u32 a) { return a ? 31 - __builtin_clz(a) : -1; });
  check1<u32, s32>("bfind.s32 %y, %x0;", [](s32 a) {
    u32 v = a < 0 ? ~u32(a) : u32(a);
    return v ? 31 - __builtin_clz(v) : -1;
  });
  auto reverse = [](u64 a, int bits) {
    u64 result = 0;
    for (int k = 0; k < bits; ++k)
      result |= (a >> k & 1) << (bits - 1 - k);
    return result;
  };
  check1<u32, u32>("brev.b32 %y, %x0;", [&](u32 a) { return reverse(a, 32); });
  check1<u64, u64>("brev.b64 %y, %x0;", [&](u64 a) { return reverse(a, 64); });
}

TEST_F(IntegerTest, Fields) {
  auto extract = [](auto a, u32 position, u32 length) {
    using T = decltype(a);
    constexpr u32 most = 8 * sizeof(T) - 1;
    position &= 255, length &= 255;
    u32 last = std::min(position + length - 1, most);
    bool sign = std::is_signed_v<T> && length && (a >> last & 1);
    T result = 0;
    for (u32 k = 0; k <= most; ++k) {
      bool bit = k < length && position + k <= most ? (a >> (position + k) & 1) : sign;
      result |= T(bit) << k;
    }
    return result;
  };
  check3<u32, u32, u32, u32>("bfe.u32 %y, %x0, %x1, %x2;",
                             [&](u32 a, u32 b, u32 c) { return extract(a, b, c); });
  check3<s32, s32, u32, u32>("bfe.s32 %y, %x0, %x1, %x2;",
                             [&](s32 a, u32 b, u32 c) { return extract(a, b, c); });
  check3<u64, u64, u32, u32>("bfe.u64 %y, %x0, %x1, %x2;",
                             [&](u64 a, u32 b, u32 c) { return extract(a, b, c); });
  check3<s64, s64, u32, u32>("bfe.s64 %y, %x0, %x1, %x2;",
                             [&](s64 a, u32 b, u32 c) { return extract(a, b, c); });
  check3<u32, u32, u32, u32>("bfi.b32 %y, %x0, %x1, %x2, 9;", [](u32 a, u32 b, u32 c) {
    c &= 255;
    for (u32 k = 0; k < 9 && c + k < 32; ++k)
      b = (b & ~(1u << (c + k))) | (a >> k & 1) << (c + k);
    return b;
  });
  check3<u64, u64, u64, u32>("bfi.b64 %y, %x0, %x1, 40, %x2;", [](u64 a, u64 b, u32 c) {
    for (u32 k = 0; k < (c & 255) && 40 + k < 64; ++k)
      b = (b & ~(u64(1) << (40 + k))) | (a >> k & 1) << (40 + k);
    return b;
  });
}

TEST_F(IntegerTest, BytesAndTables) {
  auto permute = [](u32 a, u32 b, u32 selectors) {
    u64 both = u64(b) << 32 | a;
    u32 result = 0;
    for (int k = 0; k < 4; ++k) {
      u32 s = selectors >> (4 * k) & 15, byte = u32(both >> (8 * (s & 7))) & 255;
      result |= (s & 8 ? (byte & 128 ? 255u : 0u) : byte) << (8 * k);
    }
    return result;
  };
  check3<u32, u32, u32, u32>("prmt.b32 %y, %x0, %x1, %x2;", permute);
  check2<u32, u32, u32>("prmt.b32 %y, %x0, %x1, 0x3340U;",
                        [&](u32 a, u32 b) { return permute(a, b, 0x3340); });
  check3<u32, u32, u32, u32>("prmt.b32.f4e %y, %x0, %x1, %x2;",
                             [&](u32 a, u32 b, u32 c) { return u32((u64(b) << 32 | a) >> (8 * (c & 3))); });
  for (u32 table : {0x80u, 0xe8u, 0x96u, 0x1bu, 0xfeu})
    check3<u32, u32, u32, u32>(
        "lop3.b32 %y, %x0, %x1, %x2, " + std::to_string(table) + ";", [&](u32 a, u32 b, u32 c) {
          u32 result = 0;
          for (int k = 0; k < 32; ++k)
            result |= (table >> ((a >> k & 1) * 4 + (b >> k & 1) * 2 + (c >> k & 1)) & 1) << k;
          return result;
        });
  check3<u32, u32, u32, u32>("shf.l.wrap.b32 %y, %x0, %x1, %x2;",
                             [](u32 a, u32 b, u32 c) { return u32(((u64(b) << 32 | a) << (c & 31)) >> 32); });
  check3<u32, u32, u32, u32>("shf.r.wrap.b32 %y, %x0, %x1, %x2;",
                             [](u32 a, u32 b, u32 c) { return u32((u64(b) << 32 | a) >> (c & 31)); });
  check3<u32, u32, u32, u32>("shf.r.clamp.b32 %y, %x0, %x1, %x2;",
                             [](u32 a, u32 b, u32 c) { return u32((u64(b) << 32 | a) >> std::min(c, 32u)); });
}

TEST_F(IntegerTest, CarriesMakeWideSums) {
  check2<u64, u64, u64>(
      "{ .reg .b32 %l0, %h0, %l1, %h1, %l, %h;\n mov.b64 {%l0, %h0}, %x0; mov.b64 {%l1, %h1}, %x1;\n"
      "add.cc.u32 %l, %l0, %l1; addc.u32 %h, %h0, %h1; mov.b64 %y, {%l, %h}; }",
      [](u64 a, u64 b) { return a + b; });
  check2<u64, u64, u64>(
      "{ .reg .b32 %l0, %h0, %l1, %h1, %l, %h;\n mov.b64 {%l0, %h0}, %x0; mov.b64 {%l1, %h1}, %x1;\n"
      "sub.cc.u32 %l, %l0, %l1; subc.u32 %h, %h0, %h1; mov.b64 %y, {%l, %h}; }",
      [](u64 a, u64 b) { return a - b; });
}

TEST_F(IntegerTest, Vectors) {
  check2<u32, u16, u16>("mov.b32 %y, {%x0, %x1};", [](u16 a, u16 b) { return u32(b) << 16 | a; });
  check1<u32, u64>("{ .reg .b32 %l; mov.b64 {%l, %y}, %x0; }", [](u64 a) { return a >> 32; });
  check1<u16, u32>("mov.b32 {_, %y}, %x0;", [](u32 a) { return a >> 16; });
  check1<u64, u64>(
      "{ .reg .b16 %q<4>; mov.b64 {%q0, %q1, %q2, %q3}, %x0; mov.b64 %y, {%q3, %q2, %q1, %q0}; }",
      [](u64 a) { return a << 48 | (a >> 16 & 0xffff) << 32 | (a >> 32 & 0xffff) << 16 | a >> 48; });
}

TEST_F(IntegerTest, Comparisons) {
  auto select = [](const std::string &compare) { return compare + " selp.b32 %y, 1, 0, %p1;"; };
  check2<u32, s32, s32>(select("setp.lt.s32 %p1, %x0, %x1;"), [](s32 a, s32 b) { return a < b; });
  check2<u32, u32, u32>(select("setp.lt.u32 %p1, %x0, %x1;"), [](u32 a, u32 b) { return a < b; });
  check2<u32, s64, s64>(select("setp.ge.s64 %p1, %x0, %x1;"), [](s64 a, s64 b) { return a >= b; });
  check2<u32, u64, u64>(select("setp.hi.u64 %p1, %x0, %x1;"), [](u64 a, u64 b) { return a > b; });
  check2<u32, s16, s16>(select("setp.le.s16 %p1, %x0, %x1;"), [](s16 a, s16 b) { return a <= b; });
  check2<u32, u16, u16>(select("setp.ne.b16 %p1, %x0, %x1;"), [](u16 a, u16 b) { return a != b; });
  check2<u32, u32, u32>(select("setp.eq.b32 %p1|%p2, %x0, %x1; not.pred %p1, %p2;"),
                        [](u32 a, u32 b) { return a == b; });
  check2<u32, s32, s32>(select("setp.gt.s32 %p3, %x1, 5; setp.lt.and.s32 %p1, %x0, 9, %p3;"),
                        [](s32 a, s32 b) { return a < 9 && b > 5; });
  check2<u32, s32, s32>(select("setp.gt.s32 %p3, %x1, 5; setp.lt.or.s32 %p1, %x0, 9, !%p3;"),
                        [](s32 a, s32 b) { return a < 9 || b <= 5; });
  check2<u32, s32, s32>(select("setp.gt.s32 %p3, %x1, 5; setp.lt.xor.s32 %p2|%p1, %x0, 9, %p3;"),
                        [](s32 a, s32 b) { return !(a < 9) != (b > 5); });
  check2<u32, u32, u32>("set.lt.u32.u32 %y, %x0, %x1;", [](u32 a, u32 b) { return a < b ? ~0u : 0u; });
  check2<float, s32, s32>("set.ne.f32.s32 %y, %x0, %x1;", [](s32 a, s32 b) { return a != b ? 1.0f : 0.0f; });
  check3<u64, u64, u64, s32>("slct.u64.s32 %y, %x0, %x1, %x2;",
                             [](u64 a, u64 b, s32 c) { return c >= 0 ? a : b; });
}

} // namespace
} // namespace ortc::emulator::test
