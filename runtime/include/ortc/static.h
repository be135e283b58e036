/* Models that are linked into the program: no file, no memory that is made executable.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * `ortc train --emit static` writes them: model.a has the code, model_data.c the artifact without it, and model.h
 * declares `model()`, which gives both. For firmware, and where a program may not make code. */
#pragma once

#include "ortc/ortc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ortc_static {
  uint32_t size;
  uint32_t abi;      /* ORTC_ABI_VERSION of the headers that model_data.c was compiled with */
  const void *image; /* the artifact without its code, aligned to ORTC_ALIGNMENT */
  size_t image_bytes;
  const ortc_step_fn *steps; /* what the offsets in the head of its code section count */
} ortc_static;

/* Opens a model that is linked in. The image is checked as a file is, and used in place; its code is where the linker
 * put it. `host` and `message` may be NULL, but where there is no operating system the host brings `allocate`. In
 * libortc.a alone. Fails as ortc_program_open_memory does, and with VERSION for a model of another ABI. */
ORTC_API ortc_status ortc_program_open_static(const ortc_static *model, const ortc_host *host,
                                              ortc_program **program, ortc_message *message);

#ifdef __cplusplus
}
#endif
