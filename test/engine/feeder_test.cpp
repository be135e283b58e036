// The thread that reads ahead: the order of feeds, failures, and its end.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/data/feeder.h"

using namespace ortc;
using namespace ortc::engine;

static Feeder::Fill count(std::atomic<int64_t> &filled) {
  return [&filled](Feed &feed) {
    feed.inputs = {{uint8_t(filled)}};
    ++filled;
    return Status();
  };
}

TEST(FeederTest, GivesFeedsInTheirOrder) {
  for (size_t room : {0u, 2u, 7u, 64u}) {
    std::atomic<int64_t> filled = 0;
    Feeder feeder;
    feeder.start(room, 200, count(filled));
    for (int64_t n = 0; n < 200; ++n) {
      const Feed *feed = nullptr;
      ASSERT_TRUE(feeder.take(feed).isOk());
      ASSERT_EQ(feed->inputs[0][0], uint8_t(n)) << room;
      if (n % 50 == 0) // and it stays while others are filled
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ASSERT_EQ(feed->inputs[0][0], uint8_t(n)) << room;
      ASSERT_LE(filled, n + std::max<int64_t>(int64_t(room), 2));
    }
    feeder.stop();
    EXPECT_EQ(filled, 200);
  }
}

TEST(FeederTest, FailsAtTheStepThatHasNoData) {
  std::atomic<int64_t> filled = 0;
  Feeder feeder;
  feeder.start(4, 10, [&](Feed &) { return filled++ == 3 ? Status::failure("gone") : Status(); });
  const Feed *feed = nullptr;
  for (int n = 0; n < 3; ++n)
    EXPECT_TRUE(feeder.take(feed).isOk()) << n;
  EXPECT_EQ(feeder.take(feed).getMessage(), "gone");
}

TEST(FeederTest, EndsBeforeItsLastFeed) {
  std::atomic<int64_t> filled = 0;
  {
    Feeder feeder;
    feeder.start(3, INT64_MAX, count(filled));
    const Feed *feed = nullptr;
    EXPECT_TRUE(feeder.take(feed).isOk());
  }
  EXPECT_LE(filled, 4);
}

/// A fork of a process that has its thread in the middle of something.
TEST(FeederTest, AForkedChildStopsItAndBeginsAnew) {
  std::atomic<int64_t> filled = 0;
  Feeder feeder;
  feeder.start(3, INT64_MAX, count(filled));
  const Feed *feed = nullptr;
  ASSERT_TRUE(feeder.take(feed).isOk());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20); // a wait for a thread that is not there has no end
    feeder.stop();
    feeder.start(3, INT64_MAX, count(filled));
    const bool isFine = feeder.take(feed).isOk();
    feeder.stop();
    _exit(isFine ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(feeder.take(feed).isOk()) << "the parent goes on";
}
