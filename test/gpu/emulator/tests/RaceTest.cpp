// Races between lanes, warps and blocks; and code that has none but looks a little like it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/tests/Emulator.h"

namespace ortc::emulator::test {
namespace {

class RaceTest : public EmulatorTest {
protected:
  void expectRace(const std::string &body, Dimensions grid, Dimensions block, const char *part) {
    for (const char *order : {"forward", "reverse", "random:3"})
      for (const char *threads : {"1", "2"}) {
        set("ORDER", order);
        set("THREADS", threads);
        ortc_cu_pointer memory = upload(std::vector<uint8_t>(4096, 1));
        std::string said =
            fail(ORTC_CU_LAUNCH_FAILED, kernel(makeKernel({"b64"}, body)), grid, block, {memory});
        // The order may be one in which a value is read before it is written at all.
        EXPECT_TRUE(said.find(part) != said.npos || said.find("never written") != said.npos)
            << order << " " << threads << ": " << said << body;
        close();
      }
    set("CHECKS", "off");
    ortc_cu_pointer memory = upload(std::vector<uint8_t>(4096, 1));
    run(kernel(makeKernel({"b64"}, body)), grid, block, {memory});
    close();
    set("CHECKS", "on");
  }
  void expectNone(const std::string &body, Dimensions grid, Dimensions block) {
    for (const char *order : {"forward", "reverse", "random:3"}) {
      set("ORDER", order);
      ortc_cu_pointer memory = upload(std::vector<uint8_t>(4096, 1));
      run(kernel(makeKernel({"b64"}, body)), grid, block, {memory});
      close();
    }
  }
  static constexpr char kShared[] = "race in shared memory", kGlobal[] = "race in global memory";
  /// %r1: the thread's own word of s; %r2: that of the thread `distance` further.
  static std::string words(int distance) {
    return ".shared .align 16 .b32 s[256]; mov.b32 %r9, s; mad.lo.u32 %r1, %tid, 4, %r9; add.u32 %r2, "
           "%tid, " +
           std::to_string(distance) + "; and.b32 %r2, %r2, 127; mad.lo.u32 %r2, %r2, 4, %r9;\n";
  }
};

TEST_F(RaceTest, WarpsNeedBarriers) {
  const std::string both = "st.shared.b32 [%r1], %tid; SYNC ld.shared.b32 %r3, [%r2];";
  auto with = [&](int distance, const char *sync) {
    return words(distance) + std::string(both).replace(both.find("SYNC"), 4, sync);
  };
  expectRace(with(32, ""), 1, 128, kShared);
  expectRace(with(32, "bar.warp.sync -1;"), 1, 128, kShared);
  expectNone(with(32, "bar.sync 0;"), 1, 128);
  // Write after read.
  const std::string after = words(32) + "st.shared.b32 [%r1], 1; bar.sync 0; ld.shared.b32 %r3, [%r2]; ";
  expectRace(after + "st.shared.b32 [%r1], 2;", 1, 128, kShared);
  expectNone(after + "bar.sync 0; st.shared.b32 [%r1], 2;", 1, 128);
}

TEST_F(RaceTest, LanesOfAWarpNeedSynchronisation) {
  const std::string write = words(1) +
                            "and.b32 %r4, %tid, 31; setp.eq.u32 %p1, %r4, 31; selp.b32 %r2, %r1, %r2, %p1; "
                            "st.shared.b32 [%r1], %tid; ";
  expectRace(write + "ld.shared.b32 %r3, [%r2];", 1, 64, kShared);
  // A shuffle does not order memory.
  expectRace(write + "shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1; ld.shared.b32 %r3, [%r2];", 1, 64, kShared);
  expectNone(write + "bar.warp.sync -1; ld.shared.b32 %r3, [%r2];", 1, 64);
  expectNone(words(0) + "st.shared.b32 [%r1], %tid; ld.shared.b32 %r3, [%r1]; st.shared.b32 [%r1], %r3;", 1,
             64);
}

TEST_F(RaceTest, LanesThatStoreToOnePlace) {
  const std::string one = ".shared .b32 s; ";
  expectRace(one + "st.shared.b32 [s], %tid;", 1, 32, kShared);
  expectNone(one + "st.shared.b32 [s], 5;", 1, 32); // all the same
  expectRace(one + "st.shared.b32 [s], 5;", 1, 64, kShared);
}

TEST_F(RaceTest, ReadersOfOneWord) {
  const std::string read = ".shared .b32 s[2]; setp.eq.u32 %p1, %tid, 0; @%p1 st.shared.b32 [s], 5; bar.sync "
                           "0; ld.shared.b32 %r1, [s]; ";
  expectNone(read, 1, 64);
  expectNone(read + "bar.sync 0; @%p1 st.shared.b32 [s], 6;", 1, 64);
  expectRace(read + "@%p1 st.shared.b32 [s], 6;", 1, 64, kShared);
  expectRace(read + "@%p1 st.shared.b32 [s], 6;", 1, 32, kShared);
}

TEST_F(RaceTest, HalvesOfAWordAreApart) {
  const std::string own =
      ".shared .align 4 .b16 s[128]; mov.b32 %r9, s; mad.lo.u32 %r1, %tid, 2, %r9; xor.b32 %r2, %r1, 64;"
      "cvt.u16.u32 %h1, %tid; st.shared.b16 [%r1], %h1; ";
  expectNone(own + "ld.shared.b16 %h2, [%r1];", 1, 128);
  expectRace(own + "ld.shared.b16 %h2, [%r2];", 1, 128, kShared);
  expectRace(own + "and.b32 %r1, %r1, -4; ld.shared.b32 %r3, [%r1];", 1, 128,
             kShared); // the neighbour's half
  expectNone(own + "bar.sync 0; and.b32 %r1, %r1, -4; ld.shared.b32 %r3, [%r1];", 1, 128);
}

TEST_F(RaceTest, AtomicsOfSharedMemory) {
  const std::string zero = ".shared .b32 s; setp.eq.u32 %p1, %tid, 0; @%p1 st.shared.b32 [s], 0; ";
  expectNone(zero + "bar.sync 0; red.shared.add.u32 [s], 1; bar.sync 0; ld.shared.b32 %r1, [s];", 1, 64);
  expectRace(zero + "bar.sync 0; red.shared.add.u32 [s], 1; ld.shared.b32 %r1, [s];", 1, 64, kShared);
  expectRace(zero + "red.shared.add.u32 [s], 1;", 1, 64, kShared);
}

TEST_F(RaceTest, NamedBarriersOrderWhoTakesPart) {
  const std::string body =
      words(32) +
      "and.b32 %r4, %tid, 64; setp.ne.u32 %p1, %r4, 0; st.shared.b32 [%r1], 1; "
      "@%p1 bra $o; barrier.sync 1, 64; bra $j; $o: barrier.sync 2, 64; $j: xor.b32 %r5, %r1, MASK; "
      "ld.shared.b32 %r3, [%r5];";
  auto with = [&](const char *mask) { return std::string(body).replace(body.find("MASK"), 4, mask); };
  expectNone(with("128"), 1, 128);          // another warp of the same barrier
  expectRace(with("256"), 1, 128, kShared); // one of the other
}

TEST_F(RaceTest, BlocksShareGlobalMemory) {
  const std::string own = "mad.wide.u32 %rd1, %i, 4, %a0; mad.wide.u32 %rd2, %tid, 4, %a0;\n";
  expectNone(own + "st.global.b32 [%rd1], %i;", 4, 64);
  expectRace(own + "st.global.b32 [%rd2], 1;", 4, 64, kGlobal); // even of equal values
  expectRace("st.global.b32 [%a0], 1;", 2, 1, kGlobal);
  expectNone(own + "ld.global.b32 %r1, [%rd2]; ld.global.b32 %r1, [%rd1];", 4, 64);
  expectRace(own + "ld.global.b32 %r1, [%rd2]; st.global.b32 [%rd1], %r1;", 4, 64, kGlobal);
  expectRace(own + "st.global.b32 [%rd1], 1; xor.b32 %r2, %i, 64; mad.wide.u32 %rd3, %r2, 4, %a0; "
                   "ld.global.b32 %r1, [%rd3];",
             2, 64, kGlobal);
  expectNone(own + "st.global.b32 [%rd1], 1; bar.sync 0; ld.global.b32 %r1, [%rd1];", 2, 64);
}

TEST_F(RaceTest, AtomicsOfGlobalMemory) {
  expectNone("red.global.add.u32 [%a0], 1;", 4, 64);
  expectRace("red.global.add.u32 [%a0], 1; ld.global.b32 %r1, [%a0];", 4, 64, kGlobal);
  expectRace("mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 1; @%p1 st.global.b32 [%a0], 1; @!%p1 "
             "red.global.add.u32 [%a0], 1;",
             2, 1, kGlobal);
}

TEST_F(RaceTest, BlocksThatShareAWord) {
  // One f16 each.
  expectNone("mad.wide.u32 %rd1, %i, 2, %a0; st.global.b16 [%rd1], %h1; ld.global.b16 %h2, [%rd1];", 8, 1);
  expectNone("cvt.u64.u32 %rd1, %i; add.u64 %rd1, %rd1, %a0; st.global.b8 [%rd1], %h1;", 8, 3);
  expectRace("mad.wide.u32 %rd1, %i, 2, %a0; st.global.b16 [%rd1], %h1; ld.global.b32 %r2, [%a0];", 2, 1,
             kGlobal);
}

TEST_F(RaceTest, LaunchesFollowEachOther) {
  // The same memory in more launches than cells can tell apart.
  ortc_cu_pointer memory = upload(std::vector<uint32_t>(64));
  ortc_cu_kernel k = kernel(
      makeKernel({"b64"}, "mov.u32 %r1, %ctaid.x; xor.b32 %r1, %r1, 1; mov.u32 %r2, %ntid.x; "
                          "mad.lo.u32 %r3, %r1, %r2, %tid; mad.wide.u32 %rd1, %r3, 4, %a0; "
                          "ld.global.b32 %r4, [%rd1]; add.u32 %r4, %r4, 1; st.global.b32 [%rd1], %r4;"));
  ortc_cu_kernel other =
      kernel(makeKernel({"b64"}, "mad.wide.u32 %rd1, %i, 4, %a0; ld.global.b32 %r4, [%rd1]; "
                                 "add.u32 %r4, %r4, 1; st.global.b32 [%rd1], %r4;"));
  for (int launch = 0; launch < 600; ++launch)
    run(launch % 2 ? k : other, 2, 32, {memory});
  for (uint32_t value : download<uint32_t>(memory, 64))
    EXPECT_EQ(value, 600u);
}

} // namespace
} // namespace ortc::emulator::test
