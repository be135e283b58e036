// What the emulator finds wrong with kernels: one line each, and an error that stays.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/tests/Emulator.h"

namespace ortc::emulator::test {
namespace {

class ReportTest : public EmulatorTest {
protected:
  /// Launches what must fail, and that the line has all the parts.
  void expectReport(ortc_cu_result result, const std::string &body, Dimensions grid, Dimensions block,
                    std::initializer_list<Argument> arguments, std::initializer_list<const char *> parts) {
    std::string said = fail(result, kernel(makeKernel({"b64"}, body)), grid, block, arguments);
    for (const char *part : parts)
      EXPECT_NE(said.find(part), said.npos) << part << " is not in: " << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }
  /// The same kernel without its checks.
  void expectNothingUnchecked(const std::string &body, Dimensions grid, Dimensions block) {
    close();
    set("CHECKS", "off");
    ortc_cu_pointer memory = allocate(4096);
    run(kernel(makeKernel({"b64"}, body)), grid, block, {memory});
  }
  ortc_cu_pointer memory0() { return written(256); }
  ortc_cu_pointer written(size_t bytes) { return upload(std::vector<uint8_t>(bytes, 1)); }

  const std::string own = "mad.wide.u32 %rd1, %i, 4, %a0;\n";
};

TEST_F(ReportTest, NamesEverythingAndStays) {
  ortc_cu_pointer memory = written(36 * 4);
  expectReport(ORTC_CU_ILLEGAL_ADDRESS, own + "ld.global.b32 %r1, [%rd1];", 2, 20, {memory},
               {"ortc emulator: kernel 'k' block (1,0,0) thread (16,0,0) lane 16, PTX line 19 'ld.global.b32 "
                "%r1, [%rd1]': ",
                "read of 4 bytes at 0x",
                "of global memory is out of bounds, 0 bytes behind an allocation's end"});
  ortc_cu_pointer another;
  EXPECT_EQ(driver.cuMemAlloc_v2(&another, 4), ORTC_CU_ILLEGAL_ADDRESS);
  EXPECT_EQ(driver.cuStreamSynchronize(stream), ORTC_CU_ILLEGAL_ADDRESS);
  close();
  EXPECT_NE(allocate(4), 0u); // a new context has no errors
}

TEST_F(ReportTest, GlobalBounds) {
  for (const char *access :
       {"st.global.b32 [%rd1+4], %r1;", "st.global.v2.b32 [%rd1], {%r1, %r2};", "ld.global.b8 %r1, [%rd1+4];",
        "ld.b32 %r1, [%rd1+4];", "atom.global.add.u32 %r1, [%rd1+4], 1;",
        "ld.global.b32 %r1, [%rd1+1048576];", "ld.global.b32 %r1, [16];"}) {
    ortc_cu_pointer memory = written(32 * 4);
    std::string mask =
        std::string(access).find("v2") == std::string::npos ? own : "mad.wide.u32 %rd1, %i, 8, %a0;\n";
    expectReport(ORTC_CU_ILLEGAL_ADDRESS, mask + access, 1, 32, {memory}, {"out of bounds"});
    close();
  }
}

TEST_F(ReportTest, ReleasedMemoryIsOutOfBounds) {
  ortc_cu_pointer memory = 0;
  open();
  ASSERT_EQ(driver.cuMemAlloc_v2(&memory, 128), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuMemFree_v2(memory), ORTC_CU_SUCCESS);
  expectReport(ORTC_CU_ILLEGAL_ADDRESS, own + "st.global.b32 [%rd1], %r1;", 1, 32, {memory},
               {"out of bounds"});
}

TEST_F(ReportTest, SharedLocalAndParameterBounds) {
  expectReport(
      ORTC_CU_ILLEGAL_ADDRESS,
      ".shared .b32 s[31]; mov.b32 %r1, s; mad.lo.u32 %r1, %tid, 4, %r1; st.shared.b32 [%r1], %r2;", 1, 32,
      {memory0()},
      {"write of 4 bytes at 0x7c of shared memory is out of bounds: there are 124 bytes", "lane 31"});
  close();
  expectReport(
      ORTC_CU_ILLEGAL_ADDRESS,
      ".local .b32 l[4]; mov.b64 %rd1, l; mad.wide.u32 %rd1, %tid, 4, %rd1; st.local.b32 [%rd1], %r2;", 1, 32,
      {memory0()}, {"at 0x10 of local memory is out of bounds: there are 16 bytes", "lane 4"});
  close();
  expectReport(ORTC_CU_ILLEGAL_ADDRESS,
               "mov.b64 %rd1, a0; mad.wide.u32 %rd1, %tid, 4, %rd1; ld.param.b32 %r1, [%rd1];", 1, 32,
               {memory0()}, {"of parameter memory is out of bounds: there are 8 bytes", "lane 2"});
}

TEST_F(ReportTest, Misalignment) {
  ortc_cu_pointer memory = written(4096);
  expectReport(ORTC_CU_MISALIGNED_ADDRESS, own + "ld.global.v2.b32 {%r1, %r2}, [%rd1];", 1, 32, {memory},
               {"misaligned", "lane 1"});
  close();
  expectReport(ORTC_CU_MISALIGNED_ADDRESS,
               ".shared .align 8 .b8 s[256]; mov.b32 %r1, s; ld.shared.b16 %h1, [%r1+1];", 1, 1, {memory0()},
               {"misaligned"});
}

TEST_F(ReportTest, GlobalMemoryThatWasNeverWritten) {
  ortc_cu_pointer memory = allocate(4096);
  ASSERT_EQ(driver.cuMemsetD8Async(memory, 0, 65, stream), ORTC_CU_SUCCESS);
  expectReport(ORTC_CU_LAUNCH_FAILED, own + "ld.global.b32 %r1, [%rd1];", 1, 32, {memory},
               {"never written", "lane 16"});
  expectNothingUnchecked(own + "ld.global.b32 %r1, [%rd1];", 1, 32);
}

TEST_F(ReportTest, CopiesKeepWhatWasWritten) {
  ortc_cu_pointer from = allocate(64), to = written(64);
  ASSERT_EQ(driver.cuMemsetD32Async(from, 7, 4, stream), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuMemcpyDtoDAsync_v2(to, from, 32, stream), ORTC_CU_SUCCESS);
  run(kernel(makeKernel({"b64"}, own + "ld.global.b32 %r1, [%rd1];")), 1, 4, {to});
  expectReport(ORTC_CU_LAUNCH_FAILED, own + "ld.global.b32 %r1, [%rd1];", 1, 8, {to},
               {"never written", "lane 4"});
}

TEST_F(ReportTest, SharedMemoryThatWasNeverWritten) {
  const std::string body = R"(
.shared .b32 s[64];
mov.b32 %r1, s; mad.lo.u32 %r1, %tid, 4, %r1;
setp.lt.u32 %p1, %tid, 40;
@%p1 st.shared.b32 [%r1], %tid;
bar.sync 0;
ld.shared.b32 %r2, [%r1];)";
  expectReport(ORTC_CU_LAUNCH_FAILED, body, 1, 64, {memory0()},
               {"of shared memory is of bytes that were never written", "thread (40,0,0)"});
  expectNothingUnchecked(body, 1, 64);
}

TEST_F(ReportTest, SharedMemoryIsNewInEveryBlock) {
  expectReport(ORTC_CU_LAUNCH_FAILED, R"(
.shared .b32 s;
mov.u32 %r1, %ctaid.x;
setp.eq.u32 %p1, %r1, 0;
@%p1 st.shared.b32 [s], 5;
ld.shared.b32 %r2, [s];)",
               2, 1, {memory0()}, {"block (1,0,0)", "never written"});
}

