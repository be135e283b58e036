// What JavaScript needs of the runtime in WebAssembly beside the C interface: its memory, and parts of checkpoints.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <stddef.h>
#include <string.h>

#include "ortc/ortc.h"

// index.mjs reads and writes these structures.
static_assert(sizeof(ortc_message) == 256 && offsetof(ortc_program_info, architecture) == 20 &&
              offsetof(ortc_program_info, target_name) == 32 &&
              offsetof(ortc_program_info, code_bytes) == 40 && offsetof(ortc_program_info, digest) == 72 &&
              sizeof(ortc_program_info) == 136);
static_assert(offsetof(ortc_tensor_info, name) == 8 && offsetof(ortc_tensor_info, role) == 12 &&
              offsetof(ortc_tensor_info, bytes) == 32 && sizeof(ortc_tensor_info) == 168);
static_assert(offsetof(ortc_entry_info, role) == 4 && offsetof(ortc_entry_info, value_count) == 16 &&
              offsetof(ortc_entry_info, name) == 40 && sizeof(ortc_entry_info) == 48);
static_assert(sizeof(ortc_file_header) == 120 && sizeof(ortc_file_section) == 80 &&
              offsetof(ortc_file_section, architecture) == 28 && offsetof(ortc_file_section, features) == 32);
static_assert(offsetof(ortc_session_options, flags) == 4 && sizeof(ortc_session_options) == 44);

/// The part of a checkpoint that JavaScript wants.
struct ortc_js_part {
  uint8_t *at;
  size_t room;  ///< bytes from `at` on
  size_t first; ///< the byte of the checkpoint that comes there
  size_t bytes; ///< out: of the whole checkpoint
};
static_assert(sizeof(ortc_js_part) == 16);

static int32_t sink(void *context, const void *data, size_t bytes) {
  ortc_js_part &part = *(ortc_js_part *)context;
  size_t begin = part.bytes, end = begin + bytes, last = part.first + part.room;
  size_t from = begin > part.first ? begin : part.first, to = end < last ? end : last;
  if (from < to)
    memcpy(part.at + (from - part.first), (const uint8_t *)data + (from - begin), to - from);
  part.bytes = end;
  return 0;
}

extern "C" {

/// As ortc_checkpoint_write, of which `part` gets what it has room for.
ORTC_API ortc_status ortc_js_checkpoint_write(ortc_session *session, ortc_js_part *part) {
  part->bytes = 0;
  return ortc_checkpoint_write(session, sink, part, nullptr, 0);
}
}
