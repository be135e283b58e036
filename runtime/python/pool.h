// Threads for steps, in processes that may fork.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mutex>
#include <ortc/ortc.h>
#include <ortc/threads.h>
#include <unistd.h>

namespace ortc::python {

/// Threads that frames and sessions share; one step at a time has them.
class Pool {
public:
  /// Raises MemoryError where threads cannot be had.
  explicit Pool(uint32_t workers);
  ~Pool();
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  uint32_t getWorkers() const { return workers; }
  /// Whether its threads are another process's, which this one is a fork of.
  bool isOfParent() const { return pool && getpid() != owner; }
  /// Sets how a session of `options.workers` runs parallel parts.
  void give(ortc_session_options &options) const;
  ortc_pool *get() const { return pool; } ///< null: the caller's thread alone
  std::mutex mutex;

private:
  const uint32_t workers;
  ortc_pool *pool = nullptr;
  const int owner = getpid(); ///< the process that has its threads
};

} // namespace ortc::python
