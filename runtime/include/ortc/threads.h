/* A small pool of threads for ortc sessions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Usage: ortc_pool *pool = ortc_pool_create(4); then in ortc_session_options workers = 4, parallel_for =
 * ortc_pool_parallel_for, pool = pool. One session uses a pool at a time; which worker gets which chunk
 * depends on the number of chunks and workers only. */
#pragma once

#include <stdint.h>

#include "ortc/call.h"
#include "ortc/export.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ORTC_THREADS_API ORTC_EXPORT

#define ORTC_POOL_MAX_WORKERS 256u

typedef struct ortc_pool ortc_pool;

/* A pool of `workers` (1 to ORTC_POOL_MAX_WORKERS): the thread that calls ortc_pool_parallel_for, as worker
 * 0, and workers - 1 threads that wait for it, at first awake for half a millisecond and then asleep. NULL
 * when memory or threads cannot be had. */
ORTC_THREADS_API ortc_pool *ortc_pool_create(uint32_t workers);
/* Ends the threads. NULL is allowed. */
ORTC_THREADS_API void ortc_pool_destroy(ortc_pool *pool);
ORTC_THREADS_API uint32_t ortc_pool_workers(const ortc_pool *pool);
/* An ortc_parallel_for_fn; `pool` is an ortc_pool. Worker w runs chunks [w*chunks/workers,
 * (w+1)*chunks/workers) in order. Not re-entrant, and not from two threads at a time. */
ORTC_THREADS_API void ORTC_STEP_ABI ortc_pool_parallel_for(void *pool, int64_t chunks, ortc_task_fn task,
                                                           void *context);

#ifdef __cplusplus
}
#endif
