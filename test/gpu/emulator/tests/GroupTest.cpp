// wgmma: layouts of tiles, sums to the bit, and what must stand between writes, products and reads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <random>
#include <sstream>

#include "test/gpu/emulator/tests/Emulator.h"

namespace ortc::emulator::test {
namespace {

/// m64nN of depth 16 * steps: A from shared memory or registers.
struct Shape {
  int columns;
  int swizzle; ///< of the descriptor: 0 none, 1: 128 bytes, 2: 64, 3: 32
  bool isOfRegisters = false;
  const char *type = "bf16";
  bool isFirstTurned = false, isSecondTurned = false; ///< rows are neighbours, not steps
  int rowBytes() const { return swizzle ? 256 >> swizzle : 32; }
  int depth() const { return rowBytes() / 2; }
};

class GroupTest : public EmulatorTest {
protected:
  /// 16-bit numbers of `rows` rows, as a tile of shared memory.
  static std::vector<uint16_t> layOut(const Shape &shape, const std::vector<uint16_t> &values, int rows,
                                      bool isTurned) {
    std::vector<uint16_t> image(size_t(rows * shape.depth()));
    if (isTurned) {
      // Panels of so many rows; in each a line for each step, whose chunks are exchanged.
      const int panel = shape.rowBytes() / 2, chunks = shape.swizzle ? panel / 8 : 1;
      for (int row = 0; row < rows; ++row)
        for (int k = 0; k < shape.depth(); ++k) {
          const int chunk = row / 8 % chunks, line = k * shape.rowBytes() / 128 % chunks;
          const int place = shape.swizzle == 0 ? row / 8 * 64 + k / 8 * rows * 8 + k % 8 * 8 + row % 8
                                               : row / panel * panel * shape.depth() + k * panel +
                                                     (chunk ^ line) * 8 + row % 8;
          image[size_t(place)] = values[size_t(row * shape.depth() + k)];
        }
      return image;
    }
    for (int row = 0; row < rows; ++row)
      for (int k = 0; k < shape.depth(); ++k) {
        const int chunk = k / 8, chunks = shape.rowBytes() / 16;
        // The rows that share a pattern are those that 128 bytes hold, eight patterns at most.
        const int pattern = row * shape.rowBytes() / 128 % chunks;
        const int place = shape.swizzle == 0 ? row / 8 * 128 + chunk * 64 + row % 8 * 8 + k % 8
                                             : row * shape.depth() + (chunk ^ pattern) * 8 + k % 8;
        image[size_t(place)] = values[size_t(row * shape.depth() + k)];
      }
    return image;
  }

  static std::string registers(const char *name, int count) {
    std::string list = "{";
    for (int k = 0; k < count; ++k)
      list += (k ? std::string(", ") + name : name) + std::to_string(k);
    return list + "}";
  }

