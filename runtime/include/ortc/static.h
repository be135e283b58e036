/* Programs whose code is linked to the application: what `ortc train --emit static` writes.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * For machines without an operating system, and where code must not be loaded. No heap is needed: with hooks of
 * ortc_host that hand out memory of the application's, and regions that are given to the session, nothing is
 * allocated. */
#pragma once

#include "ortc/ortc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model that is linked to the application. Its model.h declares one. */
typedef struct ortc_static {
  uint32_t abi; /* ORTC_CALL_ABI of the compiler */
  uint32_t function_count;
  const void *image; /* an artifact whose code is in `functions`, aligned to ORTC_ALIGNMENT; used in place */
  size_t image_bytes;
  const ortc_step_fn *functions;
} ortc_static;

/* As ortc_program_open_memory, for a model that is linked to the application. Fails with VERSION, too, where runtime
 * and compiler call steps in different ways. In libortc.a alone: what links a model links the runtime, too. */
ORTC_API ortc_status ortc_program_open_static(const ortc_static *model, const ortc_host *host,
                                              ortc_program **program, ortc_message *message);

#ifdef __cplusplus
}
#endif
