// Counts of kernels whose numbers are known by hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include "test/gpu/emulator/tests/Emulator.h"

namespace ortc::emulator::test {
namespace {

class CountTest : public EmulatorTest {
protected:
  CountTest() {
    newFile();
    set("THREADS", "2");
  }
  ~CountTest() override { std::filesystem::remove(path); }

  /// A file that this process has not used yet.
  void newFile() {
    static int number = 0;
    std::filesystem::remove(path);
    path = std::filesystem::temp_directory_path() /
           ("ortc-counts-" + std::to_string(getpid()) + "-" + std::to_string(++number) + ".json");
    set("COUNT", path);
  }
  /// The rows that were written since the context began.
  std::vector<std::string> rows() {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
      lines.push_back(line);
    if (lines.size() < 2 || lines.front() != "[") {
      ADD_FAILURE() << path << " is no array";
      return {""};
    }
    EXPECT_EQ(lines.back(), "]");
    return {lines.begin() + 1, lines.end() - 1};
  }
  /// The row of the only launch.
  std::string count(const std::string &body, Dimensions grid, Dimensions block, unsigned sharedBytes = 0,
                    const std::string &declarations = "") {
    close();
    newFile();
    ortc_cu_pointer memory = upload(std::vector<uint32_t>(1 << 16, 1));
    run(kernel(makeKernel({"b64"}, body, declarations)), grid, block, {memory}, sharedBytes);
    const std::vector<std::string> all = rows();
    EXPECT_EQ(all.size(), 1u);
    return all[0];
  }
  /// The number of a field, behind the names that lead to it: -1 where it is not.
  static double field(const std::string &row, std::initializer_list<const char *> names) {
    size_t at = 0;
    for (const char *name : names) {
      at = row.find("\"" + std::string(name) + "\": ", at);
      if (at == row.npos)
        return -1;
      at += std::strlen(name) + 4;
    }
    return std::atof(row.c_str() + at);
  }
  static std::string shared(const std::string &body) {
    return ".shared .align 128 .b8 s[8192];\nmov.b32 %r30, s;\n" + body;
  }

