// Instructions of kernels that keep tiles in shared memory: cp.async, ldmatrix, stmatrix, and mutants of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <numeric>
#include <sstream>

#include "test/gpu/emulator/tests/Emulator.h"

namespace ortc::emulator::test {
namespace {

class TileTest : public EmulatorTest {
protected:
  /// 16-bit numbers from `first`.
  static std::vector<uint16_t> numbers(size_t count, uint16_t first = 0) {
    std::vector<uint16_t> values(count);
    std::iota(values.begin(), values.end(), first);
    return values;
  }
};

TEST_F(TileTest, CopiesFillWithZerosWhatTheSourceLacks) {
  for (int bytes : {4, 8, 16})
    for (int given = 0; given <= bytes; ++given) {
      const std::string size = std::to_string(bytes);
      // The source ends where the memory does.
      std::vector<uint8_t> data(size_t(given), 0);
      std::iota(data.begin(), data.end(), uint8_t(1));
      data.resize(size_t(std::max(given, 1)));
      ortc_cu_pointer from = upload(data), to = allocate(32);
      run(kernel(makeKernel({"b64", "b64", "b32"},
                            ".shared .align 16 .b8 s[32];\nmov.b32 %r1, s;\ncp.async." +
                                std::string(bytes == 16 ? "cg" : "ca") + ".shared.global [%r1+16], [%a0], " +
                                size +
                                ", %a2;\ncp.async.wait_all;\nld.shared.b32 %r2, [s+16];\n"
                                "st.global.b32 [%a1], %r2;\nld.shared.b32 %r2, [s+" +
                                std::to_string(12 + bytes) + "];\nst.global.b32 [%a1+4], %r2;")),
          1, 1, {from, to, given});
      const std::vector<uint8_t> result = download<uint8_t>(to, 8);
      for (int k = 0; k < 8; ++k) {
        const int place = k < 4 ? k : bytes - 8 + k;
        EXPECT_EQ(result[size_t(k)], place < given ? place + 1 : 0) << bytes << " " << given << " " << k;
      }
    }
  // Neither too many bytes nor a misaligned source.
  const std::string body = ".shared .align 16 .b8 s[16];\nmov.b32 %r1, s;\n"
                           "cp.async.cg.shared.global [%r1], [%a0+4], 16, %a1;";
  ortc_cu_pointer from = upload(std::vector<uint8_t>(64, 1));
  run(kernel(makeKernel({"b64", "b32"}, body)), 1, 1, {from, 0});
  EXPECT_NE(fail(ORTC_CU_MISALIGNED_ADDRESS, kernel(makeKernel({"b64", "b32"}, body)), 1, 1, {from, 8})
                .find("misaligned"),
            std::string::npos);
  close();
  from = upload(std::vector<uint8_t>(64, 1));
  EXPECT_NE(fail(ORTC_CU_LAUNCH_FAILED, kernel(makeKernel({"b64", "b32"}, body)), 1, 1, {from, 17})
                .find("more than it writes"),
            std::string::npos);
}

TEST_F(TileTest, MatricesAndTheirTransposes) {
  // Four matrices of 8 rows of 8 numbers, from dynamic shared memory; lane l has elements 2l and 2l + 1.
  for (const char *form : {"", ".trans"})
    for (int count : {1, 2, 4}) {
      const std::string x = "m8n8.x" + std::to_string(count) + form + ".shared.b16";
      const std::string list = count == 1 ? "{%r1}" : count == 2 ? "{%r1, %r2}" : "{%r1, %r2, %r3, %r4}";
      std::string body =
          "mov.b32 %r9, m;\nmad.lo.u32 %r8, %tid, 16, %r9;\nmad.wide.u32 %rd1, %tid, 16, %a0;\n"
          "cp.async.cg.shared.global [%r8], [%rd1], 16;\ncp.async.commit_group;\n"
          "cp.async.wait_group 0;\nbar.warp.sync -1;\nldmatrix.sync.aligned." +
          x + " " + list + ", [%r8];\nstmatrix.sync.aligned." + x + " [%r8+512], " + list +
          ";\nbar.warp.sync -1;\nmad.wide.u32 %rd2, %tid, 4, %a1;\n";
      for (int k = 1; k <= count; ++k)
        body += "st.global.b32 [%rd2+" + std::to_string(128 * (k - 1)) + "], %r" + std::to_string(k) +
                ";\nld.shared.b32 %r7, [%r8+512];\n";
      ortc_cu_pointer from = upload(numbers(256)), to = allocate(512);
      const std::string ptx = makeKernel({"b64", "b64"}, body, ".extern .shared .align 128 .b8 m[];");
      if (count == 4) // every row is written back
        run(kernel(ptx), 1, 32, {from, to}, 1024);
      else
        fail(ORTC_CU_LAUNCH_FAILED, kernel(ptx), 1, 32, {from, to}, 1024); // lane 31's row is not
      if (count < 4) {
        close();
        continue;
      }
      const std::vector<uint16_t> result = download<uint16_t>(to, size_t(count) * 64);
      for (int m = 0; m < count; ++m)
        for (int row = 0; row < 8; ++row)
          for (int column = 0; column < 8; ++column)
            EXPECT_EQ(result[size_t(64 * m + 8 * row + column)],
                      *form ? 64 * m + 8 * column + row : 64 * m + 8 * row + column);
    }
}

TEST_F(TileTest, SharedMemoryBeyond48KiB) {
  const std::string ptx = makeKernel({"b64"}, R"(
mov.b32 %r1, m; mad.lo.u32 %r1, %tid, 1024, %r1;
st.shared.b32 [%r1], %tid; bar.sync 0; ld.shared.b32 %r2, [%r1];
mad.wide.u32 %rd1, %tid, 4, %a0; st.global.b32 [%rd1], %r2;)",
                                     ".extern .shared .align 128 .b8 m[];");
  ortc_cu_pointer to = allocate(160 * 4);
  ortc_cu_kernel k = kernel(ptx);
  EXPECT_NE(fail(ORTC_CU_INVALID_VALUE, k, 1, 160, {to}, 160 << 10).find("dynamic shared memory"),
            std::string::npos);
  ASSERT_EQ(driver.cuFuncSetAttribute(k, ORTC_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 160 << 10),
            ORTC_CU_SUCCESS);
  run(k, 1, 160, {to}, 160 << 10);
  EXPECT_EQ(download<uint32_t>(to, 160)[159], 159u);
}

/// Tiles of 64 rows of 32 bytes go through two stages. Thread t copies half t % 2 of rows t / 2 to a place that a
/// xor chooses; each warp loads four matrices of rows that the other warp copied, adds them up in a product with
/// ones and twos, and stores its sums.
const char kPipeline[] = R"(
mov.b32 %r1, m;
shr.u32 %r2, %tid, 1;
and.b32 %r3, %tid, 1;
shr.u32 %r4, %r2, 2;
and.b32 %r4, %r4, 1;
xor.b32 %r5, %r3, %r4;
shl.b32 %r6, %r2, 5;
mad.lo.u32 %r6, %r5, 16, %r6;
add.u32 %r6, %r6, %r1;
mad.wide.u32 %rd1, %tid, 16, %a0;
xor.b32 %r7, %tid, 32;
and.b32 %r8, %r7, 47;
and.b32 %r11, %r8, 15;
shr.u32 %r9, %r7, 5;
shl.b32 %r9, %r9, 4;
add.u32 %r11, %r11, %r9;
shr.u32 %r10, %tid, 4;
and.b32 %r10, %r10, 1;
shr.u32 %r12, %r11, 2;
and.b32 %r12, %r12, 1;
xor.b32 %r13, %r10, %r12;
shl.b32 %r14, %r11, 5;
mad.lo.u32 %r14, %r13, 16, %r14;
add.u32 %r14, %r14, %r1;
mov.b32 %f1, 0f00000000;
mov.b32 %f2, 0f00000000;
mov.b32 %f3, 0f00000000;
mov.b32 %f4, 0f00000000;
mov.b32 %r20, 0;
mov.b32 %r25, 0x3f803f80;
mov.b32 %r26, 0x40004000;
cp.async.cg.shared.global [%r6], [%rd1], 16;
cp.async.commit_group;
$loop:
add.u32 %r21, %r20, 1;
and.b32 %r22, %r21, 1;
mad.lo.u32 %r23, %r22, 1024, %r6;
mad.wide.u32 %rd2, %r21, 1024, %rd1;
setp.lt.u32 %p1, %r21, 6;
@%p1 cp.async.cg.shared.global [%r23], [%rd2], 16;
cp.async.commit_group;
cp.async.wait_group 1;
bar.sync 0;
and.b32 %r24, %r20, 1;
mad.lo.u32 %r24, %r24, 1024, %r14;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r30, %r31, %r32, %r33}, [%r24];
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r30, %r31, %r32, %r33}, {%r25, %r26}, {%f1, %f2, %f3, %f4};
bar.sync 0;
mov.b32 %r20, %r21;
setp.lt.u32 %p2, %r20, 6;
@%p2 bra $loop;
mad.wide.u32 %rd3, %tid, 16, %a1;
st.global.v4.b32 [%rd3], {%f1, %f2, %f3, %f4};
)";

