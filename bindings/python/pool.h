// Threads for steps, in processes that may fork.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mutex>
#include <optional>
#include <ortc/ortc.h>
#include <ortc/threads.h>
#include <unistd.h>

namespace ortc::python {

/// The functions of an OpenMP library that a framework runs its loops with, by their names in libgomp, which LLVM's
/// and Intel's have, too.
struct OpenMP {
  void (*GOMP_parallel)(void (*body)(void *), void *data, unsigned threads, unsigned flags);
  int (*omp_get_num_threads)();
  int (*omp_get_thread_num)();
};

/// Threads that frames and sessions share; one step at a time has them.
class Pool {
public:
  /// Threads of its own, or those of `openMP`: its threads stay awake for milliseconds behind each loop, and others
  /// would have to share processors with them. Raises MemoryError where threads cannot be had.
  explicit Pool(uint32_t workers, std::optional<OpenMP> openMP = {});
  ~Pool();
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  uint32_t getWorkers() const { return workers; }
  /// Whether its threads are another process's, which this one is a fork of.
  bool isOfParent() const { return workers > 1 && getpid() != owner; }
  /// Sets how a session of `options.workers` runs parallel parts.
  void give(ortc_session_options &options);
  void run(int64_t chunks, ortc_task_fn task, void *context);
  std::mutex mutex;

private:
  static void ORTC_STEP_ABI runParallel(void *pool, int64_t chunks, ortc_task_fn task, void *context);

  const uint32_t workers;
  const std::optional<OpenMP> openMP;
  ortc_pool *pool = nullptr;  ///< null: the caller's thread alone, or `openMP`
  const int owner = getpid(); ///< the process that has its threads
};

} // namespace ortc::python
