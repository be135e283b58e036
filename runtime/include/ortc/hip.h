/* Runs ortc programs on an AMD GPU.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Usage: ortc_hip_open(0, &host.device, &message); then ortc_program_open_file(path, &host, ...), and everything else
 * as without a device. The library (libortc_hip) loads HIP itself, version 6 or newer: libamdhip64.so.7, .so.6 or .so,
 * or the file that the environment variable ORTC_HIP_DRIVER names. It needs no compiler of ROCm.
 *
 * A device may be used by any number of programs in any threads; a session is used by one thread at a time. Functions
 * that use the device leave it the calling thread's (hipSetDevice). */
#pragma once

#include <stdint.h>

#include "ortc/export.h"
#include "ortc/ortc.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ORTC_HIP_API ORTC_EXPORT

/* The GPU with this number, as HIP counts. *device belongs to the caller, who gives it back with ortc_hip_close after
 * the last program that uses it; on failure it is NULL. `message` may be NULL. Fails with TARGET (no HIP, no GPU, or
 * one that there is no code for), NOT_FOUND (no GPU of this number), MEMORY, INTERNAL (the driver fails). */
ORTC_HIP_API ortc_status ortc_hip_open(uint32_t ordinal, const struct ortc_device **device,
                                       ortc_message *message);
/* NULL is allowed. The driver stays loaded. */
ORTC_HIP_API void ortc_hip_close(const struct ortc_device *device);

#ifdef __cplusplus
}
#endif
