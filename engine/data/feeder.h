// Reads the data of steps ahead of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

#include "support/Status.h"

namespace ortc::engine {

struct Entry;

/// What a step reads: the bytes of the inputs of an entry.
struct Feed {
  const Entry *entry = nullptr;
  std::vector<std::vector<uint8_t>> inputs;
};

/// One thread that fills feeds, in the order of the steps that take them. What the bytes are does not depend on when
/// they are read. A forked child may only stop it, or begin anew.
class Feeder {
public:
  /// Fills the next feed; on the thread.
  using Fill = std::function<Status(Feed &)>;

  Feeder() = default;
  ~Feeder() { stop(); }
  Feeder(const Feeder &) = delete;
  Feeder &operator=(const Feeder &) = delete;

  /// Begins, also anew, to fill `count` feeds, at most `room` of them at a time (at least 2). What `fill` uses is the
  /// thread's until stop().
  void start(size_t room, int64_t count, Fill fill);
  /// Waits for the next feed, which stays until the next call. Fails where filling it has failed.
  Status take(const Feed *&feed);
  /// Ends the thread, when the feed that it fills is full. Feeds are gone then.
  void stop();

private:
  struct Reading {
    void run(int64_t count, const Fill &fill);

    std::vector<Feed> feeds;
    std::mutex mutex;
    std::condition_variable isFull, isEmpty;
    int64_t filled = 0, taken = 0, free = 0; ///< all of them ever; `free`: taken, and not in use
    bool isStopped = false;
    Status failure;
    std::thread thread;
    const int owner = getpid(); ///< the process that has the thread
  };
  std::unique_ptr<Reading> reading; ///< null: nothing is read
};

} // namespace ortc::engine
