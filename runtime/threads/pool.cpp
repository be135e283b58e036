// Fork and join over a fixed set of threads. Chunks are handed out statically: which worker runs a chunk
// depends on numbers alone, and there is no shared counter to fight over.
//
// A job is announced by one more `epoch`; workers spin on it for a while and then sleep on its address. Whoever
// finishes last wakes the caller, which waits in the same way for `running` to become 0. Every worker takes
// part in every epoch, also when it has no chunk, so that no late one can read a job that is being replaced.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ortc/threads.h"

#if defined(_WIN32)
#include "runtime/threads/windows.h"
#else
#include "runtime/threads/linux.h"
#endif

using namespace ortc;

namespace {

constexpr uint32_t kLine = 64; ///< bytes of a cache line
/// of a waiting thread at the word, before it looks at the clock and lets others run
constexpr int kLooks = 64;
/// How long threads wait awake. Many times what it takes to wake a processor that sleeps, 50 us under a
/// hypervisor: were both alike, one late waking would keep a step slow for good, because the other side,
/// which waits for it, falls asleep meanwhile.
constexpr int64_t kSpinNanoseconds = 500000;
constexpr uint32_t kAsleep = 1u << 31;

struct Worker {
  ortc_pool *pool;
  Thread thread;
  uint32_t number;
};

} // namespace

struct ortc_pool {
  uint32_t workers;
  bool
      maySpin; ///< not when there are more workers than processors: a spinning one would keep another from its work
  // The job, written before `epoch` moves on.
  ortc_task_fn task;
  void *context;
  int64_t chunks;
  bool isEnding;
  alignas(kLine) uint32_t epoch;    ///< number of jobs announced
  uint32_t sleepers;                ///< workers that sleep, or are about to
  alignas(kLine) uint32_t running;  ///< workers that have not finished; kAsleep: the caller sleeps
  alignas(kLine) Worker members[1]; ///< number 1 and up, `workers` - 1 of them
};

namespace {

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

void runShare(ortc_pool *pool, int64_t worker) {
  int64_t each = pool->chunks / pool->workers, rest = pool->chunks % pool->workers;
  auto begin = [&](int64_t number) { return each * number + rest * number / pool->workers; };
  int64_t end = begin(worker + 1);
  for (int64_t chunk = begin(worker); chunk < end; chunk++)
    pool->task(pool->context, chunk, worker);
}

/// Waits awake for a while; true when the condition is met. Yields in between: where the scheduler has put
/// both sides on one processor, the other one needs it.
template <typename Condition> bool spinUntil(const ortc_pool *pool, Condition isMet) {
  for (int64_t begin = 0; pool->maySpin; yield()) {
    for (int i = 0; i < kLooks; i++) {
      if (isMet())
        return true;
      pause();
    }
    int64_t now = nanoseconds();
    if (!begin)
      begin = now;
    if (now - begin >= kSpinNanoseconds)
      break;
  }
  return false;
}

/// Waits until the epoch is no longer `seen`.
void awaitJob(ortc_pool *pool, uint32_t seen) {
  if (spinUntil(pool, [&] { return __atomic_load_n(&pool->epoch, __ATOMIC_ACQUIRE) != seen; }))
    return;
  // Sequentially consistent here and in announce: either the announcer sees the sleeper, or the sleeper the
  // job.
  __atomic_fetch_add(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&pool->epoch, __ATOMIC_SEQ_CST) == seen)
    sleepWhile(&pool->epoch, seen);
  __atomic_fetch_sub(&pool->sleepers, 1, __ATOMIC_RELAXED);
}

void announce(ortc_pool *pool) {
  __atomic_store_n(&pool->running, pool->workers - 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&pool->epoch, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&pool->sleepers, __ATOMIC_SEQ_CST))
    wakeAll(&pool->epoch);
}

void awaitWorkers(ortc_pool *pool) {
  if (spinUntil(pool, [&] { return !__atomic_load_n(&pool->running, __ATOMIC_ACQUIRE); }))
    return;
  uint32_t left = __atomic_or_fetch(&pool->running, kAsleep, __ATOMIC_ACQUIRE);
  while (left != kAsleep) {
    sleepWhile(&pool->running, left);
    left = __atomic_load_n(&pool->running, __ATOMIC_ACQUIRE);
  }
}

ThreadResult ORTC_THREAD serve(void *argument) {
  auto *self = (Worker *)argument;
  ortc_pool *pool = self->pool;
  for (uint32_t seen = 0;; seen++) {
    awaitJob(pool, seen);
    if (pool->isEnding)
      return 0;
    runShare(pool, self->number);
    if (__atomic_sub_fetch(&pool->running, 1, __ATOMIC_ACQ_REL) == kAsleep)
      wakeAll(&pool->running);
  }
}

} // namespace

extern "C" {

ortc_pool *ortc_pool_create(uint32_t workers) {
  if (!workers || workers > ORTC_POOL_MAX_WORKERS)
    return nullptr;
  auto *pool = (ortc_pool *)allocate(kLine, sizeof(ortc_pool) + workers * sizeof(Worker));
  if (!pool)
    return nullptr;
  pool->isEnding = false;
  pool->maySpin = workers <= countProcessors();
  pool->epoch = pool->sleepers = pool->running = 0;
  for (pool->workers = 1; pool->workers < workers; pool->workers++) {
    Worker &member = pool->members[pool->workers - 1];
    member.pool = pool;
    member.number = pool->workers;
    if (!start(&member.thread, serve, &member)) {
      ortc_pool_destroy(pool);
      return nullptr;
    }
  }
  return pool;
}

void ortc_pool_destroy(ortc_pool *pool) {
  if (!pool)
    return;
  pool->isEnding = true;
  announce(pool);
  for (uint32_t i = 0; i + 1 < pool->workers; i++)
    join(pool->members[i].thread);
  release(pool);
}

uint32_t ortc_pool_workers(const ortc_pool *pool) { return pool->workers; }

void ORTC_STEP_ABI ortc_pool_parallel_for(void *opaque, int64_t chunks, ortc_task_fn task, void *context) {
  auto *pool = (ortc_pool *)opaque;
  pool->task = task;
  pool->context = context;
  pool->chunks = chunks;
  if (pool->workers == 1 || chunks <= 1) { // not worth a wake-up; worker 0 may run anything
    for (int64_t chunk = 0; chunk < chunks; chunk++)
      task(context, chunk, 0);
    return;
  }
  announce(pool);
  runShare(pool, 0);
  awaitWorkers(pool);
}
}