  /// Copies the image of both tiles (a0) to shared memory, multiplies, and stores the sums (a1); registers of A
  /// come from a2. Sums begin with `first`.
  static std::string makeProduct(const Shape &shape, const std::string &first = "0f00000000",
                                 bool addsFirst = true) {
    const int sums = shape.columns / 2, bytesA = 64 * shape.rowBytes(),
              bytes = bytesA + shape.columns * shape.rowBytes();
    std::ostringstream body;
    body << ".reg .f32 %s<128>;\nmov.b32 %r1, m;\nmad.lo.u32 %r2, %tid, 16, %r1;\nmad.wide.u32 %rd1, %tid, "
            "16, %a0;\n"
         << "setp.ne.b32 %p1, 1, 0;\n";
    for (int at = 0; at < bytes; at += 2048) {
      body << "setp.lt.u32 %p2, %tid, " << (bytes - at) / 16 << ";\n@%p2 cp.async.cg.shared.global [%r2+"
           << at << "], [%rd1+" << at << "], 16;\n";
    }
    body << "cp.async.commit_group;\ncp.async.wait_group 0;\nfence.proxy.async;\nbar.sync 0;\n"
         << "cvt.u64.u32 %rd2, %r1;\nshr.u64 %rd2, %rd2, 4;\n";
    // Strides: along the depth from 8 rows to the next, and with no swizzle from 8 steps to the next; turned from
    // 8 steps to the next, and from panel to panel; with no swizzle the other way round.
    auto layout = [&](bool isTurned, int rows) {
      int stride = shape.rowBytes() * 8, leading = 128;
      if (isTurned && shape.swizzle == 0)
        stride = 128, leading = rows * 16;
      else if (isTurned)
        leading = shape.rowBytes() * shape.depth();
      return uint64_t(shape.swizzle) << 62 | uint64_t(stride / 16) << 32 | uint64_t(leading / 16) << 16;
    };
    body << "or.b64 %rd3, %rd2, " << layout(shape.isFirstTurned, 64) << ";\nadd.u64 %rd4, %rd2, "
         << bytesA / 16 << ";\nor.b64 %rd4, %rd4, " << layout(shape.isSecondTurned, shape.columns) << ";\n";
    body << "mad.wide.u32 %rd5, %tid, 4, %a2;\n";
    for (int k = 0; k < 4 && shape.isOfRegisters; ++k)
      body << "ld.global.b32 %r" << 20 + k << ", [%rd5+" << 512 * k << "];\n";
    for (int k = 0; k < sums; ++k)
      body << "mov.b32 %s" << k << ", " << first << ";\n";
    body << "setp.ne.b32 %p3, " << int(addsFirst) << ", 0;\nwgmma.fence.sync.aligned;\n";
    const int turnedStep = shape.rowBytes();
    for (int step = 0; step < shape.depth() / 16; ++step) {
      body << "add.u64 %rd6, %rd3, " << (shape.isFirstTurned ? turnedStep : 2) * step
           << ";\nadd.u64 %rd7, %rd4, " << (shape.isSecondTurned ? turnedStep : 2) * step << ";\n"
           << "wgmma.mma_async.sync.aligned.m64n" << shape.columns << "k16.f32." << shape.type << "."
           << shape.type << " " << registers("%s", sums) << ", "
           << (shape.isOfRegisters ? "{%r20, %r21, %r22, %r23}" : "%rd6") << ", %rd7, "
           << (step ? "%p1" : "%p3") << ", 1, 1, "
           << (shape.isOfRegisters   ? ""
               : shape.isFirstTurned ? "1, "
                                     : "0, ")
           << int(shape.isSecondTurned) << ";\n";
    }
    body << "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
         << "mad.wide.u32 %rd8, %tid, 4, %a1;\n";
    for (int k = 0; k < sums; ++k)
      body << "st.global.b32 [%rd8+" << 512 * k << "], %s" << k << ";\n";
    std::string ptx = makeKernel({"b64", "b64", "b64"}, body.str(), ".extern .shared .align 1024 .b8 m[];");
    ptx.replace(ptx.find(".version 7.0"), 12, ".version 8.0");
    ptx.replace(ptx.find(".target sm_80"), 13, ".target sm_90a");
    return ptx;
  }

  /// Runs it on these numbers; empty: it failed, with `said`.
  std::vector<float> multiply(const Shape &shape, const std::string &ptx, const std::vector<uint16_t> &a,
                              const std::vector<uint16_t> &b, std::string *said) {
    close();
    set("SM", "90");
    std::vector<uint16_t> image = layOut(shape, a, 64, shape.isFirstTurned),
                          other = layOut(shape, b, shape.columns, shape.isSecondTurned);
    image.insert(image.end(), other.begin(), other.end());
    std::vector<uint32_t> cells(4 * 128);
    for (size_t r = 0; r < 4 && shape.isOfRegisters; ++r)
      for (size_t t = 0; t < 128; ++t) {
        const size_t row = t / 32 * 16 + t % 32 / 4 + r % 2 * 8, k = t % 4 * 2 + r / 2 * 8;
        cells[r * 128 + t] = a[row * 16 + k] | uint32_t(a[row * 16 + k + 1]) << 16;
      }
    const size_t sums = size_t(shape.columns) / 2;
    ortc_cu_pointer from = upload(image), registersOfA = upload(cells), to = allocate(sums * 512);
    ortc_cu_kernel k = kernel(ptx);
    EXPECT_EQ(driver.cuFuncSetAttribute(k, ORTC_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10),
              ORTC_CU_SUCCESS);
    testing::internal::CaptureStderr();
    const ortc_cu_result result = launch(k, 1, 128, {from, to, registersOfA}, unsigned(image.size() * 2));
    const std::vector<uint32_t> bits = result ? std::vector<uint32_t>() : download<uint32_t>(to, sums * 128);
    *said = testing::internal::GetCapturedStderr();
    std::vector<float> d(bits.size());
    for (size_t r = 0; r < bits.size() / 128; ++r)
      for (size_t t = 0; t < 128; ++t) {
        const size_t row = t / 32 * 16 + t % 32 / 4 + r / 2 % 2 * 8, column = r / 4 * 8 + t % 4 * 2 + r % 2;
        std::memcpy(&d[row * size_t(shape.columns) + column], &bits[r * 128 + t], 4);
      }
    return d;
  }