TEST_F(TileTest, EveryMutantOfAPipelineIsNoticed) {
  const std::string ptx = makeKernel({"b64", "b64"}, kPipeline, ".extern .shared .align 128 .b8 m[];");
  std::vector<uint16_t> values;
  for (uint32_t k = 0; k < 6 * 1024 / 2; ++k)
    values.push_back(uint16_t(0x3f80 + k * 37 % 251)); // bf16 from 1 to 8
  auto play = [&](const std::string &mutation, std::string *said) {
    set("MUTATE", mutation);
    ortc_cu_pointer from = upload(values), to = allocate(1024);
    ortc_cu_kernel k = kernel(ptx);
    testing::internal::CaptureStderr();
    const ortc_cu_result result = launch(k, 1, 64, {from, to}, 2048);
    std::vector<uint32_t> bits(256);
    if (result == ORTC_CU_SUCCESS)
      bits = download<uint32_t>(to, 256);
    *said = testing::internal::GetCapturedStderr();
    close();
    return bits;
  };
  std::string said;
  const std::vector<uint32_t> wanted = play("", &said);
  ASSERT_EQ(said, "");
  for (uint32_t warp = 0; warp < 2; ++warp) { // sums of rows of the other warp: exact, as they are small
    const uint32_t row = (1 - warp) * 16 + 5;
    float sum = 0;
    for (uint32_t tile = 0; tile < 6; ++tile)
      for (uint32_t k = 0; k < 16; ++k) {
        const uint32_t bits = uint32_t(values[tile * 512 + row * 16 + k]) << 16;
        float value;
        std::memcpy(&value, &bits, 4);
        sum += k < 8 ? value : 2 * value;
      }
    float result;
    std::memcpy(&result, &wanted[(warp * 32 + 5 * 4) * 4], 4);
    EXPECT_EQ(result, sum);
  }
  const std::pair<const char *, const char *> mutants[] = {
      {"k:cp.async.wait_group:1", "cp.async still copies"},
      {"k:cp.async.wait_group:1:1", "cp.async still copies"},
      {"k:cp.async.commit_group:1", "cp.async still copies"},
      {"k:cp.async.commit_group:2", "cp.async still copies"},
      {"k:barrier:1", "race in shared memory|still copies|never written"},
      {"k:barrier:2", "race in shared memory|still copies"},
      {"k:cp.async.cg:2:1024", "out of bounds|still copies|race"}, // the stage that is read
      {"k:cp.async.cg:1:16", "never written|race"},
      {"k:cp.async.cg:2:source:16", ""},
      {"k:ldmatrix:1:32", ""},
      {"k:ldmatrix:1:1024", "out of bounds|never written|still copies"},
      {"k:xor:1:pass", ""}, // swizzles of the stores and of the loads
      {"k:xor.b32:3:pass", ""},
      {"k:mma:1", ""},
  };
  for (const auto &[mutant, parts] : mutants)
    for (const char *order : {"forward", "reverse"}) {
      set("ORDER", order);
      const std::vector<uint32_t> bits = play(mutant, &said);
      EXPECT_NE(bits, wanted) << mutant << " survives";
      bool isSaid = !*parts;
      std::istringstream list(parts);
      for (std::string part; std::getline(list, part, '|');)
        isSaid |= said.find(part) != said.npos;
      EXPECT_TRUE(isSaid) << mutant << ": " << said;
    }
}

} // namespace
} // namespace ortc::emulator::test
