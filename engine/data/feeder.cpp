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
  reading = std::make_unique<Reading>();
  reading->feeds.resize(std::max<size_t>(room, 2));
  reading->thread =
      std::thread([of = reading.get(), count, fill = std::move(fill)] { of->run(count, fill); });
}

/// Waking a thread takes microseconds, so one that has found no room waits until half of it is free.
void Feeder::Reading::run(int64_t count, const Fill &fill) {
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
  Reading &of = *reading;
  std::unique_lock lock(of.mutex);
  of.free = of.taken;
  if (of.filled - of.free <= int64_t(of.feeds.size()) / 2)
    of.isEmpty.notify_one();
  await(of.isFull, lock, [&] { return of.filled > of.taken || !of.failure.isOk(); });
  if (of.filled == of.taken)
    return of.failure;
  feed = &of.feeds[size_t(of.taken++ % int64_t(of.feeds.size()))];
  return Status();
}

void Feeder::stop() {
  if (reading && reading->owner != getpid()) // its thread, which is not here, may hold the mutex for ever
    (void)reading.release();
  if (!reading)
    return;
  {
    std::lock_guard lock(reading->mutex);
    reading->isStopped = true;
    reading->isEmpty.notify_one();
  }
  if (reading->thread.joinable()) // it was started
    reading->thread.join();
  reading.reset();
}

} // namespace ortc::engine
