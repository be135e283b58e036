// Programs whose code is linked to the application.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ortc/static.h"

#include "runtime/src/internal.h"

using namespace ortc;

extern "C" ortc_status ortc_program_open_static(const ortc_static *model, const ortc_host *host,
                                                ortc_program **program, ortc_message *message) {
  *program = nullptr;
  if (model->abi != ORTC_CALL_ABI)
    return ORTC_E_VERSION;
  if ((uintptr_t)model->image % ORTC_ALIGNMENT)
    return report(message, kMisaligned);
  return openImage({(const uint8_t *)model->image, model->image_bytes}, false, model->functions, host,
                   program, message);
}
