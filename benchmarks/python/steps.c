/* Steps without Python between them, for overhead.py and bound.py.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "ortc/ortc.h"

enum { kFloat = 1, kMemoryBits = 36, kHugePage = 1 << 21 };

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Seconds of `count` training steps, or -1. */
double time_steps(void *session, long count) {
  double begin = now(CLOCK_MONOTONIC), loss;
  for (long i = 0; i < count; i++)
    if (ortc_train_step(session, &loss) != ORTC_OK)
      return -1;
  return now(CLOCK_MONOTONIC) - begin;
}

/* A session whose inputs, outputs, bound parameters and bound gradients are memory of this host. */
typedef struct host {
  ortc_program *program;
  ortc_session *session;
  char *memory; /* what is not used yet of a range that nothing else has, in huge pages as the session's own */
  void **places; /* by tensor */
} host;

static void *take(host *host, uint64_t bytes) {
  char *place = host->memory;
  host->memory += (bytes + ORTC_ALIGNMENT - 1) / ORTC_ALIGNMENT * ORTC_ALIGNMENT;
  return place;
}

/* Numbers within 0.05 of zero that depend on the name and on the place in the ONNX layout. */
static void fill(const ortc_tensor_info *info, char *memory, int is_dense) {
  if (info->dtype != kFloat)
    return;
  uint64_t seed = 0;
  for (const char *c = info->name; *c; c++)
    seed = seed * 131 + (unsigned char)*c;
  for (uint64_t i = 0; i < info->bytes / sizeof(float); i++) {
    uint64_t rest = i, place = 0;
    for (uint32_t axis = info->rank; axis-- > 0; rest /= (uint64_t)info->dims[axis])
      place += rest % (uint64_t)info->dims[axis] * (uint64_t)info->strides[axis];
    uint64_t bits = (seed + i) * UINT64_C(0x9e3779b97f4a7c15);
    *(float *)(memory + (is_dense ? i * sizeof(float) : place)) = (float)(bits >> 40) * 0x1p-24f * 0.1f - 0.05f;
  }
}

/* Opens an artifact that was compiled with --cotangents, or gives NULL. Nothing of it is ever released. */
void *open_host(const char *path) {
  host *host = calloc(1, sizeof *host);
  ortc_session_options options = ORTC_INIT(ortc_session_options);
  ortc_program_info program = ORTC_INIT(ortc_program_info);
  ortc_entry_info entry = ORTC_INIT(ortc_entry_info);
  ortc_tensor_info info = ORTC_INIT(ortc_tensor_info);
  options.flags = ORTC_SESSION_BIND_ALL;
  if (!host || ortc_program_open_file(path, NULL, &host->program, NULL) != ORTC_OK ||
      ortc_session_create(host->program, &options, &host->session, NULL) != ORTC_OK ||
      ortc_program_get_info(host->program, &program) != ORTC_OK)
    return NULL;
  host->places = calloc(program.tensor_count, sizeof *host->places);
  void *range = mmap(NULL, UINT64_C(1) << kMemoryBits, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!host->places || range == MAP_FAILED)
    return NULL;
  madvise(range, UINT64_C(1) << kMemoryBits, MADV_HUGEPAGE);
  host->memory = (char *)(((uintptr_t)range + kHugePage - 1) & ~(uintptr_t)(kHugePage - 1));
  for (uint32_t i = 0; ortc_entry_get(host->program, i, &entry) == ORTC_OK; i++)
    for (uint32_t n = 0; n < entry.value_count; n++) {
      if (ortc_entry_value(host->program, i, n, &info) != ORTC_OK)
        return NULL;
      if ((info.role != ORTC_ROLE_INPUT && info.role != ORTC_ROLE_OUTPUT) || host->places[info.index])
        continue;
      host->places[info.index] = take(host, info.bytes);
      fill(&info, host->places[info.index], 0);
      if (ortc_bind(host->session, info.name, host->places[info.index], info.bytes) != ORTC_OK)
        return NULL;
    }
  for (uint32_t i = 0; ortc_tensor_get(host->program, i, &info) == ORTC_OK; i++)
    if (info.role == ORTC_ROLE_PARAMETER && info.region == ORTC_REGION_PERSISTENT) {
      char *dense = malloc(info.bytes);
      fill(&info, dense, 1);
      ortc_status status = ortc_write(host->session, info.name, dense, info.bytes);
      free(dense);
      if (status != ORTC_OK)
        return NULL;
    }
  return host;
}

/* What an optimizer would change stays as it is: 0, or -1. */
int freeze(host *host) { return ortc_set_scalar(host->session, "lr", 0) == ORTC_OK ? 0 : -1; }

/* Seconds of processor time of `count` times these steps, a letter each: forward, backward, update. -1 where one
 * fails. */
double time_roles(host *host, const char *roles, long count) {
  double begin = now(CLOCK_THREAD_CPUTIME_ID);
  for (long i = 0; i < count; i++)
    for (const char *role = roles; *role; role++)
      if (ortc_step(host->session,
                    *role == 'f'   ? ORTC_ENTRY_FORWARD
                    : *role == 'b' ? ORTC_ENTRY_BACKWARD
                                   : ORTC_ENTRY_UPDATE,
                    NULL) != ORTC_OK)
        return -1;
  return now(CLOCK_THREAD_CPUTIME_ID) - begin;
}

static double sum(const float *values, uint64_t bytes) {
  double total = 0;
  for (uint64_t i = 0; i < bytes / sizeof(float); i++)
    total += fabs((double)values[i]);
  return total;
}

/* Sums of absolute values: of the outputs, and of the gradients of parameters, after a backward step. */
void sum_values(host *host, double *outputs, double *gradients) {
  ortc_tensor_info info = ORTC_INIT(ortc_tensor_info);
  *outputs = *gradients = 0;
  for (uint32_t i = 0; ortc_tensor_get(host->program, i, &info) == ORTC_OK; i++) {
    if (info.role == ORTC_ROLE_OUTPUT && info.dtype == kFloat && host->places[i])
      *(info.owner == ORTC_NONE ? outputs : gradients) += sum(host->places[i], info.bytes);
    if (info.role == ORTC_ROLE_PARAMETER && info.region == ORTC_REGION_PERSISTENT) {
      float *dense = malloc(info.bytes);
      if (ortc_read_gradient(host->session, info.name, dense, info.bytes) == ORTC_OK)
        *gradients += sum(dense, info.bytes);
      free(dense);
    }
  }
}
