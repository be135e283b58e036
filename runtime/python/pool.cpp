// Threads for steps, in processes that may fork.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/python/pool.h"

#include <algorithm>
#include <string>

#include "runtime/python/errors.h"

namespace ortc::python {

Pool::Pool(uint32_t wanted) : workers(std::clamp(wanted, 1u, ORTC_POOL_MAX_WORKERS)) {
  pool = workers > 1 ? ortc_pool_create(workers) : nullptr;
  if (workers > 1 && !pool)
    raise(ORTC_E_MEMORY, "cannot start " + std::to_string(workers) + " threads; try threads=1");
}

Pool::~Pool() {
  if (!isOfParent()) // whose threads are not there to be waited for
    ortc_pool_destroy(pool);
}

void Pool::give(ortc_session_options &options) const {
  if (options.workers <= 1)
    return;
  options.parallel_for = ortc_pool_parallel_for;
  options.pool = pool;
}

} // namespace ortc::python
