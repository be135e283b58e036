/* Deltas: what a training has changed, as a small file that a server averages (ortc merge --base).
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A safetensors file with the difference of every trained tensor, and of running statistics, from what the training
 * began with; optimizer state stays on the device. docs/federated.md has the format. Nothing here allocates, keeps
 * globals or calls an operating system; the stack takes less than 8 KiB on top of what ortc_checkpoint_write takes. */
#pragma once

#include "ortc/ortc.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ORTC_DELTA_API ORTC_EXPORT

#define ORTC_DELTA_BLOCK 256u /* numbers, in row-major order, that share a scale in an int8 delta */

enum ortc_delta_kind {
  ORTC_DELTA_FLOAT = 0, /* differences as float32 (of float64 tensors: float64) */
  ORTC_DELTA_INT8 = 1   /* rounded to 255 multiples of a scale for each block: about a quarter of the bytes */
};

/* What is written, and what the session began with: a checkpoint of this model, or the artifact's initial weights. */
typedef struct ortc_delta {
  uint32_t size;
  uint32_t kind;       /* enum ortc_delta_kind */
  const void *base;    /* the checkpoint in one piece, e.g. mapped; NULL: `read` gets at it */
  uint64_t base_bytes; /* of the checkpoint; 0: the initial weights are the base */
  /* Copies bytes of the checkpoint, and returns 0. They lie in it. NULL where `base` is given. */
  int32_t (*read)(void *context, uint64_t offset, void *data, size_t bytes);
  void *context; /* of `read` */
} ortc_delta;

/* Writes the delta of a session of `program` into a sink, which returns 0 while it can go on. It runs
 * ortc_checkpoint_write once before the first byte of the file, and once more behind that, or twice (int8). `message`
 * may be NULL. Fails with ARGUMENT; FORMAT: the base is no checkpoint; NOT_FOUND, SHAPE: of another model; NOT_FINITE:
 * a difference is no number, before anything is written; IO: the sink, `read` or a device failed; HASH: the artifact is
 * damaged. */
ORTC_DELTA_API ortc_status ortc_delta_write(const ortc_delta *delta, const ortc_program *program,
                                            ortc_session *session, ortc_sink_fn sink, void *context,
                                            ortc_message *message);

#ifdef __cplusplus
}
#endif