TEST_F(ReportTest, ConstantsCannotBeWritten) {
  std::string ptx = makeKernel({}, "mov.u64 %rd1, c; st.global.b32 [%rd1], 1;", ".const .b32 c = 5;");
  std::string said = fail(ORTC_CU_ILLEGAL_ADDRESS, kernel(ptx), 1, 1, {});
  EXPECT_NE(said.find("constant memory"), said.npos) << said;
}

TEST_F(ReportTest, DivergentBarriers) {
  expectReport(ORTC_CU_LAUNCH_FAILED,
               "setp.lt.u32 %p1, %tid, 9; @%p1 bra $end; bar.sync 0; $end: bar.sync 0;", 1, 32, {memory0()},
               {"divergent", "lanes that it needs never come here"});
  close();
  expectReport(ORTC_CU_LAUNCH_FAILED, "setp.lt.u32 %p1, %tid, 9; @%p1 bar.sync 0;", 1, 32, {memory0()},
               {"divergent barrier", "by its predicate"});
  close();
  expectReport(ORTC_CU_LAUNCH_FAILED, "setp.lt.u32 %p1, %tid, 32; @%p1 ret; bar.sync 0;", 1, 64, {memory0()},
               {"divergent barrier: 1 warps have left"});
  close();
  expectReport(ORTC_CU_LAUNCH_FAILED,
               "setp.lt.u32 %p1, %tid, 32; @%p1 bra $o; bar.sync 0; ret; $o: bar.sync 1;", 1, 64, {memory0()},
               {"divergent barrier: 0 warps have left and 1 wait at another barrier"});
}

