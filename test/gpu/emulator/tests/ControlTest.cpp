// Branches, calls, barriers and exchanges between lanes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/tests/Operations.h"

namespace ortc::emulator::test {
namespace {

using ControlTest = OperationTest;

/// What one warp's lanes leave in %y of `body`; x: the number of the lane.
class WarpTest : public OperationTest {
protected:
  std::vector<uint32_t> lanes(const std::string &body) {
    ortc_cu_pointer out = allocate(128);
    run(kernel(makeKernel({"b64"}, ".reg .b32 %y;\n" + body +
                                       "\nmad.wide.u32 %rd1, %tid, 4, %a0; st.global.u32 [%rd1], %y;")),
        1, 32, {out});
    return download<uint32_t>(out, 32);
  }
};

TEST_F(ControlTest, CallsPassArgumentsAndResults) {
  const char *functions = R"(
.func (.param .b32 result) square(.param .b32 x) {
  .reg .b32 %r<4>; .reg .pred %p<2>;
  ld.param.b32 %r1, [x];
  setp.gt.s32 %p1, %r1, 20;
  @%p1 bra $large;
  mul.lo.s32 %r2, %r1, %r1;
  st.param.b32 [result], %r2;
  ret;
$large:
  st.param.b32 [result], -1;
  ret;
}
.func (.param .align 4 .b8 result[8]) both(.param .b32 a, .param .b64 b) {
  .reg .b32 %r<9>; .reg .b64 %rd<2>;
  ld.param.b32 %r1, [a];
  ld.param.b64 %rd1, [b];
  { .param .b32 p0; .param .b32 r0; st.param.b32 [p0], %r1; call.uni (r0), square, (p0); ld.param.b32 %r2, [r0]; }
  cvt.u32.u64 %r3, %rd1;
  st.param.b32 [result], %r2;
  st.param.b32 [result+4], %r3;
  ret;
}
)";
  ortc_cu_kernel k = kernel(makeKernel({"b64"}, R"(
mov.b64 %rd5, 77;
{ .param .b32 p0; .param .b64 p1; .param .align 4 .b8 r0[8];
  st.param.b32 [p0], %tid; st.param.b64 [p1], %rd5;
  call (r0), both, (p0, p1);
  ld.param.v2.b32 {%r1, %r2}, [r0]; }
add.s32 %r1, %r1, %r2;
mad.wide.u32 %rd1, %tid, 4, %a0;
st.global.u32 [%rd1], %r1;)",
                                       functions));
  ortc_cu_pointer out = allocate(160);
  run(k, 1, 40, {out});
  std::vector<int> results = download<int>(out, 40);
  for (int t = 0; t < 40; ++t)
    EXPECT_EQ(results[size_t(t)], 77 + (t > 20 ? -1 : t * t));
}

TEST_F(ControlTest, RecursionIsRefused) {
  ortc_cu_module module;
  std::string log;
  EXPECT_EQ(load(makeKernel({}, "call f;", ".func f() { call f; ret; }"), &module, &log),
            ORTC_CU_INVALID_PTX);
  EXPECT_NE(log.find("recursion"), log.npos) << log;
}

