// What the pool takes of Linux: threads, and sleeping on the address of a word.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ORTC_THREAD ///< convention of a thread's function

namespace ortc {

using Thread = pthread_t;
using ThreadResult = void *;

inline bool start(Thread *thread, ThreadResult (*function)(void *), void *argument) {
  return !pthread_create(thread, nullptr, function, argument);
}
inline void join(Thread thread) { pthread_join(thread, nullptr); }

inline long futex(uint32_t *word, int operation, uint32_t value) {
  return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}
/// Sleeps unless the word has another value. May return at any time.
inline void sleepWhile(uint32_t *word, uint32_t value) { futex(word, FUTEX_WAIT, value); }
inline void wakeAll(uint32_t *word) { futex(word, FUTEX_WAKE, INT_MAX); }
inline void yield() { sched_yield(); }

/// Of a clock that never goes back.
inline int64_t nanoseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * (int64_t)1000000000 + time.tv_nsec;
}
inline uint32_t countProcessors() { return (uint32_t)sysconf(_SC_NPROCESSORS_ONLN); }

/// nullptr when there is none.
inline void *allocate(size_t alignment, size_t bytes) {
  void *memory = nullptr;
  return posix_memalign(&memory, alignment, bytes) ? nullptr : memory;
}
inline void release(void *memory) { free(memory); }

} // namespace ortc
