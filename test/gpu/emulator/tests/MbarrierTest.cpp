// Barriers in shared memory: phases, what they order, and what is wrong with their use.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <sstream>

#include "test/gpu/emulator/tests/Emulator.h"

namespace ortc::emulator::test {
namespace {

class MbarrierTest : public EmulatorTest {
protected:
  /// Launches it in each order; whether all went well, or each report has one of the parts.
  void expect(const std::string &body, unsigned threads, const std::string &parts = "") {
    for (const char *order : {"forward", "reverse", "random:3"}) {
      set("ORDER", order);
      ortc_cu_pointer memory = upload(std::vector<uint32_t>(1024, 7));
      ortc_cu_kernel k = kernel(makeKernel({"b64"}, body));
      testing::internal::CaptureStderr();
      const ortc_cu_result result = launch(k, 2, threads, {memory});
      const std::string said = testing::internal::GetCapturedStderr();
      EXPECT_EQ(result == ORTC_CU_SUCCESS, parts.empty()) << order << ": " << said;
      bool isSaid = parts.empty();
      std::istringstream list(parts);
      for (std::string part; std::getline(list, part, '|');)
        isSaid |= said.find(part) != said.npos;
      EXPECT_TRUE(isSaid) << order << ": " << said;
      close();
    }
  }
  /// Thread 0 makes a barrier for so many arrivals.
  static std::string begin(int arrivals) {
    return ".shared .align 8 .b64 bar; .shared .align 16 .b8 s[4096];\nmov.b32 %r30, s;\nsetp.eq.u32 %p1, "
           "%tid, 0;\n"
           "@%p1 mbarrier.init.shared.b64 [bar], " +
           std::to_string(arrivals) + ";\nbar.sync 0;\n";
  }
  static std::string replace(std::string text, const std::string &from, const std::string &to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return text.replace(at, from.size(), to);
  }
  /// Waits for the phase of %rd5, or of a parity.
  static std::string wait(const std::string &what, const char *label) {
    return std::string("$") + label + ": mbarrier.try_wait" + (what == "%rd5" ? "" : ".parity") +
           ".shared.b64 %p2, [bar], " + what + ";\n@!%p2 bra $" + label + ";\n";
  }
};

TEST_F(MbarrierTest, OrdersWhatWasBeforeAnArrival) {
  // Each warp writes its words, arrives, waits, and reads those of another one.
  const std::string body =
      begin(128) +
      "shl.b32 %r1, %tid, 2; add.u32 %r1, %r1, %r30; xor.b32 %r2, %tid, 32; shl.b32 %r2, %r2, 2; "
      "add.u32 %r2, %r2, %r30;\nst.shared.b32 [%r1], %tid;\n"
      "mbarrier.arrive.shared.b64 %rd5, [bar];\n" +
      wait("%rd5", "wait") +
      "ld.shared.b32 %r3, [%r2];\nxor.b32 %r4, %tid, 32;\n"
      "setp.ne.u32 %p3, %r3, %r4;\n@%p3 trap;\n";
  expect(body, 128);
  expect(replace(body, "@!%p2 bra $wait;", ""), 128, "race in shared memory|never written");
  expect(replace(body, "mbarrier.arrive.shared.b64 %rd5, [bar];", "mov.b64 %rd5, 0;"), 128,
         "nobody is left who could end the phase");
  expect(replace(body, "bar], 128", "bar], 129"), 128, "nobody is left who could end the phase");
  expect(replace(body, "bar], 128", "bar], 96"), 128, "race in shared memory|never written");
  expect(replace(body, "bar.sync 0;", ""), 128, "race in shared memory|never written|no mbarrier");
}

TEST_F(MbarrierTest, PhasesOfAPipeline) {
  // The first warp copies what the second one reads, twelve times through one place: `bar` is full, bar2 empty.
  const std::string body = R"(
.shared .align 8 .b64 full; .shared .align 8 .b64 empty; .shared .align 16 .b8 s[512];
mov.b32 %r30, s; and.b32 %r1, %tid, 31; mad.lo.u32 %r1, %r1, 16, %r30; mad.wide.u32 %rd1, %tid, 16, %a0;
setp.eq.u32 %p1, %tid, 0;
@%p1 mbarrier.init.shared::cta.b64 [full], 32;
@%p1 mbarrier.init.shared::cta.b64 [empty], 32;
bar.sync 0;
mov.b32 %r10, 0;
setp.ge.u32 %p4, %tid, 32;
@%p4 bra $reader;
$writer:
and.b32 %r11, %r10, 1; xor.b32 %r12, %r11, 1;
$empty: mbarrier.test_wait.parity.shared.b64 %p2, [empty], %r12;
@!%p2 bra $empty;
cp.async.cg.shared.global [%r1], [%rd1], 16;
cp.async.mbarrier.arrive.noinc.shared.b64 [full];
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 12;
@%p3 bra $writer;
bra $end;
$reader:
and.b32 %r11, %r10, 1;
$full: mbarrier.try_wait.parity.shared.b64 %p2, [full], %r11;
@!%p2 bra $full;
ld.shared.b32 %r3, [%r1];
setp.ne.u32 %p5, %r3, 7;
@%p5 trap;
mbarrier.arrive.release.cta.shared::cta.b64 _, [empty], 1;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 12;
@%p3 bra $reader;
$end:)";
  expect(body, 64);
  expect(replace(body, "@!%p2 bra $empty;", ""), 64, "race in shared memory|more arrive|nobody is left");
  expect(replace(body, "@!%p2 bra $full;", ""), 64, "race in shared memory|never written|still copies");
  expect(replace(body, "[%r1], [%rd1], 16;\ncp.async.mbarrier.arrive.noinc.shared.b64 [full];",
                 "[%r1], [%rd1], 16;\nmbarrier.arrive.shared.b64 _, [full];"),
         64, "still copies");
  expect(replace(body, "cp.async.mbarrier.arrive.noinc", "cp.async.mbarrier.arrive"), 64, "nobody is left");
  expect(replace(body, "xor.b32 %r12, %r11, 1;", "mov.b32 %r12, %r11;"), 64, "nobody is left|race in shared");
}

TEST_F(MbarrierTest, WrongUses) {
  expect(begin(4) + "@%p1 mbarrier.init.shared.b64 [bar], 4;", 32, "is an mbarrier at the address already");
  expect(begin(4) + "@%p1 mbarrier.inval.shared.b64 [bar];\n@%p1 mbarrier.init.shared.b64 [bar], 4;", 32);
  expect(begin(4) + "@%p1 mbarrier.arrive.shared.b64 %rd1, [bar], 5;", 32,
         "more arrive than the mbarrier expects");
  expect(begin(0), 32, "counts 1 to 1048575 arrivals");
  expect(begin(4) + "st.shared.b32 [%r30], 1;\n@%p1 mbarrier.arrive.shared.b64 %rd1, [s];", 1,
         "never written|no mbarrier at the address");
  expect(begin(4) + "st.shared.b64 [%r30], %rd1;\n@%p1 mbarrier.arrive.shared.b64 %rd1, [s];", 1,
         "there is no mbarrier at the address");
}

} // namespace
} // namespace ortc::emulator::test
