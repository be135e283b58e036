// Reads the data of steps ahead of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/data/feeder.h"

#include <algorithm>
#include <chrono>

namespace ortc::engine {

/// As condition.wait(), which is a symbol that the libstdc++ of RHEL 9 lacks: wheels are for it, too.
template <typename Predicate>
static void await(std::condition_variable &condition, std::unique_lock<std::mutex> &lock, Predicate isThere) {
  while (!condition.wait_for(lock, std::chrono::hours(1), isThere)) {
  }
}

void Feeder::start(size_t room, int64_t count, Fill fill) {
  stop();
  isStopped = false;
  filled = taken = free = 0;
  failure = Status();
  feeds.resize(std::max<size_t>(room, 2));
  thread = std::thread([this, count, fill = std::move(fill)] { run(count, fill); });
}

/// Waking a thread takes microseconds, so one that has found no room waits until half of it is free.
void Feeder::run(int64_t count, const Fill &fill) {
  auto room = int64_t(feeds.size());
  for (int64_t n = 0; n < count; ++n) {
    {
      std::unique_lock lock(mutex);
      if (filled - free == room)
        await(isEmpty, lock, [&] { return isStopped || filled - free <= room / 2; });
      if (isStopped)
        return;
    }
    Status status = fill(feeds[size_t(n % room)]);
    std::lock_guard lock(mutex);
    failure = status;
    filled += status.isOk();
    isFull.notify_one();
    if (!status.isOk())
      return;
  }
}

Status Feeder::take(const Feed *&feed) {
  std::unique_lock lock(mutex);
  free = taken;
  if (filled - free <= int64_t(feeds.size()) / 2)
    isEmpty.notify_one();
  await(isFull, lock, [&] { return filled > taken || !failure.isOk(); });
  if (filled == taken)
    return failure;
  feed = &feeds[size_t(taken++ % int64_t(feeds.size()))];
  return Status();
}

void Feeder::stop() {
  {
    std::lock_guard lock(mutex);
    isStopped = true;
    isEmpty.notify_one();
  }
  if (thread.joinable())
    thread.join();
}

} // namespace ortc::engine
