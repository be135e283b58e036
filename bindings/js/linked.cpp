// The runtime in a module that has a model, too (`ortc train --emit wasm`): instead of imports, and the way in.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <stddef.h>

#include "ortc/static.h"

// The compiler writes this structure.
static_assert(sizeof(ortc_static) == 20 && offsetof(ortc_static, image) == 8 &&
              offsetof(ortc_static, steps) == 16);

extern "C" {

extern const ortc_static ortc_model;

/// Of platform_wasm.cpp: the only code is linked in.
uint32_t ortc_load(const void *, uint32_t, ortc_step_fn *, uint32_t) { return 0; }

/// Opens the model.
ORTC_API ortc_status ortc_js_open(ortc_program **program, ortc_message *message) {
  return ortc_program_open_static(&ortc_model, nullptr, program, message);
}
}
