/* Parameters of a session as one buffer of float32: what MPI adds up, and federated servers average.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The tensors follow each other in the order of the artifact's table, which is the manifest's, each row-major and
 * without gaps. Those of bfloat16 are widened, and rounded to the nearest where they are written; those of float64 the
 * other way round. Nothing here allocates, keeps globals or calls an operating system. */
#pragma once

#include "ortc/ortc.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ORTC_PARAMETERS_API ORTC_EXPORT

enum ortc_parameters_which {
  ORTC_PARAMETERS_TRAINED = 0, /* what is trained */
  ORTC_PARAMETERS_ALL = 1      /* and running statistics: all weights that steps change */
};

/* Frozen weights belong to the artifact, and parameters that are bound (--bind) lie with the host: neither is here. */
typedef struct ortc_parameters {
  uint32_t size;
  uint32_t which;         /* enum ortc_parameters_which */
  float *values;          /* the buffer */
  uint64_t count;         /* of its numbers: what ortc_parameters_size says */
  void *scratch;          /* aligned to 8 bytes; NULL where none is needed */
  uint64_t scratch_bytes; /* what ortc_parameters_size says: 0 where all tensors are float32 */
} ortc_parameters;

/* Sets `count` and `scratch_bytes` to what sessions of the program take. Fails with ARGUMENT. */
ORTC_PARAMETERS_API ortc_status ortc_parameters_size(const ortc_program *program,
                                                     ortc_parameters *parameters);

/* Copies the tensors of a session of `program` into `values`. `message` may be NULL, here and below. Fails with
 * ARGUMENT; SHAPE: `count` is another; MEMORY: `scratch` is too small; and as ortc_read. */
ORTC_PARAMETERS_API ortc_status ortc_parameters_read(const ortc_program *program, ortc_session *session,
                                                     const ortc_parameters *parameters,
                                                     ortc_message *message);

/* Copies `values`, which stay as they are, into the tensors. Optimizer state stays, too. Fails as
 * ortc_parameters_read, before anything is written, and as ortc_write. */
ORTC_PARAMETERS_API ortc_status ortc_parameters_write(const ortc_program *program, ortc_session *session,
                                                      const ortc_parameters *parameters,
                                                      ortc_message *message);

#ifdef __cplusplus
}
#endif