TEST_F(ReportTest, DivergentShuffles) {
  expectReport(ORTC_CU_LAUNCH_FAILED,
               "setp.lt.u32 %p1, %tid, 9; @%p1 bra $end; shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1; $end: "
               "bar.warp.sync -1;",
               1, 32, {memory0()}, {"divergent"});
  close();
  expectReport(ORTC_CU_LAUNCH_FAILED, "shfl.sync.idx.b32 %r1, %r2, 20, 31, 0xffff; ", 1, 16, {memory0()},
               {"divergent shuffle: it reads lane 20, which does not take part"});
  close();
  expectReport(ORTC_CU_LAUNCH_FAILED, "shfl.sync.idx.b32 %r1, %r2, 0, 31, 0xffff; ", 1, 32, {memory0()},
               {"a lane executes it that its mask does not name", "lane 16"});
}

TEST_F(ReportTest, ReadsOfCopiesThatNobodyWaitedFor) {
  const std::string body = R"(
.shared .align 16 .b8 s[512];
mov.b32 %r1, s; mad.lo.u32 %r1, %tid, 16, %r1; mad.wide.u32 %rd1, %tid, 16, %a0;
cp.async.cg.shared.global [%r1], [%rd1], 16;
cp.async.commit_group;
WAIT
ld.shared.b32 %r2, [%r1];)";
  ortc_cu_pointer memory = written(512);
  auto with = [&](const char *wait) { return std::string(body).replace(body.find("WAIT"), 4, wait); };
  run(kernel(makeKernel({"b64"}, with("cp.async.wait_group 0;"))), 1, 32, {memory});
  run(kernel(makeKernel({"b64"}, with("cp.async.wait_all;"))), 1, 32, {memory});
  expectReport(ORTC_CU_LAUNCH_FAILED, with("cp.async.wait_group 1;"), 1, 32, {memory},
               {"cp.async still copies"});
}

TEST_F(ReportTest, Traps) {
  expectReport(ORTC_CU_LAUNCH_FAILED, "trap;", 1, 1, {memory0()}, {"'trap': trap"});
}

TEST_F(ReportTest, LaunchesThatDoNotFitTheKernel) {
  std::string ptx = makeKernel({"b64"}, "");
  ptx.replace(ptx.find(") {"), 3, ") .maxntid 64, 1, 1\n{");
  ortc_cu_pointer memory = memory0();
  EXPECT_NE(fail(ORTC_CU_INVALID_VALUE, kernel(ptx), 1, 65, {memory}).find("at most (64,1,1)"),
            std::string::npos);
  run(kernel(ptx), 1, 64, {memory}); // nothing stays
  EXPECT_NE(fail(ORTC_CU_INVALID_VALUE, kernel(ptx), 1, 64, {memory}, 49153).find("dynamic shared memory"),
            std::string::npos);
  EXPECT_NE(fail(ORTC_CU_INVALID_VALUE, kernel(ptx), {1, 65536}, 64, {memory}).find("no grid"),
            std::string::npos);
  EXPECT_NE(fail(ORTC_CU_INVALID_VALUE, kernel(makeKernel({"b64"}, "")), 1, 1025, {memory}).find("no grid"),
            std::string::npos);
}

TEST_F(ReportTest, ArgumentsThatAreMissing) {
  ortc_cu_kernel k = kernel(makeKernel({"b64", "b32", "b64"}, ""));
  // The list ends with a null pointer here, which is no argument.
  EXPECT_NE(fail(ORTC_CU_INVALID_VALUE, k, 1, 1, {uint64_t(1), 2})
                .find("has 3 parameters, and number 2 ('a2') is not given"),
            std::string::npos);
  uint64_t buffer[3] = {};
  size_t bytes = 12;
  void *extra[] = {ORTC_CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, ORTC_CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   ORTC_CU_LAUNCH_PARAM_END};
  testing::internal::CaptureStderr();
  EXPECT_EQ(driver.cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, extra), ORTC_CU_INVALID_VALUE);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("24 bytes of parameters, given are 12"),
            std::string::npos);
  bytes = 24;
  EXPECT_EQ(driver.cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, extra), ORTC_CU_SUCCESS);
}

TEST_F(ReportTest, PromisesOfAlignment) {
  std::string ptx = std::string(kHead) + ".entry k(.param .u64 .ptr .global .align 16 a) { ret; }";
  EXPECT_NE(
      fail(ORTC_CU_INVALID_VALUE, kernel(ptx), 1, 1, {memory0() + 8}).find("promises an alignment of 16"),
      std::string::npos);
}

} // namespace
} // namespace ortc::emulator::test
