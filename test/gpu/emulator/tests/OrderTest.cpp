// Results do not depend on the order of blocks and warps, nor on the number of threads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>

#include "test/gpu/emulator/tests/Emulator.h"

namespace ortc::emulator::test {
namespace {

class OrderTest : public EmulatorTest {
protected:
  /// The order in which blocks, or the warps of one block, get numbers from a counter.
  std::vector<uint32_t> tickets(const char *order, bool isOfWarps) {
    close();
    set("ORDER", order);
    set("THREADS", "1");
    ortc_cu_pointer counter = upload(std::vector<uint32_t>{0}), out = allocate(16 * 4);
    std::string own = isOfWarps ? "mov.u32 %r2, %warpid;" : "mov.u32 %r2, %ctaid.x;";
    run(kernel(makeKernel({"b64", "b64"},
                          own + "and.b32 %r3, %tid, 31; setp.ne.u32 %p1, %r3, 0; @%p1 ret;"
                                "atom.global.add.u32 %r1, [%a0], 1; mad.wide.u32 %rd1, %r1, 4, %a1; "
                                "st.global.u32 [%rd1], %r2;")),
        isOfWarps ? 1 : 16, isOfWarps ? 512 : 32, {counter, out});
    return download<uint32_t>(out, 16);
  }
};

TEST_F(OrderTest, IsTheOneThatWasAskedFor) {
  std::vector<uint32_t> forward(16), reverse(16);
  for (uint32_t k = 0; k < 16; ++k) {
    forward[k] = k;
    reverse[k] = 15 - k;
  }
  for (bool isOfWarps : {false, true}) {
    EXPECT_EQ(tickets("forward", isOfWarps), forward);
    EXPECT_EQ(tickets("reverse", isOfWarps), reverse);
    std::vector<uint32_t> first = tickets("random:1", isOfWarps), second = tickets("random:2", isOfWarps);
    EXPECT_NE(first, forward);
    EXPECT_NE(first, second);
    EXPECT_EQ(first, tickets("random:1", isOfWarps));
    std::sort(first.begin(), first.end());
    EXPECT_EQ(first, forward);
  }
}

TEST_F(OrderTest, MakesNoDifferenceToResults) {
  const std::string ptx = readPtx("kernels.ptx");
  const int n = 64;
  std::vector<float> a(n * n), b(n * n), expected;
  for (int k = 0; k < n * n; ++k) {
    a[size_t(k)] = float(k % 37) / 7;
    b[size_t(k)] = float(k % 41) / 9;
  }
  for (const char *order : {"forward", "reverse", "random:1", "random:2"})
    for (const char *threads : {"1", "3"}) {
      close();
      set("ORDER", order);
      set("THREADS", threads);
      ortc_cu_pointer da = upload(a), db = upload(b), dc = allocate(n * n * 4);
      run(kernel(ptx, "product"), {n / 16, n / 16}, {16, 16}, {da, db, dc, n});
      std::vector<float> c = download<float>(dc, n * n);
      if (expected.empty())
        expected = c;
      EXPECT_EQ(std::memcmp(c.data(), expected.data(), c.size() * 4), 0) << order << " " << threads;
    }
}

} // namespace
} // namespace ortc::emulator::test
