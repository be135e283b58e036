// Opening a model that is linked into the program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ortc/static.h"

#include "runtime/src/internal.h"

using namespace ortc;

extern "C" {

ortc_status ortc_program_open_static(const ortc_static *model, const ortc_host *host, ortc_program **program,
                                     ortc_message *message) {
  *program = nullptr;
  if (model->abi != ORTC_ABI_VERSION || model->size < sizeof *model) {
    Arguments arguments;
    arguments.set(0, kPartCallAbi);
    arguments.set(1, model->abi);
    return report(message, kNewer, &arguments);
  }
  if ((uintptr_t)model->image % ORTC_ALIGNMENT)
    return report(message, kMisaligned);
  return openImage({(const uint8_t *)model->image, model->image_bytes}, false, host, program, message,
                   model->steps);
}
}
