/* Runs ortc programs on an NVIDIA GPU.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Usage: ortc_cuda_open(0, &host.device, &message); then ortc_program_open_file(path, &host, ...), and
 * everything else as without a device. The library (libortc_cuda) loads the driver itself, libcuda.so.1 or the
 * file that the environment variable ORTC_CUDA_DRIVER names, and needs no toolkit.
 *
 * A device may be used by any number of programs in any threads; a session is used by one thread at a time.
 * Functions that use the device leave its primary context, which libraries of NVIDIA share, current in the
 * calling thread. */
#pragma once

#include <stdint.h>

#include "ortc/export.h"
#include "ortc/ortc.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ORTC_CUDA_API ORTC_EXPORT

/* The GPU with this number, as the driver counts. *device belongs to the caller, who gives it back with ortc_cuda_close
 * after the last program that uses it; on failure it is NULL. `message` may be NULL. Fails with TARGET (no driver, no
 * GPU, or one that is too old), NOT_FOUND (no GPU of this number), MEMORY, INTERNAL (the driver fails). */
ORTC_CUDA_API ortc_status ortc_cuda_open(uint32_t ordinal, const struct ortc_device **device,
                                         ortc_message *message);
/* NULL is allowed. The driver stays loaded. */
ORTC_CUDA_API void ortc_cuda_close(const struct ortc_device *device);

#ifdef __cplusplus
}
#endif
