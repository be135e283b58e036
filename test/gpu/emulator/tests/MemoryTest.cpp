// Loads, stores and atomics of all sizes and spaces.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <numeric>

#include "test/gpu/emulator/tests/Operations.h"

namespace ortc::emulator::test {
namespace {

class MemoryTest : public OperationTest {
protected:
  static std::vector<uint32_t> numbers(size_t count, uint32_t factor = 2654435761u) {
    std::vector<uint32_t> values(count);
    for (size_t k = 0; k < count; ++k)
      values[k] = uint32_t(k + 1) * factor;
    return values;
  }
};

TEST_F(MemoryTest, VectorsOfAllSizes) {
  const std::vector<uint32_t> in = numbers(64 * 4);
  for (auto [type, bytes] : {std::pair("b8", 1u), {"b16", 2u}, {"b32", 4u}, {"b64", 8u}})
    for (unsigned count : {1u, 2u, 4u}) {
      if (bytes * count > 16)
        continue;
      std::string vector = count == 1 ? "" : ".v" + std::to_string(count), list;
      std::string prefix = bytes == 8 ? "%rd1" : bytes == 4 ? "%r1" : "%h1"; // %r10, %r11, ...
      for (unsigned k = 0; k < count; ++k)
        list += (k ? ", " : "") + prefix + std::to_string(k);
      list = count == 1 ? list : "{" + list + "}";
      std::string op = vector + "." + type;
      std::string size = std::to_string(bytes * count);
      ortc_cu_kernel k = kernel(makeKernel(
          {"b64", "b64"}, "mad.wide.u32 %rd1, %i, " + size + ", %a0;\n" + "mad.wide.u32 %rd2, %i, " + size +
                              ", %a1;\n" + "ld.global" + op + " " + list + ", [%rd1];\nst.global" + op +
                              " [%rd2], " + list + ";"));
      const unsigned lanes = 40;
      ortc_cu_pointer from = upload(in), to = allocate(lanes * bytes * count);
      run(k, 1, lanes, {from, to});
      std::vector<uint8_t> out = download<uint8_t>(to, lanes * bytes * count);
      EXPECT_EQ(std::memcmp(out.data(), in.data(), out.size()), 0) << op;
    }
}

TEST_F(MemoryTest, PatternsOfAddresses) {
  // Permutations, strides, groups of lanes at one address.
  const std::vector<uint32_t> in = numbers(32 * 32);
  for (const char *index : {"xor.b32 %r1, %tid, 5;", "shl.b32 %r1, %tid, 2;", "shr.u32 %r1, %tid, 2;",
                            "and.b32 %r1, %tid, 7;", "mov.b32 %r1, 9;", "shr.u32 %r1, %tid, 4;",
                            "mul.lo.u32 %r1, %tid, 31;", "not.b32 %r1, %tid; and.b32 %r1, %r1, 31;",
                            "and.b32 %r1, %tid, 3; shr.u32 %r2, %tid, 3; mad.lo.u32 %r1, %r2, 4, %r1;"}) {
    std::string body = std::string(index) +
                       "\nmad.wide.u32 %rd1, %r1, 4, %a0; ld.global.b32 %r3, [%rd1];\n"
                       "mad.wide.u32 %rd2, %i, 8, %a1; st.global.v2.b32 [%rd2], {%r3, %r1};";
    ortc_cu_kernel k = kernel(makeKernel({"b64", "b64"}, body));
    for (unsigned lanes : {32u, 21u}) {
      ortc_cu_pointer from = upload(in), to = allocate(32 * 8);
      run(k, 1, lanes, {from, to});
      std::vector<uint32_t> out = download<uint32_t>(to, lanes * 2);
      for (unsigned l = 0; l < lanes; ++l)
        ASSERT_EQ(out[2 * l], in[out[2 * l + 1]]) << index << " " << l;
    }
  }
}

TEST_F(MemoryTest, NarrowValuesAreExtended) {
  std::vector<uint32_t> a = {0x80, 0x7f, 0xff80, 0xffff, 0x12345678, 0x80000000};
  ortc_cu_kernel k = kernel(makeKernel({"b64", "b64"}, R"(
mad.wide.u32 %rd1, %i, 4, %a0;
mad.wide.u32 %rd2, %i, 40, %a1;
ld.global.s8 %r1, [%rd1];      cvt.s64.s32 %rd3, %r1; st.global.b64 [%rd2], %rd3;
ld.global.u8 %r1, [%rd1];      cvt.s64.s32 %rd3, %r1; st.global.b64 [%rd2+8], %rd3;
ld.global.s16 %rd3, [%rd1];    st.global.b64 [%rd2+16], %rd3;
ld.global.u32 %rd3, [%rd1];    st.global.b64 [%rd2+24], %rd3;
ld.global.s32 %rd3, [%rd1];    st.global.b64 [%rd2+32], %rd3;)"));
  ortc_cu_pointer from = upload(a), to = allocate(a.size() * 40);
  run(k, 1, unsigned(a.size()), {from, to});
  std::vector<int64_t> out = download<int64_t>(to, a.size() * 5);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(out[5 * i], int8_t(a[i]));
    EXPECT_EQ(out[5 * i + 1], uint8_t(a[i]));
    EXPECT_EQ(out[5 * i + 2], int16_t(a[i]));
    EXPECT_EQ(out[5 * i + 3], int64_t(a[i]));
    EXPECT_EQ(out[5 * i + 4], int32_t(a[i]));
  }
}

TEST_F(MemoryTest, GenericAddressesReachEverySpace) {
  ortc_cu_kernel k = kernel(makeKernel({"b64"}, R"(
.local .align 8 .b8 own[16];
.shared .align 8 .b8 common[512];
mov.b64 %rd1, own;    cvta.local.u64 %rd1, %rd1;
mov.b64 %rd2, common; cvta.shared.u64 %rd2, %rd2; mad.wide.u32 %rd2, %tid, 4, %rd2;
mul.lo.u32 %r1, %tid, 3;
st.u32 [%rd1+8], %r1;
st.u32 [%rd2], %tid;
bar.sync 0;
and.b32 %r2, %tid, 1;
setp.eq.u32 %p1, %r2, 1;
selp.b64 %rd3, %rd2, %rd1, %p1;
@!%p1 add.u64 %rd3, %rd3, 8;
ld.u32 %r3, [%rd3];
isspacep.shared %p2, %rd3;
selp.b32 %r4, 1000, 0, %p2;
add.u32 %r3, %r3, %r4;
isspacep.global %p2, %a0;
selp.b32 %r4, 10000, 0, %p2;
add.u32 %r3, %r3, %r4;
mad.wide.u32 %rd4, %tid, 4, %a0;
st.u32 [%rd4], %r3;)"));
  ortc_cu_pointer to = allocate(64 * 4);
  run(k, 1, 64, {to});
  std::vector<uint32_t> out = download<uint32_t>(to, 64);
  for (uint32_t t = 0; t < 64; ++t)
    EXPECT_EQ(out[t], 10000 + (t % 2 ? 1000 + t : 3 * t)) << t;
}

TEST_F(MemoryTest, ModulesHaveVariables) {
  const char *declarations = R"(
.global .align 4 .u32 counter = 7;
.global .align 8 .b8 bytes[4] = {1, 2, 3, 255};
.const .align 8 .f64 table[3] = {0d3FF0000000000000, 2.5, -1.0};
.global .align 4 .f32 singles[2] = {0f40490FDB, 0.5};
.global .align 8 .u64 pointer = generic(bytes)+2;
.global .align 4 .b32 zeros[4];
)";
  ortc_cu_kernel k = kernel(makeKernel({"b64"}, R"(
ld.global.u32 %r1, [counter];            st.global.u32 [%a0], %r1;
ld.global.u8 %r1, [bytes+3];             st.global.u32 [%a0+4], %r1;
ld.const.f64 %d1, [table+8];             st.global.f64 [%a0+8], %d1;
ld.global.f32 %f1, [singles+4];          st.global.f32 [%a0+16], %f1;
ld.global.u64 %rd1, [pointer]; ld.u8 %r1, [%rd1]; st.global.u32 [%a0+20], %r1;
mov.u64 %rd1, zeros; ld.global.u32 %r1, [%rd1+12]; st.global.u32 [%a0+24], %r1;
add.u32 %r1, %r1, 99; st.global.u32 [counter], %r1;)",
                                       declarations));
  ortc_cu_pointer to = allocate(28);
  run(k, 1, 1, {to});
  std::vector<uint32_t> out = download<uint32_t>(to, 7);
  double second;
  std::memcpy(&second, &out[2], 8);
  EXPECT_EQ(out[0], 7u);
  EXPECT_EQ(out[1], 255u);
  EXPECT_EQ(second, 2.5);
  EXPECT_EQ(bitCast<float>(out[4]), 0.5f);
  EXPECT_EQ(out[5], 3u);
  EXPECT_EQ(out[6], 0u);
  run(k, 1, 1, {to});
  EXPECT_EQ(download<uint32_t>(to, 1)[0], 99u);
}

TEST_F(MemoryTest, ParametersOfAllKinds) {
  std::string ptx = std::string(kHead) + R"(
.visible .entry k(.param .b64 out, .param .b8 small, .param .align 8 .b8 structure[16], .param .f32 single) {
.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<3>;
ld.param.b64 %rd1, [out];
ld.param.u8 %r1, [small];
ld.param.b32 %r2, [structure+4];
ld.param.v2.b32 {%r3, %r4}, [structure+8];
ld.param.f32 %f1, [single];
mov.b64 %rd2, structure;
cvta.param.u64 %rd3, %rd2;
ld.b32 %r5, [%rd3+8];
ld.param.b32 %r6, [%rd2+4];
st.global.v4.b32 [%rd1], {%r1, %r2, %r3, %r4};
st.global.f32 [%rd1+16], %f1;
st.global.v2.b32 [%rd1+24], {%r5, %r6};
st.global.b32 [%rd1+20], %r1;
ret; })";
  ortc_cu_kernel k = kernel(ptx);
  ortc_cu_pointer to = allocate(32);
  uint8_t small = 200;
  uint32_t structure[] = {11, 22, 33, 44};
  float single = 1.5f;
  void *params[] = {&to, &small, structure, &single};
  ASSERT_EQ(driver.cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr), ORTC_CU_SUCCESS);
  std::vector<uint32_t> out = download<uint32_t>(to, 8);
  EXPECT_EQ(out[0], 200u);
  EXPECT_EQ(out[1], 22u);
  EXPECT_EQ(out[2], 33u);
  EXPECT_EQ(out[3], 44u);
  EXPECT_EQ(bitCast<float>(out[4]), 1.5f);
  EXPECT_EQ(out[6], 33u);
  EXPECT_EQ(out[7], 22u);
}