  std::string path;
};

TEST_F(CountTest, ClassesOfInstructions) {
  // 40 threads are two warps, the second of 8 lanes.
  const std::string row = count(R"(
mov.b32 %f1, 0f3F800000; mov.b32 %f2, %f1;
add.rn.f32 %f3, %f1, %f2; sub.f32 %f3, %f1, %f2; mul.f32 %f3, %f1, %f2;
fma.rn.f32 %f3, %f1, %f2, %f3; fma.rn.f32 %f3, %f1, %f2, %f3; mad.rn.f32 %f3, %f1, %f2, %f3;
max.f32 %f4, %f1, %f2;
ex2.approx.f32 %f5, %f1; rcp.approx.ftz.f32 %f5, %f1; div.rn.f32 %f5, %f1, %f2;
cvt.rn.bf16x2.f32 %r1, %f1, %f2; fma.rn.bf16x2 %r2, %r1, %r1, %r1;
setp.lt.f32 %p1, %f1, %f2; selp.b32 %r3, 1, 2, %p1;
shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1; bar.sync 0; bar.warp.sync -1; bar.sync 0;
add.u32 %r5, %r3, 1; shl.b32 %r5, %r5, 2; mad.lo.u32 %r5, %r5, %r3, %r3;
@%p1 add.u32 %r5, %r5, 1;
setp.lt.u32 %p2, %tid, 4;
@%p2 bra $end;
add.f64 %d1, %d2, %d3;
$end:)",
                                3, 40);
  const std::pair<const char *, int> expected[] = {
      {"f32.add", 2}, {"f32.mul", 1},      {"f32.fma", 3}, {"f32.other", 1}, {"special", 2},
      {"divide", 1},  {"convert", 1},      {"half", 1},    {"compare", 3},   {"shuffle", 1},
      {"barrier", 2}, {"barrier.warp", 1}, {"f64", 1},     {"branch", 2},    {"move", 5},
      {"integer", 5}, {"load.param.64", 1}};
  double all = 0;
  for (const auto &[name, each] : expected) {
    EXPECT_EQ(field(row, {"instructions", name}), each * 6) << name << "\n" << row;
    all += each * 6;
  }
  EXPECT_EQ(field(row, {"warp_instructions"}), all) << row;
  EXPECT_EQ(field(row, {"blocks_run"}), 3);
  EXPECT_NEAR(field(row, {"active_lanes"}), 40.0 / 64, 0.08) << row;
}

TEST_F(CountTest, ActiveLanes) {
  const std::string row = count("setp.lt.u32 %p1, %tid, 8;\n@%p1 add.u32 %r1, %r2, 1;", 1, 32);
  // Of 8 instructions: all lanes but in the predicated one.
  const double instructions = field(row, {"warp_instructions"});
  EXPECT_NEAR(field(row, {"active_lanes"}), (32 * (instructions - 1) + 8) / (32 * instructions), 1e-6) << row;
}

TEST_F(CountTest, SectorsOfGlobalMemory) {
  auto counted = [&](const std::string &access, const std::string &place, const char *name) {
    const std::string row = count(place + access, 1, 32);
    return std::vector<double>{field(row, {"global", name, "bytes"}), field(row, {"global", name, "sectors"}),
                               field(row, {"global", name, "ideal_sectors"}),
                               field(row, {"distinct_bytes_read"}), field(row, {"distinct_sectors_read"})};
  };
  const std::string load = "ld.global.b32 %r1, [%rd1];";
  using V = std::vector<double>;
  EXPECT_EQ(counted(load, "mad.wide.u32 %rd1, %tid, 4, %a0;", "load.global.32"), (V{128, 4, 4, 128, 4}));
  EXPECT_EQ(counted(load, "mad.wide.u32 %rd1, %tid, 8, %a0;", "load.global.32"), (V{128, 8, 4, 128, 8}));
  EXPECT_EQ(counted(load, "mad.wide.u32 %rd1, %tid, 64, %a0;", "load.global.32"), (V{128, 32, 4, 128, 32}));
  EXPECT_EQ(counted(load, "mov.b64 %rd1, %a0;", "load.global.32"), (V{128, 1, 1, 4, 1}));
  // Shifted by 16 bytes: one sector more.
  EXPECT_EQ(counted(load, "mad.wide.u32 %rd1, %tid, 4, %a0; add.u64 %rd1, %rd1, 16;", "load.global.32"),
            (V{128, 5, 4, 128, 5}));
  // Lanes the other way round.
  EXPECT_EQ(counted(load, "sub.u32 %r2, 31, %tid; mad.wide.u32 %rd1, %r2, 4, %a0;", "load.global.32"),
            (V{128, 4, 4, 128, 4}));
  EXPECT_EQ(counted("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];", "mad.wide.u32 %rd1, %tid, 16, %a0;",
                    "load.global.128"),
            (V{512, 16, 16, 512, 16}));
  EXPECT_EQ(counted("ld.global.b16 %h1, [%rd1];", "mad.wide.u32 %rd1, %tid, 2, %a0;", "load.global.16"),
            (V{64, 2, 2, 64, 2}));
  EXPECT_EQ(counted("ld.b32 %r1, [%rd1];", "mad.wide.u32 %rd1, %tid, 4, %a0;", "load.generic.32"),
            (V{128, 4, 4, 128, 4}));
  EXPECT_EQ(counted("@%p1 ld.global.b32 %r1, [%rd1];",
                    "mad.wide.u32 %rd1, %tid, 4, %a0; setp.lt.u32 %p1, %tid, 8;", "load.global.32"),
            (V{32, 1, 1, 32, 1}));
}

TEST_F(CountTest, DistinctBytesOfALaunch) {
  // Each block reads the same 128 bytes and 128 of its own, twice, and writes the latter.
  const std::string body =
      "mad.wide.u32 %rd1, %tid, 4, %a0; mad.wide.u32 %rd2, %i, 4, %a0; ld.global.b32 %r1, [%rd1];\n"
      "ld.global.b32 %r2, [%rd2+4096]; ld.global.b32 %r2, [%rd2+4096];\n"
      "st.global.b32 [%rd2+4096], %r1;";
  for (const char *order : {"forward", "random:5"}) {
    set("ORDER", order);
    const std::string row = count(body, 6, 32);
    EXPECT_EQ(field(row, {"distinct_bytes_read"}), 128 * 7) << row;
    EXPECT_EQ(field(row, {"distinct_bytes_written"}), 128 * 6);
    EXPECT_EQ(field(row, {"distinct_sectors_written"}), 4 * 6);
    EXPECT_EQ(field(row, {"block_bytes_read"}), 256);
    EXPECT_EQ(field(row, {"block_bytes_written"}), 128);
    EXPECT_EQ(field(row, {"global", "load.global.32", "sectors"}), 3 * 6 * 4);
  }
  // Atomics read and write.
  const std::string row = count("red.global.add.u32 [%a0], 1;", 2, 32);
  EXPECT_EQ(field(row, {"distinct_bytes_read"}), 4);
  EXPECT_EQ(field(row, {"distinct_bytes_written"}), 4);
  EXPECT_EQ(field(row, {"instructions", "atomic.global"}), 2);
}

TEST_F(CountTest, BankConflicts) {
  auto counted = [&](const std::string &place, const std::string &access, const char *name) {
    const std::string row = count(shared(place + "\nadd.u32 %r1, %r1, %r30;\n" + access), 1, 32);
    return std::pair<double, double>{field(row, {"shared_accesses", name, "wavefronts"}),
                                     field(row, {"shared_accesses", name, "ideal_wavefronts"})};
  };
  using P = std::pair<double, double>;
  const std::string store = "st.shared.b32 [%r1], %tid;", wide = "st.shared.v2.b32 [%r1], {%r2, %r3};",
                    widest = "st.shared.v4.b32 [%r1], {%r2, %r3, %r4, %r5};";
  EXPECT_EQ(counted("shl.b32 %r1, %tid, 2;", store, "store.shared.32"), (P{1, 1}));
  EXPECT_EQ(counted("shl.b32 %r1, %tid, 3;", store, "store.shared.32"), (P{2, 1}));
  EXPECT_EQ(counted("shl.b32 %r1, %tid, 7;", store, "store.shared.32"), (P{32, 1}));
  EXPECT_EQ(counted("mul.lo.u32 %r1, %tid, 132;", store, "store.shared.32"), (P{1, 1})); // padded rows
  EXPECT_EQ(counted("shl.b32 %r1, %tid, 1;", "st.shared.b16 [%r1], %h1;", "store.shared.16"), (P{1, 1}));
  EXPECT_EQ(counted("shl.b32 %r1, %tid, 3;", wide, "store.shared.64"), (P{2, 2}));
  EXPECT_EQ(counted("shl.b32 %r1, %tid, 4;", wide, "store.shared.64"), (P{4, 2}));
  EXPECT_EQ(counted("shl.b32 %r1, %tid, 4;", widest, "store.shared.128"), (P{4, 4}));
  EXPECT_EQ(counted("shl.b32 %r1, %tid, 5;", widest, "store.shared.128"), (P{8, 4}));
  EXPECT_EQ(counted("shl.b32 %r1, %tid, 7;", widest, "store.shared.128"), (P{32, 4}));
  // Loads of one word, of neighbours' words, of pairs.
  auto loaded = [&](const std::string &place, const std::string &access, const char *name) {
    return counted(
        "shl.b32 %r6, %tid, 4; add.u32 %r6, %r6, %r30; st.shared.v4.b32 [%r6], {%r2, %r3, %r4, %r5}; "
        "bar.sync 0; " +
            place,
        access, name);
  };
  const std::string loadWide = "ld.shared.v2.b32 {%r2, %r3}, [%r1];",
                    loadWidest = "ld.shared.v4.b32 {%r2, %r3, %r4, %r5}, [%r1];";
  EXPECT_EQ(loaded("mov.b32 %r1, 0;", "ld.shared.b32 %r2, [%r1];", "load.shared.32"), (P{1, 1}));
  EXPECT_EQ(
      loaded("and.b32 %r1, %tid, 1; shl.b32 %r1, %r1, 7;", "ld.shared.b32 %r2, [%r1];", "load.shared.32"),
      (P{2, 1}));
  EXPECT_EQ(loaded("shl.b32 %r1, %tid, 3;", loadWide, "load.shared.64"), (P{2, 2}));
  EXPECT_EQ(loaded("mov.b32 %r1, 0;", loadWide, "load.shared.64"), (P{1, 1}));
  EXPECT_EQ(loaded("shl.b32 %r1, %tid, 4;", loadWidest, "load.shared.128"), (P{4, 4}));
  EXPECT_EQ(loaded("shr.u32 %r1, %tid, 1; shl.b32 %r1, %r1, 4;", loadWidest, "load.shared.128"), (P{2, 2}));
  EXPECT_EQ(loaded("shr.u32 %r1, %tid, 2; shl.b32 %r1, %r1, 1; and.b32 %r7, %tid, 1; or.b32 %r1, %r1, %r7; "
                   "shl.b32 %r1, %r1, 4;",
                   loadWidest, "load.shared.128"),
            (P{2, 2}));
  // Four addresses by eight lanes each, but not by neighbours.
  EXPECT_EQ(loaded("and.b32 %r1, %tid, 3; shl.b32 %r1, %r1, 4;", loadWidest, "load.shared.128"), (P{4, 4}));
}

TEST_F(CountTest, TilesAndTheirLoop) {
  // Rows of 32 bytes: two rows of a matrix share banks every 128 bytes, so four passes hold eight rows of 16 bytes
  // at a stride of 128, and two at 32; a loop of five products.
  const std::string body = shared(R"(
mad.lo.u32 %r1, %tid, 16, %r30;
mad.wide.u32 %rd1, %tid, 16, %a0;
cp.async.cg.shared.global [%r1], [%rd1], 16;
setp.lt.u32 %p2, %tid, 8;
selp.b32 %r9, 16, 0, %p2;
cp.async.cg.shared.global [%r1+512], [%rd1], 16, %r9;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
shl.b32 %r2, %tid, 5; and.b32 %r2, %r2, 255; add.u32 %r2, %r2, %r30;
mov.b32 %r8, 0;
fma.rn.f32 %f9, %f9, %f9, %f9;
$loop:
ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10, %r11}, [%r1];
ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r12, %r13}, [%r2];
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r10, %r11, %r10, %r11}, {%r12, %r13}, {%f1, %f2, %f3, %f4};
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r10, %r11, %r10, %r11}, {%r12, %r13}, {%f1, %f2, %f3, %f4};
add.u32 %r8, %r8, 1;
setp.eq.u32 %p1, %r8, 5;
@%p1 bra $out;
and.b32 %r7, %r8, 1;
setp.eq.u32 %p3, %r7, 0;
@%p3 bra $even;
$back:
bra.uni $loop;
$even:
add.f32 %f8, %f8, %f8;
bra.uni $back;
$out:)");
  const std::string row = count(body, 2, 32);
  EXPECT_EQ(field(row, {"instructions", "cp.async.16"}), 4);
  EXPECT_EQ(field(row, {"instructions", "cp.async.group"}), 4);
  EXPECT_EQ(field(row, {"global", "cp.async.16", "bytes"}), 2 * (512 + 128));
  EXPECT_EQ(field(row, {"global", "cp.async.16", "sectors"}), 2 * (16 + 4));
  EXPECT_EQ(field(row, {"distinct_bytes_read"}), 512);
  EXPECT_EQ(field(row, {"shared_accesses", "cp.async.16", "wavefronts"}), 2 * 8);
  // Eight rows at a stride of 32 bytes need two passes: 128 bytes behind, the banks are the same.
  EXPECT_EQ(field(row, {"shared_accesses", "ldmatrix.x2", "wavefronts"}), 2 * 5 * 2);
  EXPECT_EQ(field(row, {"shared_accesses", "ldmatrix.x2.trans", "wavefronts"}), 2 * 5 * 4);
  EXPECT_EQ(field(row, {"shared_accesses", "ldmatrix.x2.trans", "ideal_wavefronts"}), 2 * 5 * 2);
  // The loop has the block behind its end, too.
  EXPECT_EQ(field(row, {"loop", "iterations"}), 2 * 5) << row;
  EXPECT_EQ(field(row, {"loop", "mma.m16n8k16.f32.bf16"}), 2 * 5);
  EXPECT_EQ(field(row, {"loop", "mma.m16n8k8.f32.tf32"}), 2 * 5);
  EXPECT_EQ(field(row, {"loop", "f32.add"}), 2 * 2);
  EXPECT_EQ(field(row, {"loop", "integer"}), 2 * (5 + 4));
  EXPECT_EQ(field(row, {"loop", "f32.fma"}), -1);
  EXPECT_EQ(field(row, {"loop", "shared_accesses", "ldmatrix.x2", "wavefronts"}), 2 * 5 * 2);
}

