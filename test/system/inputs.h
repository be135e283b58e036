/* Inputs for programs that train any model: made-up floats, and class 0.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "ortc/ortc.h"

static void check(ortc_status status, const char *text) {
  if (status == ORTC_OK)
    return;
  fprintf(stderr, "%s\n", text);
  exit(1);
}

/* Binds an array to every input of the training entry. */
static void bindInputs(const ortc_program *program, ortc_session *session) {
  ortc_entry_info entry = {.size = sizeof entry};
  uint32_t e = 0;
  while (ortc_entry_get(program, e, &entry) == ORTC_OK && entry.role != ORTC_ENTRY_TRAIN)
    e++;
  for (uint32_t i = 0; i < entry.value_count; i++) {
    ortc_tensor_info value = {.size = sizeof value};
    if (ortc_entry_value(program, e, i, &value) != ORTC_OK || value.role != ORTC_ROLE_INPUT)
      continue;
    void *array = calloc(1, value.bytes);
    if (value.dtype == 1)
      for (uint64_t k = 0; k < value.bytes / sizeof(float); k++)
        ((float *)array)[k] = (float)(k % 17) / 17.0f;
    check(ortc_bind(session, value.name, array, value.bytes), value.name);
  }
}

/* The process's mappings, on stdout. */
static void printMaps(void) {
  char text[4096];
  size_t bytes;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && (bytes = fread(text, 1, sizeof text, maps)) > 0)
    fwrite(text, 1, bytes, stdout);
  if (maps)
    fclose(maps);
}
