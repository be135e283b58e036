// Threads of the host that share the blocks of a launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/run/Runner.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <condition_variable>
#include <thread>

#include "test/gpu/emulator/run/BlockRunner.h"

namespace ortc::emulator {
namespace {

/// Blocks that a thread takes at a time.
constexpr uint64_t kMostBlocks = 16;

/// Arithmetic as IEEE 754 has it, whatever the caller's thread prefers.
class DefaultArithmetic {
public:
  DefaultArithmetic() {
    std::fegetenv(&saved);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() { std::fesetenv(&saved); }

private:
  std::fenv_t saved;
};

} // namespace

struct Runner::Pool {
  explicit Pool(uint32_t count) : runners(std::max(count, 1u)) {}
  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isEnding = true;
    }
    wake.notify_all();
    for (std::thread &thread : threads)
      thread.join();
  }

  /// What every thread does for a launch.
  void work(BlockRunner &runner) {
    DefaultArithmetic arithmetic;
    runner.begin(*launch, order);
    while (!launch->isFailed.load(std::memory_order_relaxed)) {
      uint64_t first = next.fetch_add(step);
      if (first >= count)
        break;
      for (uint64_t k = first; k < std::min(first + step, count); ++k) {
        runner.run(numbers.empty() ? (order.kind == Order::Kind::Reverse ? count - 1 - k : k) : numbers[k]);
        if (launch->isFailed.load(std::memory_order_relaxed))
          break;
      }
    }
    runner.end();
  }

  void loop(uint32_t id) {
    uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      wake.wait(lock, [&] { return isEnding || (generation != seen && id < used); });
      if (isEnding)
        return;
      seen = generation;
      lock.unlock();
      work(runners[id]);
      lock.lock();
      if (--working == 0)
        finished.notify_one();
    }
  }

  std::vector<BlockRunner> runners;
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::condition_variable wake, finished;
  bool isEnding = false;
  uint64_t generation = 0;
  uint32_t used = 0, working = 0;

  Launch *launch = nullptr;
  Order order;
  std::vector<uint64_t> numbers;
  uint64_t count = 0, step = 1;
  std::atomic<uint64_t> next{0};
};

uint64_t sampledBlock(uint64_t k, uint64_t sample, uint64_t count) {
  constexpr double kGoldenRatio = 1.6180339887498949;
  const double within = std::fmod(double(k) * kGoldenRatio, 1);
  return uint64_t((double(k) + within) * double(count) / double(sample));
}

Runner::Runner(uint32_t threads) : pool(std::make_unique<Pool>(threads)) {}
Runner::~Runner() = default;

void Runner::run(Launch &launch, const Order &order) {
  Pool &p = *pool;
  p.launch = &launch;
  p.order = order;
  p.count = launch.blocks();
  p.numbers.clear();
  if (launch.sample && launch.sample < p.count) {
    for (uint64_t k = 0; k < launch.sample; ++k)
      p.numbers.push_back(sampledBlock(k, launch.sample, p.count));
    p.count = launch.sample;
  } else if (order.kind == Order::Kind::Random && p.count <= ~0u)
    for (uint32_t number : makeOrder(uint32_t(p.count), order, launch.gridId))
      p.numbers.push_back(number);
  p.next = 0;
  const uint32_t threads = uint32_t(std::min<uint64_t>(p.runners.size(), p.count));
  p.step = std::clamp<uint64_t>(p.count / (8 * threads), 1, kMostBlocks);
  launch.isParallel = threads > 1;
  if (threads > 1) {
    std::lock_guard<std::mutex> lock(p.mutex);
    p.used = threads;
    p.working = threads - 1;
    ++p.generation;
    while (p.threads.size() + 1 < threads)
      p.threads.emplace_back([&p, id = uint32_t(p.threads.size() + 1)] { p.loop(id); });
  }
  if (threads > 1)
    p.wake.notify_all();
  p.work(p.runners[0]);
  if (threads > 1) {
    std::unique_lock<std::mutex> lock(p.mutex);
    p.finished.wait(lock, [&] { return p.working == 0; });
  }
}

} // namespace ortc::emulator