TEST_F(MemoryTest, AtomicsOnIntegers) {
  struct Case {
    const char *name;
    uint32_t first, expected;
  };
  for (Case c : {Case{"add.u32", 5, 5 + 64 * 63 / 2},
                 {"max.s32", uint32_t(-9), 63},
                 {"min.s32", 5, 0},
                 {"min.u32", 100, 0},
                 {"max.u32", 7, 63},
                 {"or.b32", 64, 127},
                 {"xor.b32", 0, 0},
                 {"and.b32", ~0u, 0}}) {
    ortc_cu_pointer at = upload(std::vector<uint32_t>{c.first}), old = allocate(256);
    run(kernel(makeKernel({"b64", "b64"},
                          std::string("atom.global.") + c.name +
                              " %r1, [%a0], %i; mad.wide.u32 %rd1, %i, 4, %a1; st.global.u32 [%rd1], %r1;")),
        2, 32, {at, old});
    EXPECT_EQ(download<uint32_t>(at, 1)[0], c.expected) << c.name;
    run(kernel(makeKernel({"b64"}, std::string("red.global.") + c.name + " [%a0], %i;")), 2, 32, {at});
    run(kernel(makeKernel(
            {"b64"}, ".shared .u32 s; setp.ne.u32 %p1, %tid, 0; @!%p1 st.shared.u32 [s], %tid; bar.sync 0;"
                     "atom.shared.add.u32 %r1, [s], 2; bar.sync 0; @%p1 bra $e; ld.shared.u32 %r2, [s];"
                     "st.global.u32 [%a0], %r2; $e:")),
        1, 64, {at});
    EXPECT_EQ(download<uint32_t>(at, 1)[0], 128u);
  }
  ortc_cu_pointer wide = upload(std::vector<uint64_t>{uint64_t(1) << 40});
  run(kernel(makeKernel({"b64"}, "cvt.u64.u32 %rd1, %i; red.global.add.u64 [%a0], %rd1;")), 2, 32, {wide});
  EXPECT_EQ(download<uint64_t>(wide, 1)[0], (uint64_t(1) << 40) + 64 * 63 / 2);
  ortc_cu_pointer swapped = upload(std::vector<uint32_t>{3});
  run(kernel(makeKernel({"b64"}, "atom.global.cas.b32 %r1, [%a0], 3, %i;")), 1, 1, {swapped});
  run(kernel(makeKernel({"b64"}, "atom.global.cas.b32 %r1, [%a0], 7, 8; atom.global.exch.b32 %r2, [%a0], 50;"
                                 "add.u32 %r3, %r1, %r2; red.global.add.u32 [%a0], %r3;")),
      1, 1, {swapped});
  EXPECT_EQ(download<uint32_t>(swapped, 1)[0], 50u);
}

TEST_F(MemoryTest, FloatingPointAtomicsAreRefused) {
  ortc_cu_module module;
  std::string log;
  EXPECT_EQ(load(makeKernel({"b64"}, "red.global.add.f32 [%a0], %f1;"), &module, &log), ORTC_CU_INVALID_PTX);
  EXPECT_NE(log.find("depends on the order"), log.npos) << log;
}

} // namespace
} // namespace ortc::emulator::test
