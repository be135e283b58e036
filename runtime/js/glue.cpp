// What JavaScript needs of the runtime in WebAssembly beside the C interface: its memory, and a sink for checkpoints.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <stddef.h>

#include "ortc/ortc.h"

// index.mjs reads and writes these structures.
static_assert(sizeof(ortc_message) == 256 && offsetof(ortc_program_info, architecture) == 20 &&
              offsetof(ortc_program_info, target_name) == 32 &&
              offsetof(ortc_program_info, code_bytes) == 40 && offsetof(ortc_program_info, digest) == 72 &&
              sizeof(ortc_program_info) == 136);
static_assert(offsetof(ortc_tensor_info, name) == 8 && offsetof(ortc_tensor_info, role) == 12 &&
              offsetof(ortc_tensor_info, bytes) == 32 && sizeof(ortc_tensor_info) == 104);
static_assert(offsetof(ortc_entry_info, role) == 4 && offsetof(ortc_entry_info, value_count) == 16 &&
              offsetof(ortc_entry_info, name) == 40 && sizeof(ortc_entry_info) == 48);
static_assert(sizeof(ortc_file_header) == 120 && sizeof(ortc_file_section) == 80 &&
              offsetof(ortc_file_section, architecture) == 28 && offsetof(ortc_file_section, features) == 32);
static_assert(offsetof(ortc_session_options, flags) == 4 && sizeof(ortc_session_options) == 44);

extern "C" {

__attribute__((import_module("ortc"), import_name("write"))) int32_t ortc_js_write(const void *data,
                                                                                   size_t bytes);

static int32_t sink(void *, const void *data, size_t bytes) { return ortc_js_write(data, bytes); }

/// As ortc_checkpoint_write, to the function that JavaScript gave for now.
ORTC_API ortc_status ortc_js_checkpoint_write(ortc_session *session, const ortc_metadata *metadata,
                                              size_t count) {
  return ortc_checkpoint_write(session, sink, nullptr, metadata, count);
}
}