TEST_F(ControlTest, BranchesByTable) {
  ortc_cu_kernel k = kernel(makeKernel({"b64"}, R"(
and.b32 %r1, %tid, 3;
$targets: .branchtargets $c0, $c1, $c2, $c1;
brx.idx %r1, $targets;
$c0: mov.b32 %r2, 100; bra $end;
$c1: mov.b32 %r2, 200; bra $end;
$c2: mov.b32 %r2, 300;
$end: mad.wide.u32 %rd1, %tid, 4, %a0; st.global.u32 [%rd1], %r2;)"));
  ortc_cu_pointer out = allocate(256);
  run(k, 1, 64, {out});
  std::vector<uint32_t> results = download<uint32_t>(out, 64);
  const uint32_t expected[] = {100, 200, 300, 200};
  for (uint32_t t = 0; t < 64; ++t)
    EXPECT_EQ(results[t], expected[t % 4]);
}

TEST_F(ControlTest, LanesMeetAgainBehindACodeThatLiesElsewhere) {
  // The side that is taken rarely lies behind the code where the lanes meet: shuffles and barriers wait for
  // it.
  ortc_cu_kernel k = kernel(makeKernel({"b64"}, R"(
.shared .b32 s[64];
mov.b32 %r1, 1;
setp.eq.u32 %p1, %tid, 40;
@%p1 bra $rare;
$meet:
shfl.sync.bfly.b32 %r2, %r1, 8, 31, -1;
add.u32 %r3, %r1, %r2;
mad.lo.u32 %r4, %tid, 4, 0;
mov.b32 %r5, s; add.u32 %r5, %r5, %r4;
st.shared.u32 [%r5], %r3;
setp.eq.u32 %p2, %tid, 3;
@%p2 bra $rare2;
$meet2:
bar.sync 0;
xor.b32 %r6, %r4, 252; mov.b32 %r7, s; add.u32 %r7, %r7, %r6;
ld.shared.u32 %r8, [%r7];
mad.wide.u32 %rd1, %tid, 4, %a0; st.global.u32 [%rd1], %r8;
ret;
$rare: mov.b32 %r1, 50; bra $meet;
$rare2: st.shared.u32 [%r5], 9; bra $meet2;)"));
  ortc_cu_pointer out = allocate(256);
  run(k, 1, 64, {out});
  std::vector<uint32_t> results = download<uint32_t>(out, 64);
  for (uint32_t t = 0; t < 64; ++t) {
    uint32_t from = 63 - t, value = from == 40 || from == 32 ? 51 : 2;
    EXPECT_EQ(results[t], from == 3 ? 9 : value) << t;
  }
}

TEST_F(ControlTest, NamedBarriersOfSomeWarps) {
  ortc_cu_kernel k = kernel(makeKernel({"b64"}, R"(
.shared .b32 s[2];
shr.u32 %r1, %tid, 5;
setp.ge.u32 %p1, %r1, 2;
@%p1 bra $others;
setp.eq.u32 %p2, %tid, 0;
@%p2 st.shared.u32 [s], 11;
barrier.sync 1, 64;
ld.shared.u32 %r2, [s];
bra $end;
$others:
setp.eq.u32 %p2, %tid, 64;
@%p2 st.shared.u32 [s+4], 22;
bar.sync 2, 64;
ld.shared.u32 %r2, [s+4];
$end:
mad.wide.u32 %rd1, %tid, 4, %a0; st.global.u32 [%rd1], %r2;)"));
  ortc_cu_pointer out = allocate(512);
  run(k, 1, 128, {out});
  std::vector<uint32_t> results = download<uint32_t>(out, 128);
  for (uint32_t t = 0; t < 128; ++t)
    EXPECT_EQ(results[t], t < 64 ? 11u : 22u);
}

TEST_F(ControlTest, SpecialRegisters) {
  ortc_cu_kernel k = kernel(makeKernel({"b64"}, R"(
mov.u32 %r1, %tid.y; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %tid;
mov.u32 %r4, %ctaid.y; mov.u32 %r5, %nctaid.x; mov.u32 %r6, %ctaid.x; mad.lo.u32 %r7, %r4, %r5, %r6;
mov.u32 %r8, %ntid.y; mul.lo.u32 %r9, %r2, %r8; mad.lo.u32 %r10, %r7, %r9, %r3;
mov.u32 %r11, %laneid; mov.u32 %r12, %warpid; mad.lo.u32 %r13, %r12, 32, %r11;
mov.u32 %r14, %lanemask_lt; popc.b32 %r14, %r14;
mad.wide.u32 %rd1, %r10, 16, %a0;
st.global.v4.u32 [%rd1], {%r13, %r14, %r3, %r9};)"));
  ortc_cu_pointer out = allocate(6 * 48 * 16);
  run(k, {3, 2}, {16, 3}, {out});
  std::vector<uint32_t> results = download<uint32_t>(out, 6 * 48 * 4);
  for (uint32_t i = 0; i < 6 * 48; ++i) {
    EXPECT_EQ(results[4 * i], i % 48);
    EXPECT_EQ(results[4 * i + 1], i % 48 % 32);
    EXPECT_EQ(results[4 * i + 2], i % 48);
    EXPECT_EQ(results[4 * i + 3], 48u);
  }
}

TEST_F(WarpTest, Shuffles) {
  auto check = [&](const std::string &instruction, auto from) {
    std::vector<uint32_t> y = lanes("mul.lo.u32 %r1, %tid, 10;\n" + instruction);
    for (uint32_t l = 0; l < 32; ++l)
      EXPECT_EQ(y[l], 10 * from(l)) << instruction << " " << l;
  };
  check("shfl.sync.bfly.b32 %y, %r1, 5, 31, -1;", [](uint32_t l) { return l ^ 5; });
  check("shfl.sync.up.b32 %y, %r1, 3, 0, -1;", [](uint32_t l) { return l < 3 ? l : l - 3; });
  check("shfl.sync.down.b32 %y, %r1, 4, 31, -1;", [](uint32_t l) { return l + 4 > 31 ? l : l + 4; });
  check("shfl.sync.idx.b32 %y, %r1, 7, 31, -1;", [](uint32_t) { return 7; });
  // Segments of 8 lanes.
  check("shfl.sync.down.b32 %y, %r1, 2, 0x181f, -1;", [](uint32_t l) { return l % 8 + 2 > 7 ? l : l + 2; });
  check("shfl.sync.idx.b32 %y, %r1, 1, 0x181f, -1;", [](uint32_t l) { return l / 8 * 8 + 1; });
  check("shfl.sync.up.b32 %y, %r1, 1, 0x1800, -1;", [](uint32_t l) { return l % 8 ? l - 1 : l; });
  std::vector<uint32_t> valid = lanes("shfl.sync.down.b32 %r2|%p1, %tid, 4, 31, -1; selp.b32 %y, 1, 0, %p1;");
  for (uint32_t l = 0; l < 32; ++l)
    EXPECT_EQ(valid[l], l < 28);
}

TEST_F(WarpTest, VotesAndMatches) {
  const std::string odd = "and.b32 %r1, %tid, 1; setp.eq.u32 %p1, %r1, 1; setp.lt.u32 %p2, %tid, 99;\n";
  auto all = [&](const std::string &body, uint32_t expected) {
    for (uint32_t value : lanes(odd + body))
      EXPECT_EQ(value, expected) << body;
  };
  all("vote.sync.ballot.b32 %y, %p1, -1;", 0xaaaaaaaa);
  all("vote.sync.ballot.b32 %y, !%p1, -1;", 0x55555555);
  all("vote.sync.any.pred %p3, %p1, -1; selp.b32 %y, 1, 0, %p3;", 1);
  all("vote.sync.all.pred %p3, %p1, -1; selp.b32 %y, 1, 0, %p3;", 0);
  all("vote.sync.all.pred %p3, %p2, -1; selp.b32 %y, 1, 0, %p3;", 1);
  all("vote.sync.uni.pred %p3, !%p2, -1; selp.b32 %y, 1, 0, %p3;", 1);
  all("activemask.b32 %y;", ~0u);
  all("redux.sync.add.u32 %y, %tid, -1;", 496);
  all("redux.sync.max.s32 %y, %tid, -1;", 31);
  all("sub.s32 %r2, %tid, 5; redux.sync.min.s32 %y, %r2, -1;", uint32_t(-5));
  all("redux.sync.xor.b32 %y, %r1, -1;", 0);
  std::vector<uint32_t> groups = lanes("shr.u32 %r2, %tid, 3; match.any.sync.b32 %y, %r2, -1;");
  for (uint32_t l = 0; l < 32; ++l)
    EXPECT_EQ(groups[l], 255u << (l / 8 * 8));
  all("mov.b64 %rd2, 5; match.all.sync.b64 %y|%p3, %rd2, -1;", ~0u);
  all("elect.sync %y|%p3, -1;", 0);
}

TEST_F(WarpTest, PartsOfAWarpExchangeAmongThemselves) {
  // Both sides of a branch shuffle with masks of their own.
  std::vector<uint32_t> y = lanes(R"(
setp.lt.u32 %p1, %tid, 8;
@!%p1 bra $upper;
shfl.sync.bfly.b32 %y, %tid, 1, 31, 0xff;
bra $end;
$upper:
shfl.sync.bfly.b32 %y, %tid, 2, 31, 0xffffff00;
$end:)");
  for (uint32_t l = 0; l < 32; ++l)
    EXPECT_EQ(y[l], l < 8 ? l ^ 1 : l ^ 2);
  std::vector<uint32_t> sums = lanes(R"(
setp.lt.u32 %p1, %tid, 5;
mov.b32 %y, 0;
activemask.b32 %r1;
@%p1 activemask.b32 %y;)");
  for (uint32_t l = 0; l < 32; ++l)
    EXPECT_EQ(sums[l], l < 5 ? 31u : 0u);
}

} // namespace
} // namespace ortc::emulator::test
