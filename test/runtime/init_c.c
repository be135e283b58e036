/* Headers and ORTC_INIT in C; compiled with every warning as an error.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ortc/cuda.h"
#include "ortc/device.h"
#include "ortc/ortc.h"
#include "ortc/slots.h"
#include "ortc/verify.h"

uint32_t ortc_test_init_in_c(void);

uint32_t ortc_test_init_in_c(void) {
  ortc_host host = ORTC_INIT(ortc_host);
  ortc_session_options options = ORTC_INIT(ortc_session_options);
  ortc_slots slots = ORTC_INIT(ortc_slots);
  return slots.size == sizeof slots && host.size == sizeof host && !host.flags &&
         options.size == sizeof options && !options.workers;
}
