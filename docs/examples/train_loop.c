// Trains an artifact for a few steps on made-up data and saves a checkpoint: train_loop model.ortc out.safetensors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <stdio.h>
#include <stdlib.h>

#include "ortc/ortc.h"

static int fail(const char *what, const char *text) {
  fprintf(stderr, "train_loop: %s: %s\n", what, text);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 3)
    return fail("usage", "train_loop MODEL.ortc OUT.safetensors");
  ortc_program *program;
  ortc_session *session;
  ortc_message message;
  if (ortc_program_open_file(argv[1], NULL, &program, &message) != ORTC_OK)
    return fail(argv[1], message.text);
  if (ortc_session_create(program, NULL, &session, &message) != ORTC_OK)
    return fail("session", message.text);

  // Bind an array to every input of the training entry. A real program would fill them with data.
  ortc_entry_info entry = {.size = sizeof entry};
  uint32_t e = 0;
  while (ortc_entry_get(program, e, &entry) == ORTC_OK && entry.role != ORTC_ENTRY_TRAIN)
    e++;
  void *arrays[16] = {0};
  for (uint32_t i = 0; i < entry.value_count && i < 16; i++) {
    ortc_tensor_info value = {.size = sizeof value};
    if (ortc_entry_value(program, e, i, &value) != ORTC_OK || value.role != ORTC_ROLE_INPUT)
      continue;
    void *array = arrays[i] = calloc(1, value.bytes);
    if (value.dtype == 1) // float
      for (uint64_t k = 0; k < value.bytes / sizeof(float); k++)
        ((float *)array)[k] = (float)(k % 17) / 17.0f;
    if (ortc_bind(session, value.name, array, value.bytes) != ORTC_OK)
      return fail(value.name, ortc_session_message(session));
  }

  for (int step = 1; step <= 10; step++) {
    double loss = 0;
    if (ortc_train_step(session, &loss) != ORTC_OK)
      return fail("step", ortc_session_message(session));
    printf("step %d loss %.6f\n", step, loss);
  }
  if (ortc_checkpoint_save(session, argv[2], NULL, 0) != ORTC_OK)
    return fail(argv[2], ortc_session_message(session));
  for (int i = 0; i < 16; i++)
    free(arrays[i]);
  ortc_session_destroy(session);
  ortc_program_close(program);
  return 0;
}
