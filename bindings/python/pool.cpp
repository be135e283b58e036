// Threads for steps, in processes that may fork.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/python/pool.h"

#include <algorithm>
#include <string>

#include "bindings/python/errors.h"

namespace ortc::python {

namespace {

struct Job {
  const OpenMP &openMP;
  const uint32_t workers;
  const int64_t chunks;
  const ortc_task_fn task;
  void *const context;
};

/// What one thread of OpenMP does: the shares of as many workers as there are more of them than threads.
void runShares(void *given) {
  const Job &job = *static_cast<const Job *>(given);
  const int64_t workers = job.workers, each = job.chunks / workers, rest = job.chunks % workers;
  auto begin = [&](int64_t worker) { return each * worker + rest * worker / workers; };
  for (int64_t worker = job.openMP.omp_get_thread_num(); worker < workers;
       worker += job.openMP.omp_get_num_threads())
    for (int64_t chunk = begin(worker); chunk < begin(worker + 1); chunk++)
      job.task(job.context, chunk, worker);
}

} // namespace

Pool::Pool(uint32_t wanted, std::optional<OpenMP> with)
    : workers(std::clamp(wanted, 1u, ORTC_POOL_MAX_WORKERS)), openMP(with) {
  if (workers == 1 || openMP)
    return;
  pool = ortc_pool_create(workers);
  if (!pool)
    raise(ORTC_E_MEMORY, "cannot start " + std::to_string(workers) + " threads; try threads=1");
}

Pool::~Pool() {
  if (!isOfParent()) // whose threads are not there to be waited for
    ortc_pool_destroy(pool);
}

void Pool::give(ortc_session_options &options) {
  if (options.workers <= 1)
    return;
  options.parallel_for = openMP ? runParallel : ortc_pool_parallel_for;
  options.pool = openMP ? static_cast<void *>(this) : pool;
}

void Pool::run(int64_t chunks, ortc_task_fn task, void *context) {
  if (openMP)
    runParallel(this, chunks, task, context);
  else
    ortc_pool_parallel_for(pool, chunks, task, context);
}

void ORTC_STEP_ABI Pool::runParallel(void *given, int64_t chunks, ortc_task_fn task, void *context) {
  const Pool &self = *static_cast<const Pool *>(given);
  if (chunks <= 1) { // not worth a wake-up; worker 0 may run anything
    for (int64_t chunk = 0; chunk < chunks; chunk++)
      task(context, chunk, 0);
    return;
  }
  Job job{*self.openMP, self.workers, chunks, task, context};
  self.openMP->GOMP_parallel(runShares, &job, self.workers, 0);
}

} // namespace ortc::python
