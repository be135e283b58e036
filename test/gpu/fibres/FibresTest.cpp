// The fibres themselves: what lanes get from each other, and that wrong meetings are reported.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/fibres/Fibres.h"

#include <gtest/gtest.h>
#include <vector>

using namespace ortc::fibres;

namespace {

constexpr Order kOrders[] = {Order::Forward, Order::Reverse, Order::Shuffled};

std::string run(int64_t threads, int64_t wavefront, Order order, const std::function<void()> &body,
                int64_t blocks = 1) {
  return ortc::fibres::run({blocks, threads, wavefront, order}, [] {}, body);
}

uint32_t lane() { return countUpper(~0u, countLower(~0u, 0)); }

TEST(FibresTest, LanesKnowWhereTheyAre) {
  for (Order order : kOrders) {
    std::vector<uint32_t> lanes(3 * 100, ~0u);
    EXPECT_EQ(run(100, 64, order, [&] { lanes[block() * 100 + thread()] = lane(); }, 3), "");
    for (uint32_t i = 0; i < 300; ++i)
      EXPECT_EQ(lanes[i], i % 100 % 64) << i;
  }
  std::vector<uint32_t> counts(64);
  EXPECT_EQ(run(64, 64, Order::Forward, [&] { counts[thread()] = countLower(0xf0f0f0f0, 100); }), "");
  EXPECT_EQ(counts[4], 100u);
  EXPECT_EQ(counts[6], 102u);
  EXPECT_EQ(counts[32], 116u);
  EXPECT_EQ(counts[63], 116u);
}

TEST(FibresTest, ValuesMoveWithinTheWavefrontAmongThoseThatAreThere) {
  for (Order order : kOrders)
    for (int64_t wavefront : {32, 64}) {
      std::vector<uint32_t> moved(96);
      // The last 16 threads leave, and some of the others do something else in between.
      EXPECT_EQ(run(96, wavefront, order,
                    [&] {
                      if (thread() >= 80)
                        return;
                      if (thread() % 2)
                        (void)permute(0, 7, 1);
                      moved[thread()] = permute(4 * (lane() + 16), 1000 + thread(), 2);
                    }),
                "");
      for (uint32_t i = 0; i < 80; ++i) {
        uint32_t first = uint32_t(i / wavefront * wavefront), from = first + (i + 16) % uint32_t(wavefront);
        EXPECT_EQ(moved[i], from < 80 ? 1000 + from : kNoLane) << i << " of " << wavefront;
      }
    }
}

TEST(FibresTest, BlocksMeetAtBarriers) {
  for (Order order : kOrders) {
    std::vector<uint32_t> shared(256), seen(256);
    EXPECT_EQ(run(256, 64, order,
                  [&] {
                    for (uint32_t round = 1; round < 5; ++round) {
                      shared[thread()] = round * thread();
                      meetInBlock(0);
                      seen[thread()] += shared[(thread() + 77 * round) % 256];
                      meetInBlock(1);
                    }
                  }),
              "");
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t want = 0;
      for (uint32_t round = 1; round < 5; ++round)
        want += round * ((i + 77 * round) % 256);
      EXPECT_EQ(seen[i], want);
    }
  }
}

/// Without the barrier, at least one order shows it.
TEST(FibresTest, AMissingBarrierShows) {
  bool shows = false;
  for (Order order : kOrders) {
    std::vector<uint32_t> shared(64), seen(64);
    EXPECT_EQ(run(64, 64, order,
                  [&] {
                    shared[thread()] = 1;
                    seen[thread()] = shared[(thread() + 1) % 64];
                  }),
              "");
    shows |= std::find(seen.begin(), seen.end(), 0u) != seen.end();
  }
  EXPECT_TRUE(shows);
}

TEST(FibresTest, BarriersThatNotAllReachAreReported) {
  auto meetUnless = [](uint32_t absent) {
    return [=] {
      if (thread() != absent)
        meetInBlock(3);
    };
  };
  EXPECT_EQ(run(64, 32, Order::Forward, meetUnless(64)), "");
  EXPECT_EQ(run(64, 32, Order::Forward, meetUnless(5), 2), "block 0: 63 of 64 threads are at barrier 3");
  EXPECT_EQ(run(64, 32, Order::Forward, [] { meetInBlock(thread() < 32 ? 1 : 2); }),
            "block 0: 32 of 64 threads are at barrier 2");
}

TEST(FibresTest, EachBlockIsBegunAnew) {
  int begun = 0;
  std::vector<int> seen;
  EXPECT_EQ(
      ortc::fibres::run(
          {3, 2, 32, Order::Reverse}, [&] { ++begun; }, [&] { seen.push_back(begun * 10 + int(block())); }),
      "");
  EXPECT_EQ(seen, (std::vector<int>{12, 12, 21, 21, 30, 30}));
}

} // namespace