  /// Small whole numbers, whose sums are exact in every order.
  static std::vector<int> wholes(size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<int> values(count);
    for (int &each : values)
      each = int(random() % 17) - 8;
    return values;
  }
  static std::vector<uint16_t> bitsOf(const Shape &shape, const std::vector<int> &values) {
    std::vector<uint16_t> bits;
    for (int value : values) {
      const float single = float(value);
      uint32_t wide;
      std::memcpy(&wide, &single, 4);
      const uint32_t half = value ? (wide >> 16 & 0x8000) | ((wide & 0x7fffffff) - (112u << 23)) >> 13 : 0;
      bits.push_back(uint16_t(std::string(shape.type) == "bf16" ? wide >> 16 : half));
    }
    return bits;
  }
};

TEST_F(GroupTest, TilesOfEveryLayout) {
  const Shape shapes[] = {{128, 1},
                          {256, 1},
                          {8, 1},
                          {64, 2},
                          {64, 3},
                          {64, 0},
                          {24, 0},
                          {128, 1, false, "f16"},
                          {64, 3, true},
                          {256, 0, true, "f16"},
                          {128, 1, false, "bf16", true, false},
                          {256, 1, false, "bf16", false, true},
                          {64, 1, false, "f16", true, true},
                          {64, 2, false, "bf16", true, true},
                          {64, 3, false, "bf16", true, true},
                          {64, 0, false, "bf16", true, true},
                          {64, 3, true, "bf16", false, true}};
  for (const Shape &shape : shapes) {
    const size_t depth = size_t(shape.depth()), columns = size_t(shape.columns);
    const std::vector<int> a = wholes(64 * depth, 1), b = wholes(columns * depth, 2);
    std::string said;
    const std::vector<float> d =
        multiply(shape, makeProduct(shape, "0f40400000"), bitsOf(shape, a), bitsOf(shape, b), &said);
    ASSERT_EQ(said, "") << columns << " " << shape.swizzle;
    for (size_t row = 0; row < 64; ++row)
      for (size_t column = 0; column < columns; ++column) {
        int sum = 3;
        for (size_t k = 0; k < depth; ++k)
          sum += a[row * depth + k] * b[column * depth + k];
        ASSERT_EQ(d[row * columns + column], float(sum))
            << columns << " " << shape.swizzle << " " << row << " " << column;
      }
  }
}

TEST_F(GroupTest, SumsMayBeginAnewAndAreCut) {
  const Shape shape = {8, 3};
  std::vector<uint16_t> a(64 * 16), b(8 * 16);
  a[0] = 0x3f80; // 1 and 2^-24, 2^-25: one more bit, one that is lost
  a[1] = a[2] = 0x3380;
  a[16] = 0x3f80;
  a[17] = 0x3300;
  for (uint16_t &each : b)
    each = 0x3f80;
  std::string said;
  std::vector<float> d = multiply(shape, makeProduct(shape, "0f7f800000", false), a, b, &said);
  ASSERT_EQ(said, "");
  EXPECT_EQ(d[0], 1 + 0x1p-23f);
  EXPECT_EQ(d[8], 1);
  d = multiply(shape, makeProduct(shape, "0f7f800000"), a, b, &said);
  EXPECT_EQ(d[0], INFINITY);
}

TEST_F(GroupTest, EveryMutantIsNoticed) {
  const Shape shape = {64, 1};
  const std::vector<int> a = wholes(64 * 64, 3), b = wholes(64 * 64, 4);
  const std::string ptx = makeProduct(shape);
  std::string said;
  const std::vector<float> wanted = multiply(shape, ptx, bitsOf(shape, a), bitsOf(shape, b), &said);
  ASSERT_EQ(said, "");
  const std::pair<const char *, const char *> mutants[] = {
      {"k:wgmma.fence:1", "no wgmma.fence stands between"},
      {"k:wgmma.wait_group:1", ""}, // NaNs
      {"k:wgmma.wait_group:1:1", ""},
      {"k:wgmma.commit_group:1", ""},
      {"k:fence.proxy:1", "no fence.proxy.async made visible"},
      {"k:barrier:1", "race in shared memory|never written|still copies"},
      {"k:cp.async.wait_group:1", "cp.async still copies"},
      {"k:cp.async.cg:3", "never written"},
      {"k:wgmma.mma_async:2", ""},
      {"k:add.u64:3:4", ""}, // another step along the depth
      {"k:add.u64:1:64", "out of bounds"},
  };
  for (const auto &[mutant, part] : mutants)
    for (const char *order : {"forward", "reverse"}) {
      set("MUTATE", mutant);
      set("ORDER", order);
      const std::vector<float> d = multiply(shape, ptx, bitsOf(shape, a), bitsOf(shape, b), &said);
      EXPECT_TRUE(d.empty() || std::memcmp(d.data(), wanted.data(), d.size() * 4) != 0)
          << mutant << " survives";
      bool isSaid = !*part;
      std::istringstream list(part);
      for (std::string each; std::getline(list, each, '|');)
        isSaid |= said.find(each) != said.npos;
      EXPECT_TRUE(isSaid) << mutant << ": " << said;
    }
}

TEST_F(GroupTest, TilesThatChangeTooEarly) {
  // A thread writes to a tile before it waits for the product that reads it: its warp sees that.
  const Shape shape = {64, 3};
  std::string ptx = makeProduct(shape);
  const size_t wait = ptx.find("wgmma.wait_group");
  const std::string write = "bar.sync 0;\nst.shared.b32 [%r2], 0;\n";
  std::string said;
  const std::vector<uint16_t> a(64 * 16, 0x3f80), b(64 * 16, 0x3f80);
  std::string late = ptx;
  late.insert(ptx.find('\n', wait) + 1, write);
  multiply(shape, late, a, b, &said);
  EXPECT_EQ(said, "");
  ptx.insert(wait, write);
  EXPECT_TRUE(multiply(shape, ptx, a, b, &said).empty());
  EXPECT_NE(said.find("race in shared memory"), said.npos) << said;
}

TEST_F(GroupTest, FencesOfReadersCountBehindABarrier) {
  const Shape shape = {64, 3};
  const std::vector<uint16_t> a(64 * 16, 0x3f80), b(64 * 16, 0x3f80);
  std::string ptx = makeProduct(shape), said;
  const std::string before = "fence.proxy.async;\nbar.sync 0;\n",
                    behind = "bar.sync 0;\nfence.proxy.async;\n";
  ptx.replace(ptx.find(before), before.size(), behind);
  EXPECT_FALSE(multiply(shape, ptx, a, b, &said).empty()) << said;
  // One of the four warps alone; and readers that fenced before they could see what that one wrote.
  const std::string ofFirst = "setp.lt.u32 %p4, %tid, 32;\n@%p4 fence.proxy.async;\n",
                    ofOthers = "setp.ge.u32 %p4, %tid, 32;\n@%p4 fence.proxy.async;\n";
  for (const std::string &fences : {"bar.sync 0;\n" + ofFirst, ofOthers + "bar.sync 0;\n" + ofFirst}) {
    std::string bad = ptx;
    bad.replace(bad.find(behind), behind.size(), fences);
    EXPECT_TRUE(multiply(shape, bad, a, b, &said).empty()) << fences;
    EXPECT_NE(said.find("no fence.proxy.async"), said.npos) << said;
  }
}

TEST_F(GroupTest, OnlyOnSm90a) {
  std::string ptx = makeProduct({64, 1}), log;
  ptx.replace(ptx.find("sm_90a"), 6, "sm_90");
  set("SM", "90");
  ortc_cu_module module;
  testing::internal::CaptureStderr();
  EXPECT_EQ(load(ptx, &module, &log), ORTC_CU_INVALID_PTX);
  testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("needs .target sm_90a"), log.npos) << log;
}

} // namespace
} // namespace ortc::emulator::test
