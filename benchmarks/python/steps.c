/* Training steps without Python between them, for overhead.py.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <time.h>

#include "ortc/ortc.h"

/* Seconds of `count` steps, or -1. */
double time_steps(void *session, long count) {
  struct timespec begin, end;
  double loss;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (long i = 0; i < count; i++)
    if (ortc_train_step(session, &loss) != ORTC_OK)
      return -1;
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}