TEST_F(CountTest, LinesOfThePtx) {
  set("COUNT_LINES", "1");
  const std::string row =
      count("add.u32 %r1, %r1, 1;\nmad.wide.u32 %rd1, %tid, 64, %a0;\nld.global.b32 %r2, [%rd1];", 2, 64);
  EXPECT_NE(row.find("[18, \"integer\", 4, 0, 0]"), row.npos) << row;
  EXPECT_NE(row.find("[20, \"load.global.32\", 4, 128, 0]"), row.npos) << row;
}

TEST_F(CountTest, SamplesAreScaled) {
  // As in DistinctBytesOfALaunch, and an index from memory that leads anywhere.
  const std::string body =
      "mad.wide.u32 %rd1, %tid, 4, %a0; mad.wide.u32 %rd2, %i, 4, %a0; ld.global.b32 %r1, [%rd1];\n"
      "ld.global.b32 %r2, [%rd2+4096]; st.global.b32 [%rd2+4096], %r1;";
  set("SAMPLE", "4");
  const std::string row = count(body, 64, 32);
  EXPECT_EQ(field(row, {"blocks_run"}), 4);
  EXPECT_EQ(field(row, {"instructions", "load.global.32"}), 128);
  EXPECT_EQ(field(row, {"distinct_bytes_written"}), 64 * 128); // each by one block
  EXPECT_EQ(field(row, {"block_bytes_read"}), 256);
  // Blocks 0, 25, 35 and 61 run: from the first to the last byte there are 4096 + 62 * 128, and two blocks follow.
  EXPECT_EQ(field(row, {"distinct_bytes_read"}), std::round((4096 + 62 * 128) * 64.0 / 62));
  // Eight blocks share each of eight rows, of which these four blocks see different ones.
  const std::string shared =
      count("mov.u32 %r1, %ctaid.x; shr.u32 %r1, %r1, 3; mad.lo.u32 %r1, %r1, 32, %tid;\n"
            "mad.wide.u32 %rd1, %r1, 4, %a0; ld.global.b32 %r2, [%rd1];",
            64, 32);
  EXPECT_EQ(field(shared, {"distinct_bytes_read"}), std::round(8 * 128 * 64.0 / 62));
  const std::string own = count("ld.global.b32 %r1, [%a0];", 64, 32);
  EXPECT_EQ(field(own, {"distinct_bytes_read"}), 4); // by all
  // Nobody wrote what is read, and a launch that fails does not stop those behind it.
  close();
  ortc_cu_pointer memory = allocate(4096);
  ortc_cu_kernel k =
      kernel(makeKernel({"b64", "b32"}, "mad.wide.u32 %rd1, %a1, 4, %a0; ld.global.b32 %r1, [%rd1];"));
  testing::internal::CaptureStderr();
  run(k, 64, 32, {memory, 1 << 20});
  run(k, 64, 32, {memory, 1 << 20});
  const std::string said = testing::internal::GetCapturedStderr();
  run(k, 64, 32, {memory, 0});
  EXPECT_NE(said.find("of which some blocks are run stopped: kernel 'k'"), said.npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  const std::vector<std::string> all = rows();
  ASSERT_GE(all.size(), 3u);
  EXPECT_NE(all[all.size() - 3].find("\"stopped\": \"kernel 'k' block ("), std::string::npos);
  EXPECT_EQ(all.back().find("stopped"), std::string::npos);
  EXPECT_EQ(field(all.back(), {"blocks_run"}), 4);
}

} // namespace
} // namespace ortc::emulator::test
